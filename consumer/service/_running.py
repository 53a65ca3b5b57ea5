"""A running handler: its key queues, its threads, and back-pressure on partitions that fall behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from ..errors import ConsumerError
from ._handlers import Handler, SendDeadLetter
from ._queues import Outcome, PartitionQueues, QueueScheduler
from ._threads import DaemonThreads

if TYPE_CHECKING:
    from ...protocol import TopicPartition
    from ..record import Record

#: A partition pauses at this number of waiting records or more: enough not to wait for the next fetch.
MIN_BACKLOG = 1_000
#: Time for cancelled handlers to end when the service does.
CLOSE_TIMEOUT_S = 1.0

log = logging.getLogger("kohort.consumer.service")


@dataclass(slots=True, eq=False, repr=False)
class RunningHandler:
    """Feeds one handler. Calls ``pause`` for a partition with many waiting records, and later ``resume``.

    Each partition pauses by itself, so that a slow one delays no others.
    """

    handler: Handler
    _: KW_ONLY
    done: Callable[[Record], None]
    send: SendDeadLetter
    on_failure: Callable[[Exception], None]
    pause: Callable[[TopicPartition], None]
    resume: Callable[[TopicPartition], None]
    finished: int = 0
    queues: QueueScheduler = field(init=False)
    _expects_keys: bool = field(init=False)
    _most_records: int = field(init=False)
    _most_bytes: int = 0
    _threads: DaemonThreads | None = None

    def __post_init__(self) -> None:
        handler = self.handler
        self._expects_keys = handler.lanes == "key"
        self._most_records = max(MIN_BACKLOG, 4 * max(handler.concurrency, handler.batch))
        if not handler.is_async:
            self._threads = DaemonThreads(handler.concurrency, f"kohort-{handler.name}")
        self.queues = QueueScheduler(
            self._run,
            key_of=handler.key_of,
            concurrency=handler.concurrency,
            batch=handler.batch,
            done=self._finish,
            on_failure=self._failed,
        )

    def hand_over(self, partition: TopicPartition, records: list[Record], most_bytes: int) -> None:
        """Add records of a partition to their queues; with more than ``most_bytes`` there, it pauses."""
        if self._expects_keys:
            self._look_for_missing_keys(records)
        self._most_bytes = most_bytes
        held = self.queues.add(partition, records[0].session_id, records)
        if held is None or held.paused:
            return
        if held.records > self._most_records or held.bytes > most_bytes:
            held.paused = True
            self.pause(partition)

    def _look_for_missing_keys(self, records: list[Record]) -> None:
        """Warn once about records without keys: whether producers set them shows only in their records."""
        record = next((record for record in records if record.key is None), None)
        if record is None:
            return
        self._expects_keys = False
        log.warning(
            'handler %s has lanes="key", but the record of %s-%d at offset %d has no key: such records '
            "are handled one after the other in each partition. Have their producer set keys, or take "
            'lanes="partition", or lanes="none" where order does not matter',
            self.handler.name,
            record.topic,
            record.partition,
            record.offset,
        )

    async def release(self, partitions: Iterable[TopicPartition] | None, timeout_ms: float) -> None:
        """Finish partitions (None: all) within the time; cancelled records are logged."""
        if partitions is None:
            unfinished = await self.queues.release_all(timeout_ms / 1000)
        else:
            mine = [partition for partition in partitions if partition.topic in self.handler.topics]
            unfinished = await self.queues.release(mine, timeout_ms / 1000)
        firsts: dict[TopicPartition, list[int]] = {}
        for each in unfinished:
            firsts.setdefault(each.partition, []).append(each.offset)
        for (topic, number), offsets in firsts.items():
            log.warning(
                "handler %s had not finished %s-%d at offset %d%s within %.1f s and was cancelled: "
                "what is not committed will be handled again",
                self.handler.name,
                topic,
                number,
                min(offsets),
                f" and {len(offsets) - 1} more records" if len(offsets) > 1 else "",
                timeout_ms / 1000,
            )

    async def close(self) -> None:
        """Cancel all calls; threads that still run end by themselves."""
        late = await self.queues.close(CLOSE_TIMEOUT_S)
        if late:
            text = "handler %s was cancelled and does not end: %d calls of it are still under way"
            log.warning(text, self.handler.name, late)
        if self._threads is not None:
            self._threads.close()

    def _run(self, records: list[Record], attempt: int) -> Awaitable[Outcome]:
        return self.handler.run(records, attempt, self._threads, self.send)

    def _finish(self, record: Record, held: PartitionQueues) -> None:
        self.done(record)
        self.finished += 1
        if held.paused and 2 * held.records <= self._most_records and 2 * held.bytes <= self._most_bytes:
            held.paused = False
            self.resume(held.partition)

    def _failed(self, error: BaseException) -> None:
        if not isinstance(error, Exception):
            cancelled = isinstance(error, asyncio.CancelledError)
            what = "was cancelled from outside" if cancelled else f"raised {type(error).__name__}"
            cause, error = error, ConsumerError(f"handler {self.handler.name} {what}")
            error.__cause__ = cause
        self.on_failure(error)
