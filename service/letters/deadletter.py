"""Writes letters: records on which a handler failed, to a topic of dead letters or of retries."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...client.cluster import Cluster
from ...client.errors import BrokerConnectionError
from ...client.surroundings import SURROUNDINGS
from ...consumer.errors import ConsumerError, message_of
from ...consumer.run.assembly import make_cluster
from ...producer import Producer, ProducerError, ProducerRecord
from ...protocol import ErrorCode, KafkaError
from ...settings import MAX_INT, MAX_LONG
from .failed_records import (
    DEAD_LETTER_HEADERS,
    MESSAGE_HEADER,
    RETRY_DUE_HEADER,
    STACK_HEADER,
    read_retry,
)

if TYPE_CHECKING:
    from ...consumer.config import ConsumerConfig
    from ...consumer.record import Record
    from ...consumer.share.config import ShareConsumerConfig

#: Most bytes of error text and of stack in a header: the record must still fit into the topic.
MAX_ERROR_BYTES = 1_000
MAX_STACK_BYTES = 8_000
#: Most bytes of the error text of a letter that was too large for its topic; its stack is left out.
BRIEF_ERROR_BYTES = 100
#: Time for a dead letter to be acknowledged before the service stops.
SEND_TIMEOUT_MS = 30_000

TOO_LARGE = frozenset((ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE))


class DeadLetterError(ConsumerError):
    """A record could not be written to its dead-letter or retry topic. It stays uncommitted, and the service
    stops.
    """


class DeadLetters:
    """Writes records to dead-letter and retry topics, over connections of its own, opened with the first one.

    Key, value and headers are kept, and the headers below added. A letter goes to the partition with the
    number of its origin (modulo the number of partitions), so that letters of one partition keep their order.
    """

    def __init__(self, config: Callable[[], ConsumerConfig | ShareConsumerConfig], group: str) -> None:
        self._config = config
        self._group = group
        self._producer: Producer | None = None
        self._cluster: Cluster | None = None

    async def send(
        self, topic: str, record: Record, error: BaseException, attempts: int, due_ms: int | None = None
    ) -> None:
        """Return when all in-sync replicas have the record. Raises DeadLetterError after SEND_TIMEOUT_MS."""
        try:
            producer = self._producer or await self._start()
            count = await producer.partitions_for(topic)
            written = make_letter(topic, count, record, error, attempts, self._group, due_ms)
            try:
                await _write_letter(producer, written)
            except KafkaError as refusal:
                if refusal.code not in TOO_LARGE:
                    raise
                await _write_letter(producer, brief_letter(written))
        except (KafkaError, BrokerConnectionError, ProducerError) as failure:
            where = f"{record.topic}-{record.partition} at offset {record.offset}"
            raise DeadLetterError(
                f"{where} could not be written to its {'dead-letter' if due_ms is None else 'retry'} topic "
                f"{topic!r}: {failure}. "
                "Make sure that the topic exists, that this client may write to it, and that its "
                f"max.message.bytes is not less than that of {record.topic!r}"
            ) from failure

    async def _start(self) -> Producer:
        config = self._config()
        self._cluster = make_cluster(config)
        self._producer = producer = Producer.on_cluster(
            self._cluster,
            # a duplicate letter does no harm, and a producer id would need a further right
            enable_idempotence=False,
            # records may have been compressed, and the topic limits the size of batches as sent
            compression="gzip",
            linger_ms=0,
            max_request_size=MAX_INT,
            buffer_memory=MAX_LONG,  # the service bounds what its handlers hold
            request_timeout_ms=SEND_TIMEOUT_MS,
            delivery_timeout_ms=SEND_TIMEOUT_MS,
            max_block_ms=SEND_TIMEOUT_MS,
            retry_backoff_ms=config.retry_backoff_ms,
            retry_backoff_max_ms=config.retry_backoff_max_ms,
        )
        await producer.start()
        return producer

    async def close(self) -> None:
        """Close the connections."""
        if self._producer is not None and self._cluster is not None:
            await self._producer.close(timeout_ms=0)  # nobody waits for a letter any more
            await self._cluster.close()


async def _write_letter(producer: Producer, written: ProducerRecord) -> None:
    await producer.send_and_wait(*written)


def make_letter(
    topic: str,
    partitions: int,
    record: Record,
    error: BaseException,
    attempts: int,
    group: str,
    due_ms: int | None = None,
) -> ProducerRecord:
    """The letter for a record, for a topic with this many partitions; with ``due_ms``, for a retry topic.

    If the record is itself a letter of a retry topic, the new letter replaces it.
    """
    before = read_retry(record)
    if before is not None:
        record, attempts = before.record, before.letter.attempts + attempts
    headers = [*record.headers, *error_headers(record, error, attempts, group)]
    if due_ms is not None:
        headers.append((RETRY_DUE_HEADER, str(due_ms).encode()))
    return ProducerRecord(topic, record.value, record.key, record.partition % partitions, headers=headers)


def brief_letter(letter: ProducerRecord) -> ProducerRecord:
    """The letter with only the beginning of its error's text and without the stack.

    So a record that just fits into a topic fits there as a letter too.
    """
    kept = {MESSAGE_HEADER: BRIEF_ERROR_BYTES, STACK_HEADER: 0}
    headers = [
        (name, (value or b"")[: kept[name]] if name in kept else value) for name, value in letter.headers
    ]
    return letter._replace(headers=headers)


def error_headers(
    record: Record, error: BaseException, attempts: int, group: str
) -> list[tuple[str, bytes | None]]:
    """The headers of a dead letter; all values are UTF-8 text."""
    cause = error.__cause__ if error.__cause__ is not None else error
    stack = "".join(traceback.format_exception(error))
    texts = (
        record.topic,
        str(record.partition),
        str(record.offset),
        str(record.timestamp_ms),
        group,
        str(attempts),
        f"{type(cause).__module__}.{type(cause).__qualname__}",
        _cut_text(message_of(error), MAX_ERROR_BYTES),
        # the end of a stack says most
        _cut_text(stack, MAX_STACK_BYTES, from_end=True),
    )
    return [(name, text.encode()) for name, text in zip(DEAD_LETTER_HEADERS, texts, strict=True)]


def wall_ms() -> int:
    """The time now, in ms since 1970."""
    return SURROUNDINGS.get().time_ms()


def _cut_text(text: str, limit: int, *, from_end: bool = False) -> str:
    encoded = text.encode(errors="backslashreplace")
    kept = encoded[-limit:] if from_end else encoded[:limit]
    return kept.decode(errors="ignore")
