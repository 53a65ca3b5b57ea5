"""Rows to topics, on executors: record batches of an idempotent producer, one under way for each partition.

Nothing here imports pyspark. Batches are built here because rows bring times of their own and are packed.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from ..client import Cluster
from ..client.producer import produce
from ..protocol import (
    BATCH_OVERHEAD,
    ApiKey,
    Codec,
    ErrorCode,
    KafkaError,
    TopicPartition,
    compress,
    kafka_module,
    write_varint,
)
from ..protocol.messages.init_producer_id import InitProducerIdRequest
from ._client import Client
from ._group import UnknownTopicError
from ._transaction import Transaction, TransactionRules, add_partition, begin

Headers = Sequence[tuple[str, bytes | None]]

#: Bytes of records that make a batch; below the 1 MiB that brokers take by default.
BATCH_BYTES = 512 * 1024

_murmur2 = kafka_module("kafka.partitioner.default").murmur2

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LOG_OVERHEAD = 12
_CRC_AT, _COVERED_FROM = 17, 21
_LAST_SEQUENCE = 2**31
_TRANSACTIONAL = 0x10


@dataclass(slots=True)
class _Pending:
    """Records of one partition that are to be sent, and the batch that is under way."""

    records: bytearray = field(default_factory=bytearray)
    count: int = 0
    first_ms: int = 0
    last_ms: int = 0
    sequence: int = 0
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
        self._codec = codec
        self._transaction = None if rules is None else begin(client, rules)
        if self._transaction is None:
            self._producer = client.run(_producer_id)
        else:
            self._producer = self._transaction.producer_id, self._transaction.producer_epoch
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
        if not pending.count:
            pending.first_ms = pending.last_ms = now
        pending.last_ms = max(pending.last_ms, now)
        _append(pending.records, pending.count, now - pending.first_ms, key, value, headers)
        pending.count += 1
        self.records += 1
        if len(pending.records) >= BATCH_BYTES:
            self._send(place, pending)
            # the next records without a key go elsewhere
            self._keyless[topic] = self._keyless.get(topic, 0) + 1

    def close(self) -> None:
        """Send what is left; all of it is acknowledged afterwards."""
        for place, pending in self._pending.items():
            if pending.count:
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
            return (self._producer[0] + self._keyless.get(topic, 0)) % count
        return int((_murmur2(key) & 0x7FFFFFFF) % count)

    def _send(self, place: TopicPartition, pending: _Pending) -> None:
        transaction = self._transaction
        if pending.under_way is not None:
            # one after the other: their sequence numbers must arrive in order
            pending.under_way.result()
        elif transaction is not None:
            self._client.run(lambda cluster: add_partition(cluster, transaction, place))
        batch = _batch(pending, self._producer, self._codec, transactional=transaction is not None)
        pending.sequence = (pending.sequence + pending.count) % _LAST_SEQUENCE
        pending.records, pending.count = bytearray(), 0
        name = None if transaction is None else transaction.name
        pending.under_way = self._client.submit(lambda cluster: _delivered(cluster, place, batch, name))


async def _delivered(cluster: Cluster, place: TopicPartition, batch: bytes, transaction: str | None) -> int:
    try:
        return await cluster.retrying(lambda: produce(cluster, place, batch, transactional_id=transaction))
    except KafkaError as error:
        if error.code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return -1  # an earlier try was written, and only its answer was lost
        raise


async def _producer_id(cluster: Cluster) -> tuple[int, int]:

    async def attempt() -> tuple[int, int]:
        body = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
        )
        answer = await cluster.request(None, ApiKey.INIT_PRODUCER_ID, body)
        if answer.error_code:
            raise KafkaError(answer.error_code, "asking for a producer id")
        return answer.producer_id, answer.producer_epoch

    return await cluster.retrying(attempt)


async def _count(cluster: Cluster, topic: str) -> int:
    await cluster.metadata([topic])
    count = len(cluster.known.partitions(topic))
    if not count:
        code = cluster.known.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise KafkaError(code, f"metadata of topic {topic!r}")
        raise UnknownTopicError(f"topic {topic!r} does not exist: create it, or check its name")
    return count


def _append(
    out: bytearray, delta: int, later_ms: int, key: bytes | None, value: bytes | None, headers: Headers
) -> None:
    body = bytearray(b"\x00")
    write_varint(body, later_ms)
    write_varint(body, delta)
    for part in (key, value):
        _sized(body, part)
    write_varint(body, len(headers))
    for name, content in headers:
        _sized(body, name.encode())
        _sized(body, content)
    write_varint(out, len(body))
    out += body


def _sized(out: bytearray, part: bytes | None) -> None:
    write_varint(out, -1 if part is None else len(part))
    out += part or b""


def _batch(pending: _Pending, producer: tuple[int, int], codec: Codec, *, transactional: bool) -> bytes:
    from crc32c import crc32c

    payload = compress(codec, bytes(pending.records))
    out = bytearray(BATCH_OVERHEAD) + payload
    last = pending.count - 1
    _HEADER.pack_into(
        out,
        0,
        0,
        len(out) - _LOG_OVERHEAD,
        -1,
        2,
        0,
        codec | (_TRANSACTIONAL if transactional else 0),
        last,
        pending.first_ms,
        pending.last_ms,
        *producer,
        pending.sequence,
        pending.count,
    )
    struct.pack_into(">I", out, _CRC_AT, crc32c(bytes(out[_COVERED_FROM:])))
    return bytes(out)
