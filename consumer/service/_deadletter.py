"""Dead letters: records that no handler could process, kept in a topic with the reason in their headers."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ...client.cluster import Cluster
from ...client.errors import BrokerConnectionError
from ...client.producer import produce
from ...protocol import Codec, KafkaError, TopicPartition, build_batch, compress_batch
from ..assembly import make_cluster
from ..errors import ConsumerError, message

if TYPE_CHECKING:
    from ..config import ConsumerConfig
    from ..record import Record

#: Most bytes of error text and of stack in a header: the record must still fit into the topic.
MAX_ERROR_BYTES = 1_000
MAX_STACK_BYTES = 8_000
#: Time for a dead letter to be acknowledged before the service stops.
SEND_TIMEOUT_MS = 30_000
#: Letters from this size on are compressed: their records may have been, and the topic limits the size of
#: batches as sent. From the second size on compression takes long and is done in a thread.
COMPRESSED_BYTES = 1_024
LARGE_BYTES = 65_536

Headers = list[tuple[str, bytes | None]]


class DeadLetterError(ConsumerError):
    """A record could not be written to its dead-letter topic. It stays uncommitted and the service stops."""


class DeadLetters:
    """Writes records to dead-letter topics, over connections of its own, opened with the first one.

    Key, value and headers are kept, and the headers below added. A letter goes to the partition with the
    number of its origin (modulo the number of partitions), so that letters of one partition keep their order.
    """

    def __init__(self, config: Callable[[], ConsumerConfig], group: str) -> None:
        self._config = config
        self._group = group
        self._cluster: Cluster | None = None

    async def send(self, topic: str, record: Record, error: BaseException, attempts: int) -> None:
        """Returns when all replicas in sync have the record. Raises DeadLetterError after SEND_TIMEOUT_MS."""
        if self._cluster is None:
            self._cluster = make_cluster(self._config())
        cluster = self._cluster
        headers = [*record.headers, *error_headers(record, error, attempts, self._group)]
        batch = await _packed(
            build_batch([(record.key, record.value, headers)], timestamp_ms=time.time_ns() // 1_000_000)
        )

        async def attempt() -> None:
            count = await _partition_count(cluster, topic)
            await produce(cluster, TopicPartition(topic, record.partition % count), batch)

        await _explained(cluster.retrying(attempt, timeout_ms=SEND_TIMEOUT_MS), topic, record)

    async def close(self) -> None:
        """Close the connections."""
        if self._cluster is not None:
            await self._cluster.close()


async def _packed(batch: bytearray) -> bytes | bytearray:
    if len(batch) < COMPRESSED_BYTES:
        return batch
    if len(batch) < LARGE_BYTES:
        return compress_batch(batch, Codec.GZIP)
    return await asyncio.to_thread(compress_batch, batch, Codec.GZIP)


async def _partition_count(cluster: Cluster, topic: str) -> int:
    known = cluster.topic(topic)
    if known is None:
        # brokers that create topics by themselves do it now
        state = await cluster.metadata([topic], create=True)
        if error := state.errors.get(topic):
            raise KafkaError(error, f"topic {topic!r}")
        known = state.topics[topic]
    return len(known.partitions)


async def _explained(sending: Awaitable[None], topic: str, record: Record) -> None:
    try:
        await sending
    except (KafkaError, BrokerConnectionError) as failure:
        where = f"{record.topic}-{record.partition} at offset {record.offset}"
        raise DeadLetterError(
            f"{where} could not be written to its dead-letter topic {topic!r}: {failure}. "
            "Make sure that the topic exists, that this client may write to it, and that its "
            f"max.message.bytes is not less than that of {record.topic!r}"
        ) from failure


def error_headers(record: Record, error: BaseException, attempts: int, group: str) -> Headers:
    """The headers of a dead letter; all values are UTF-8 text."""
    cause = error.__cause__ if error.__cause__ is not None else error
    stack = "".join(traceback.format_exception(error))
    texts = {
        "kohort.origin.topic": record.topic,
        "kohort.origin.partition": str(record.partition),
        "kohort.origin.offset": str(record.offset),
        "kohort.origin.timestamp_ms": str(record.timestamp_ms),
        "kohort.group": group,
        "kohort.attempts": str(attempts),
        "kohort.error.class": f"{type(cause).__module__}.{type(cause).__qualname__}",
        "kohort.error.message": _cut(message(error), MAX_ERROR_BYTES),
        # the end of a stack says most
        "kohort.error.stack": _cut(stack, MAX_STACK_BYTES, from_end=True),
    }
    return [(name, text.encode()) for name, text in texts.items()]


def _cut(text: str, limit: int, *, from_end: bool = False) -> str:
    encoded = text.encode(errors="backslashreplace")
    kept = encoded[-limit:] if from_end else encoded[:limit]
    return kept.decode(errors="ignore")
