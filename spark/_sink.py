"""``df.write`` and ``writeStream.format("kohort")``: write rows to topics, each batch once if there is a
ledger.

    each task: is its part in the topics? -> begin a transaction -> write
    the driver, when all tasks are done: record the transactions -> commit each -> record the batch's key

What each step is, and what it does after a kill, is in ``_batch_steps.py``. Without a ledger the batches of a
query are transactions too; those of ``df.write`` are not, since nothing has a name there that comes again:
each batch would leave transactional ids to the brokers. If the broker has no transactions, or the options
turn them off, tasks write without: records of a failed batch stay visible, and are written again when it is
repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from ..client import BrokerConnectionError
from ..protocol import KohortError
from ._batch_steps import (
    Order,
    Report,
    Work,
    abort_batch,
    begin_task,
    commit_batch,
    compare_rows,
    start_batch,
)
from ._client import Client, process_client
from ._digest import RowDigest
from ._ledger_entry import MAX_PARTS, LedgerError, describe_lack_of_room
from ._options import OptionsError
from ._produce import RecordWriter
from ._rows import TopicRows, split_rows
from ._sink_options import SinkOptions
from ._transaction import Ledger, NoTransactionsError, StepRunner, TransactionRules

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
    """Result of a task: number of records, key of the batch, and what the driver needs to commit it.

    ``prefix`` begins the task's transactional ids; None if it had no transaction.
    """

    records: int
    key: str | None
    report: Report
    prefix: str | None = None


class Attempt(NamedTuple):
    """Task of a stage, number of its attempt, and the query to which its batch belongs, if any."""

    task: int = 0
    attempt: int = 0
    query: str | None = None


class TopicWriter:
    """Common part of both writers."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options

    def start(self) -> None:
        """Finish what a former run with the same ledger had decided, and end what it left open.

        The driver calls this before the tasks of a batch. Raises UndecidedBatchError, KafkaError and
        BrokerConnectionError.
        """
        if self.options.ledger_group is not None:
            self._steps(self._prefix(None)).run(start_batch())

    def write_rows(self, batches: Iterator[pa.RecordBatch], key: str | None, at: Attempt) -> Written:
        """Write a task's rows, unless they are in the topics.

        Raises OptionsError if there is a ledger and the batch has no key, LedgerError for more tasks than it
        has room for, PartialBatchError, and the errors of RecordWriter.
        """
        has_ledger = self.options.ledger_group is not None
        if has_ledger and key is None:
            raise OptionsError(
                "ledgerGroup needs batchKey, by which the ledger knows a batch again: give batch.key of "
                "GroupBatches, or the query's name and the batch's number"
            )
        prefix = self._prefix(at.query)
        order, writer = self._begin(prefix, key if has_ledger else None, at)
        if order.work is Work.PASS_OVER:
            return Written(0, key, Report(at.task, Work.PASS_OVER))
        digest = RowDigest() if has_ledger else None
        if writer is None:
            assert digest is not None, "only a ledger tells what stands"
            for rows in self._rows(batches):
                digest.add(rows)
            return Written(0, key, compare_rows(key, at.task, order, digest.value), prefix)
        try:
            for rows in self._rows(batches):
                if digest is not None:
                    digest.add(rows)
                writer.add(rows)
            transaction = writer.close()
        except BaseException:
            writer.abort()
            raise
        report = Report(at.task, Work.WRITE, None if digest is None else digest.value, transaction)
        return Written(writer.records, key, report, prefix if order.name else None)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int = -1) -> None:  # noqa: ARG002, N803
        """Commit the batch after all tasks: readers see it from now on, and the ledger has it.

        Raises TransactionLostError if a transaction ended before, LedgerError and KafkaError.
        """
        written = [one for one in messages if isinstance(one, Written)]
        key = next((one.key for one in written), None) if self.options.ledger_group else None
        if self.options.ledger_group is None or key is not None:
            self._steps(_prefix_of(written)).run(commit_batch(key, [one.report for one in written]))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int = -1) -> None:  # noqa: ARG002, N803
        """End what is open after a task failed: readers never see what the other tasks wrote.

        Spark also calls this after a failed ``commit``. A batch that is decided is not aborted. Errors are
        only logged, so that they do not hide why the batch failed; brokers abort transactions after their
        timeout.
        """
        written = [one for one in messages if isinstance(one, Written)]
        prefix = _prefix_of(written) or self._prefix(None)
        try:
            self._steps(prefix).run(abort_batch([one.report for one in written]))
        except (KohortError, BrokerConnectionError) as error:
            log.warning("open transactions of the batch are left to their timeouts: %s", error)

    @property
    def _client(self) -> Client:
        return process_client(self.options.connection)

    @property
    def _ledger(self) -> Ledger | None:
        options = self.options
        if options.ledger_group is None:
            return None
        return Ledger(self._client, options.ledger_group, options.ledger_topic or options.topic or "")

    def _prefix(self, query: str | None) -> str | None:
        """Return what the transactional ids begin with: a name that is the same for all batches."""
        if self.options.transactions == "never":
            return None
        return self.options.ledger_group or (query and f"kohort-{query}")

    def _steps(self, prefix: str | None) -> StepRunner:
        return StepRunner(self._client, self._ledger, prefix, self.options.transaction_timeout_ms)

    def _begin(self, prefix: str | None, key: str | None, at: Attempt) -> tuple[Order, RecordWriter | None]:
        """Return what a task is to do, and for new rows their writer."""
        options = self.options
        if prefix is None and key is None:
            return Order(Work.WRITE), RecordWriter(self._client, options.write_settings)
        try:
            order = self._steps(prefix).run(begin_task(prefix, key, at.task, at.attempt))
            if order.work is not Work.WRITE:
                return order, None
            rules = None
            if order.name:
                self._refuse_more_tasks_than_fit(at.task)
                rules = TransactionRules(order.name, options.transaction_timeout_ms)
            return order, RecordWriter(self._client, options.write_settings, rules)
        except NoTransactionsError as error:
            if options.transactions == "required":
                raise
            _say_once(options.bootstrap, str(error))
            return Order(Work.WRITE), RecordWriter(self._client, options.write_settings)

    def _refuse_more_tasks_than_fit(self, task: int) -> None:
        """Raise LedgerError before anything is written if the ledger cannot hold that many transactions."""
        ledger = self._ledger
        if ledger is not None and task >= MAX_PARTS:
            partitions = self._client.run(ledger.count_partitions)
            if task >= MAX_PARTS * partitions:
                raise LedgerError(describe_lack_of_room(task + 1, partitions))

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[TopicRows]:
        return chain.from_iterable(split_rows(batch, self.options.topic) for batch in batches)


class BatchWriter(TopicWriter, DataSourceArrowWriter):
    """``df.write``."""

    def __init__(self, options: SinkOptions) -> None:
        super().__init__(options)
        if options.transactions == "required" and options.ledger_group is None:
            raise OptionsError(
                "transactions=required needs ledgerGroup for df.write: transactional ids begin with its "
                "name, so that they are the same for all batches"
            )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.write_rows(iterator, self.options.batch_key or _query_batch(), _attempt())


if WRITES_STREAMS:

    class StreamWriter(TopicWriter, DataSourceStreamArrowWriter):
        """``df.writeStream``. Spark makes another one for each commit."""

        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            at = _attempt()._replace(query=_local_property(_QUERY_ID))
            return self.write_rows(iterator, _query_batch(), at)


def _query_batch() -> str | None:
    """Return a key for the batch of a query, also within foreachBatch; None outside of a query.

    It has the query's id and the batch number. The id belongs to the checkpoint: a query with a new
    checkpoint, which counts from 0 again, has another id.
    """
    query, number = _local_property(_QUERY_ID), _local_property(_BATCH_ID)
    return None if query is None or number is None else f"{query}-{number}"


def _local_property(name: str) -> str | None:
    from pyspark import TaskContext

    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(name)


def _attempt() -> Attempt:
    from pyspark import TaskContext

    context = TaskContext.get()
    return Attempt() if context is None else Attempt(context.partitionId(), context.attemptNumber())


def _prefix_of(written: Sequence[Written]) -> str | None:
    return next((one.prefix for one in written if one.prefix is not None), None)


@cache
def _say_once(bootstrap: str, why: str) -> None:
    log.warning(
        "%s: %s; readers see the records of a batch as they are written, those of a failed one too. "
        "transactions=never says that this is meant, transactions=required makes it an error",
        bootstrap,
        why,
    )
