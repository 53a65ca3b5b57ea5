"""A small producer: batches that all replicas in sync acknowledge (acks -1), idempotent or in a transaction.

What does not need a producer id sends the batch that it has made with ``produce``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from ..protocol import (
    ApiKey,
    BatchHeader,
    Codec,
    ErrorCode,
    KafkaError,
    TopicPartition,
    compress,
    kafka_module,
    seal_batch,
    write_varint,
)
from ..protocol.messages.init_producer_id import InitProducerIdRequest
from ..protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from .requests import Requests, partition_name

Headers = Sequence[tuple[str, bytes | None]]

_ALL_IN_SYNC = -1
#: Version 13 names topics by id (KIP-516); up to here they go by name.
_LAST_BY_NAME = 12
#: From version 12 on a broker takes partitions into a transaction by itself (KIP-890), and its end differs.
_LAST_TO_ANNOUNCED = 11
#: The transaction timeout of a producer that has no transactions.
_UNUSED_TIMEOUT_MS = 60_000

_TRANSACTIONAL = 0x10
#: The length of null, and lengths below which one byte says them, as varints.
_NULL, _SMALL = 1, 64
_SEQUENCES = 2**31


async def produce(
    cluster: Requests,
    partition: TopicPartition,
    batch: bytes | bytearray,
    *,
    transactional_id: str | None = None,
) -> int:
    """Append a batch to a partition; the offset of its first record. Raises KafkaError.

    One attempt at the leader in the cache. After an error that tells of a move the next one finds fresh
    metadata. A transaction must have been told of the partition.
    """
    data = PartitionProduceData(index=partition.partition, records=memoryview(batch))
    body = ProduceRequest(
        transactional_id=transactional_id,
        acks=_ALL_IN_SYNC,
        timeout_ms=cluster.request_timeout_ms,
        topic_data=[TopicProduceData(name=partition.topic, partition_data=[data])],
    )
    leader = cluster.leader(partition)
    if leader is None:
        await cluster.metadata([partition.topic])
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition_name(partition)} has no leader yet")
    newest = _LAST_BY_NAME if transactional_id is None else _LAST_TO_ANNOUNCED
    response = await cluster.request(leader, ApiKey.PRODUCE, body, max_version=newest)
    row = response.responses[0].partition_responses[0]
    if row.error_code:
        await cluster.metadata([partition.topic])
        raise KafkaError(row.error_code, row.error_message or f"{partition_name(partition)} refused records")
    offset: int = row.base_offset
    return offset


class ProducerId(NamedTuple):
    """Names a producer to brokers; ``epoch`` tells it from its successors of the same transactional id."""

    id: int
    epoch: int


async def init_producer_id(
    cluster: Requests,
    transactional_id: str | None = None,
    *,
    node_id: int | None = None,
    timeout_ms: int = _UNUSED_TIMEOUT_MS,
) -> ProducerId:
    """A new producer id; for a transactional id from its coordinator, ``node_id``. One attempt; KafkaError.

    ``timeout_ms`` is how long a transaction may stay open before the broker aborts it.
    """
    body = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=-1,
        producer_epoch=-1,
    )
    answer = await cluster.request(node_id, ApiKey.INIT_PRODUCER_ID, body)
    if answer.error_code:
        doing = "asking for a producer id"
        if transactional_id is not None:
            doing = f"beginning transaction {transactional_id!r}"
        raise KafkaError(answer.error_code, doing)
    return ProducerId(answer.producer_id, answer.producer_epoch)


class RecordBuffer:
    """Records of one partition that become one batch. ``size`` is in bytes, before compression."""

    __slots__ = ("_first_ms", "_last_ms", "_records", "count")

    def __init__(self) -> None:
        self.count = 0
        self._records = bytearray()
        self._first_ms = self._last_ms = 0

    @property
    def size(self) -> int:
        return len(self._records)

    def add(self, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int) -> None:
        if not self.count:
            self._first_ms = self._last_ms = timestamp_ms
        if timestamp_ms > self._last_ms:
            self._last_ms = timestamp_ms
        body = bytearray(b"\x00")  # no attributes
        write_varint(body, timestamp_ms - self._first_ms)
        write_varint(body, self.count)
        for part in (key, value):
            _append_sized(body, part)
        write_varint(body, len(headers))
        for name, content in headers:
            _append_sized(body, name.encode())
            _append_sized(body, content)
        write_varint(self._records, len(body))
        self._records += body
        self.count += 1

    def batch(self, producer: ProducerId, sequence: int, codec: Codec, *, transactional: bool) -> bytes:
        """The records as a batch of Kafka's format 2; ``sequence`` is the number of the first one."""
        attributes = codec | (_TRANSACTIONAL if transactional else 0)
        count, times = self.count, (self._first_ms, self._last_ms)
        # base offset, length and checksum are set by others, the leader epoch is not known
        head = BatchHeader(0, 0, -1, 2, 0, attributes, count - 1, *times, *producer, sequence, count)
        return bytes(seal_batch(head, compress(codec, bytes(self._records))))


def _append_sized(out: bytearray, part: bytes | None) -> None:
    if part is None:
        out.append(_NULL)
    else:
        if len(part) < _SMALL:
            out.append(2 * len(part))
        else:
            write_varint(out, len(part))
        out += part


class Producer:
    """Numbers batches and sends them, so that none is written twice or out of order.

    A partition has one batch under way at a time: call ``batch`` for the next one when ``send`` has returned.
    ``transactional_id`` is that of the transaction which everything goes into; whoever began it adds the
    partitions to it and ends it.
    """

    def __init__(
        self, producer_id: ProducerId, codec: Codec = Codec.NONE, *, transactional_id: str | None = None
    ) -> None:
        self.producer_id = producer_id
        self._codec = codec
        self._transactional_id = transactional_id
        self._sequences: dict[TopicPartition, int] = defaultdict(int)

    def batch(self, partition: TopicPartition, records: RecordBuffer) -> bytes:
        sequence = self._sequences[partition]
        self._sequences[partition] = (sequence + records.count) % _SEQUENCES
        return records.batch(
            self.producer_id, sequence, self._codec, transactional=self._transactional_id is not None
        )

    async def send(self, cluster: Requests, partition: TopicPartition, batch: bytes) -> int:
        """The batch's first offset, once all replicas in sync have it; -1 if the answer that said so is lost.

        Tries again as ``Cluster.retrying`` does, and raises what that raises.
        """

        async def attempt() -> int:
            return await produce(cluster, partition, batch, transactional_id=self._transactional_id)

        try:
            return await cluster.retrying(attempt)
        except KafkaError as error:
            if error.code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return -1  # an earlier try was written
            raise


def partition_of_key(key: bytes, count: int) -> int:
    """The partition, of ``count``, in which Java's producers put records of this key."""
    return int((_murmur2()(key) & 0x7FFFFFFF) % count)


@cache
def _murmur2() -> Any:
    return kafka_module("kafka.partitioner.default").murmur2
