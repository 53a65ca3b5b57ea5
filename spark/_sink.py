"""``df.write`` and ``writeStream.format("kohort")``: write rows to topics, each batch once if there is a
ledger.

    each task: is the batch in the ledger? -> begin a transaction -> write
    the driver, when all tasks are done: record the transactions -> commit each -> record the batch's key

If the broker has no transactions, or the options turn them off, tasks write without: records of a failed
batch stay visible, and are written again when it is repeated. See ``_transaction.py``.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from ..client import BrokerConnectionError
from ..client.transactions import Transaction
from ..protocol import KafkaError, TopicPartition
from ._client import Client, process_client
from ._options import OptionsError
from ._produce import RecordWriter
from ._sink_options import SinkOptions
from ._transaction import (
    Entry,
    Ledger,
    NoTransactionsError,
    TransactionLostError,
    TransactionRules,
    end,
    transaction_name,
)

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

    #: Whether PySpark (4.1 and newer) passes the rows of a stream as Arrow batches.
    WRITES_STREAMS = True
except ImportError:
    WRITES_STREAMS = False

log = logging.getLogger(__name__)

#: Task properties with the query's id and the batch's number.
_QUERY_ID, _BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass
class Written(WriterCommitMessage):
    """Result of a task: number of records, key of the batch, and the transaction with the records."""

    records: int
    key: str | None
    transaction: Transaction | None = None


class TopicWriter:
    """Common part of both writers."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        #: Begins the transactional ids. It is sent to the tasks, so that all attempts of a task have the same
        #: id.
        self._prefix = options.ledger_group or f"kohort-{uuid.uuid4().hex}"

    def write_rows(self, batches: Iterator[pa.RecordBatch], key: str | None, task: int) -> Written:
        """Write a task's rows, unless the ledger has their batch.

        Raises OptionsError if there is a ledger and the batch has no key, and the errors of RecordWriter.
        """
        ledger = self._ledger
        if ledger is not None:
            if key is None:
                raise OptionsError(
                    "ledgerGroup needs batchKey, by which the ledger knows a batch again: give batch.key of "
                    "GroupBatches, or the query's name and the batch's number"
                )
            entry = ledger.read()
            if entry.holds(key):
                return Written(0, key)
            self._end_all(entry.prepared)
        writer = self._record_writer(task)
        try:
            transaction = self._write_all(writer, batches)
        except BaseException:
            writer.abort()
            raise
        return Written(writer.records, key, transaction)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int = -1) -> None:  # noqa: ARG002, N803
        """Commit the batch after all tasks: readers see it from now on, and the ledger has it.

        Raises TransactionLostError if a transaction ended before, LedgerError and KafkaError.
        """
        written = [one for one in messages if isinstance(one, Written)]
        transactions = [one.transaction for one in written if one.transaction]
        key = next((one.key for one in written), None)
        ledger = self._ledger
        if ledger is None or key is None:
            for one in transactions:
                end(self._client, one, commit=True)
            return
        entry = ledger.read()
        if entry.holds(key):
            if not entry.prepared:
                return
            transactions = list(entry.prepared)
        elif transactions:
            entry = ledger.prepare(entry, key, transactions)
        try:
            for one in transactions:
                end(self._client, one, commit=True)
        except TransactionLostError:
            # the batch is not in the topics: the next run of the job writes it
            ledger.cancel(entry)
            raise
        ledger.note(entry, key)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int = -1) -> None:  # noqa: ARG002, N803
        """Abort the batch after a task failed: readers never see what the other tasks wrote.

        Spark also calls this after a failed ``commit``. A batch that the ledger has is not aborted.
        """
        ledger = self._ledger
        held = Entry() if ledger is None else ledger.read()
        for one in messages:
            if isinstance(one, Written) and one.transaction is not None and held.key != one.key:
                _abort(self._client, one.transaction)

    def _end_all(self, prepared: Sequence[Transaction]) -> None:
        """Commit the transactions of an earlier batch, which a killed job had prepared and does not repeat.

        Each task does this before it uses a transactional id. A transaction that no longer exists was
        committed by another task.
        """
        for one in prepared:
            try:
                end(self._client, one, commit=True)
            except TransactionLostError as error:
                log.info("%s", error)

    @property
    def _client(self) -> Client:
        return process_client(self.options.connection)

    @property
    def _ledger(self) -> Ledger | None:
        options = self.options
        if options.ledger_group is None:
            return None
        place = TopicPartition(options.ledger_topic or options.topic or "", 0)
        return Ledger(self._client, options.ledger_group, place)

    def _record_writer(self, task: int) -> RecordWriter:
        options = self.options
        if options.transactions != "never":
            rules = TransactionRules(transaction_name(self._prefix, task), options.transaction_timeout_ms)
            try:
                return RecordWriter(self._client, options.compression, rules)
            except NoTransactionsError as error:
                if options.transactions == "required":
                    raise
                _say_once(options.bootstrap, str(error))
        return RecordWriter(self._client, options.compression)

    def _write_all(self, writer: RecordWriter, batches: Iterator[pa.RecordBatch]) -> Transaction | None:
        for batch in batches:
            for record in _records(batch):
                topic = record.pop("topic", None) or self.options.topic
                if topic is None:
                    raise OptionsError("a row has no topic: fill column topic, or set option topic")
                writer.add(topic, **record)
        return writer.close()


class BatchWriter(TopicWriter, DataSourceArrowWriter):
    """``df.write``."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.write_rows(iterator, self.options.batch_key or _query_batch(), _task())


if WRITES_STREAMS:

    class StreamWriter(TopicWriter, DataSourceStreamArrowWriter):
        """``df.writeStream``."""

        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            return self.write_rows(iterator, _query_batch(), _task())


def _query_batch() -> str | None:
    """Return a key for the batch of a query, also within foreachBatch; None outside of a query.

    It has the query's id and the batch number. The id belongs to the checkpoint: a query with a new
    checkpoint, which counts from 0 again, has another id.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return None
    query, number = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
    return None if query is None or number is None else f"{query}-{number}"


def _task() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def _abort(client: Client, transaction: Transaction) -> None:
    """Abort a transaction. Errors are only logged, so that they do not hide why the batch failed.

    The broker aborts the transaction after its timeout.
    """
    try:
        end(client, transaction, commit=False)
    except (TransactionLostError, KafkaError, BrokerConnectionError) as error:
        log.warning("transaction %s is left to its timeout: %s", transaction.name, error)


@cache
def _say_once(bootstrap: str, why: str) -> None:
    log.warning(
        "%s: %s; readers see the records of a batch as they are written, those of a failed one too. "
        "transactions=never says that this is meant, transactions=required makes it an error",
        bootstrap,
        why,
    )


def _records(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Iterate over the rows as arguments of ``RecordWriter.add``."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {"key": [None] * batch.num_rows}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in ("key", "value"):
            columns[name] = column.cast(pa.binary()).to_pylist()
        elif name == "timestamp":
            micros = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
            columns["timestamp_ms"] = [None if one is None else one // 1000 for one in micros]
        elif name == "headers":
            columns[name] = [[(one["key"], one["value"]) for one in row or ()] for row in column.to_pylist()]
        else:
            columns[name] = column.to_pylist()
    names = list(columns)
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(names, row, strict=True))
