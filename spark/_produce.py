"""Rows to topics, on executors: record batches of an idempotent producer, one under way for each partition.

Nothing here imports pyspark. Rows bring times of their own.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from ..client import Cluster
from ..client.producer import Headers, Producer, ProducerId, RecordBuffer, init_producer_id, partition_of_key
from ..protocol import Codec, ErrorCode, KafkaError, TopicPartition
from ._client import Client
from ._group import UnknownTopicError
from ._transaction import Transaction, TransactionRules, add_partition, begin

#: Bytes of records that make a batch; below the 1 MiB that brokers take by default.
BATCH_BYTES = 512 * 1024


@dataclass(slots=True)
class _Pending:
    """Records of one partition that are to be sent, and the batch that is under way."""

    records: RecordBuffer = field(default_factory=RecordBuffer)
    under_way: Future[int] | None = None


class RecordWriter:
    """Buffers rows by partition and sends them; ``close`` returns when all are acknowledged.

    A row without a partition goes where Java's producers send its key; without a key, with its neighbours.
    With ``rules`` all goes into one transaction, which whoever has ``transaction`` must end. Raises
    UnknownTopicError, KafkaError, BrokerConnectionError, and NoTransactionsError when it is made.
    """

    def __init__(
        self, client: Client, codec: Codec = Codec.NONE, rules: TransactionRules | None = None
    ) -> None:
        self._client = client
        self._transaction = transaction = None if rules is None else begin(client, rules)
        if transaction is None:
            self._producer = Producer(client.run(_producer_id), codec)
        else:
            producer_id = ProducerId(transaction.producer_id, transaction.producer_epoch)
            self._producer = Producer(producer_id, codec, transactional_id=transaction.name)
        self._pending: dict[TopicPartition, _Pending] = {}
        self._partitions: dict[str, int] = {}
        self._keyless: dict[str, int] = {}
        self.records = 0

    @property
    def transaction(self) -> Transaction | None:
        """The transaction with what was sent so far; None without one, and while it is empty."""
        sent = any(pending.under_way is not None for pending in self._pending.values())
        return self._transaction if sent else None

    def add(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        *,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> None:
        place = TopicPartition(topic, self._partition(topic, key, partition))
        pending = self._pending.setdefault(place, _Pending())
        now = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        pending.records.add(key, value, headers, now)
        self.records += 1
        if pending.records.size >= BATCH_BYTES:
            self._send(place, pending)
            # the next records without a key go elsewhere
            self._keyless[topic] = self._keyless.get(topic, 0) + 1

    def close(self) -> None:
        """Send what is left; all of it is acknowledged afterwards."""
        for place, pending in self._pending.items():
            if pending.records.count:
                self._send(place, pending)
        for pending in self._pending.values():
            if pending.under_way is not None:
                pending.under_way.result()

    def _partition(self, topic: str, key: bytes | None, asked: int | None) -> int:
        count = self._partitions.get(topic)
        if count is None:
            count = self._partitions[topic] = self._client.run(lambda cluster: _count(cluster, topic))
        if asked is not None:
            if not 0 <= asked < count:
                raise UnknownTopicError(f"topic {topic!r} has {count} partitions, not number {asked}")
            return asked
        if key is None:
            return (self._producer.producer_id.id + self._keyless.get(topic, 0)) % count
        return partition_of_key(key, count)

    def _send(self, place: TopicPartition, pending: _Pending) -> None:
        transaction = self._transaction
        if pending.under_way is not None:
            # one after the other: their sequence numbers must arrive in order
            pending.under_way.result()
        elif transaction is not None:
            self._client.run(lambda cluster: add_partition(cluster, transaction, place))
        batch = self._producer.batch(place, pending.records)
        pending.records = RecordBuffer()
        pending.under_way = self._client.submit(lambda cluster: self._producer.send(cluster, place, batch))


async def _producer_id(cluster: Cluster) -> ProducerId:
    return await cluster.retrying(lambda: init_producer_id(cluster))


async def _count(cluster: Cluster, topic: str) -> int:
    await cluster.metadata([topic])
    count = len(cluster.known.partitions(topic))
    if not count:
        code = cluster.known.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise KafkaError(code, f"metadata of topic {topic!r}")
        raise UnknownTopicError(f"topic {topic!r} does not exist: create it, or check its name")
    return count
