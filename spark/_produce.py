"""Writes rows to topics on executors, with a producer on the client's event loop.

Nothing here imports pyspark.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ..client import Cluster
from ..client.transactions import Transaction
from ..producer import Producer
from ..producer.accumulator import BATCH_BYTES as BATCH_HEADER_BYTES
from ..protocol import Codec, ErrorCode, KafkaError, UnsupportedVersionError
from ..protocol.rows import FillingRecords, encode_rows
from ..settings import MAX_INT
from ._client import Client
from ._group import count_partitions
from ._rows import TopicRows
from ._transaction import NoTransactionsError, TransactionRules, describe_missing_right

#: A batch is sent when it has this many bytes, by default; brokers accept 1 MiB by default.
BATCH_BYTES = 512 * 1024
#: Most memory for batches that are not acknowledged, and for those that are being filled.
_BUFFER_BYTES = _FILLING_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """``batch_bytes``: size of a full batch. ``ignore_keys``: records with keys are spread like others."""

    codec: Codec = Codec.NONE
    batch_bytes: int = BATCH_BYTES
    ignore_keys: bool = False


#: Producers without transactions that the next task of this process takes over, by codec.
_kept: WeakKeyDictionary[Client, dict[Codec, Producer]] = WeakKeyDictionary()


class RecordWriter:
    """Buffers rows by partition and sends them; ``close`` returns when all are acknowledged.

    A row without a partition goes to the partition that Java's producers choose for its key. Rows without a
    key go to one partition until a batch is full, then to the next. With ``rules`` all rows are in one
    transaction: ``close`` returns it, and the caller must end it. After an error call ``abort``. Raises
    UnknownTopicError, KafkaError, BrokerConnectionError and ProducerError; the constructor also raises
    NoTransactionsError.
    """

    def __init__(
        self,
        client: Client,
        settings: WriteSettings = WriteSettings(),
        rules: TransactionRules | None = None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._transactional = rules is not None
        kept = None if rules is not None else _kept.get(client, {}).pop(settings.codec, None)
        self._producer = kept or client.run(lambda cluster: _start_producer(cluster, settings.codec, rules))
        self._filling: dict[str, FillingRecords] = {}
        #: Bytes of each topic in ``_filling``.
        self._filled_bytes: dict[str, int] = {}
        self._first = random.randrange(MAX_INT)
        self._keyless: dict[str, int] = {}
        self._under_way: list[asyncio.Future[object]] = []
        self.records = 0

    def add(self, rows: TopicRows) -> None:
        topic, columns = rows.topic, rows.columns
        # brokers refuse records together that are not too large each
        full_bytes = self._settings.batch_bytes - BATCH_HEADER_BYTES
        filling = self._filling.get(topic)
        if filling is None:
            count = self._client.run(lambda cluster: count_partitions(cluster, topic))
            filling = self._filling[topic] = FillingRecords.of(count)
        count = len(filling.records)
        places = rows.choose_partitions(count, ignore_keys=self._settings.ignore_keys)
        now_ms = time.time_ns() // 1_000_000
        done, turn = 0, self._keyless.get(topic, self._first)
        while (
            done := encode_rows(columns, done, places, turn % count, now_ms, filling, full_bytes)
        ) < columns.row_count:
            self._send(topic, places[done] if places[done] >= 0 else turn % count)
            # the next records without a key go to another partition
            turn += 1
        self._keyless[topic] = turn
        self._filled_bytes[topic] = sum(map(len, filling.records))
        if sum(self._filled_bytes.values()) > _FILLING_BYTES:
            # thousands of partitions would hold a batch each
            self._send_all()
        self.records += columns.row_count

    def close(self) -> Transaction | None:
        """Send the remaining rows and wait for all acknowledgements. Return the transaction unless empty."""
        self._send_all()
        transaction = self._client.run(lambda _: self._finish())
        if not self._transactional:
            self._keep_producer()
        return transaction

    def _keep_producer(self) -> None:
        """Leave the producer to the next task, unless one is kept already."""
        kept = _kept.setdefault(self._client, {})
        if kept.setdefault(self._settings.codec, self._producer) is not self._producer:
            self.abort()

    def abort(self) -> None:
        """Drop rows that are not sent, and abort the transaction."""
        self._client.run(lambda _: self._producer.close())

    async def _finish(self) -> Transaction | None:
        await asyncio.gather(*self._under_way)
        if not self._transactional:
            return None
        transaction = await self._producer.detach_transaction()
        await self._producer.close()
        return transaction

    def _send_all(self) -> None:
        for topic, filling in self._filling.items():
            for partition, records in enumerate(filling.records):
                if records:
                    self._send(topic, partition)
        self._filled_bytes.clear()

    def _send(self, topic: str, partition: int) -> None:
        records = self._filling[topic].take(partition)
        sending = self._client.run(lambda _: self._producer.send_encoded(topic, partition, records))
        for before in self._under_way:
            if before.done():
                before.result()
        self._under_way = [before for before in self._under_way if not before.done()]
        self._under_way.append(sending)  # type: ignore[arg-type]


async def _start_producer(cluster: Cluster, codec: Codec, rules: TransactionRules | None) -> Producer:
    settings = (
        {} if rules is None else {"transactional_id": rules.name, "transaction_timeout_ms": rules.timeout_ms}
    )
    producer = Producer.on_cluster(
        cluster,
        compression=codec.name.lower(),
        max_request_size=MAX_INT,
        buffer_memory=_BUFFER_BYTES,
        linger_ms=0,
        **settings,
    )
    try:
        await producer.start()
    except UnsupportedVersionError as error:
        raise NoTransactionsError(str(error)) from error
    except KafkaError as error:
        if error.code is ErrorCode.INVALID_REQUEST:
            raise NoTransactionsError(f"the broker offers no transactions: {error.message}") from error
        if rules is not None and error.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            raise NoTransactionsError(describe_missing_right(rules.name)) from error
        raise
    if rules is not None:
        producer.begin_transaction()
    return producer
