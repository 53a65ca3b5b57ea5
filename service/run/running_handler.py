"""A running handler: its key queues, its threads, and back-pressure on partitions that fall behind."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from ...client.threads import DaemonThreads
from ...consumer.errors import ConsumerError
from ..handlers.handler import Handler, SendDeadLetter
from ..letters.deadletter import wall_ms
from ..letters.failed_records import read_retry
from ..share.deliveries import all_lost
from .queues import Outcome, PartitionQueues, QueueScheduler, size_of

if TYPE_CHECKING:
    from ...consumer.record import Record
    from ...protocol import TopicPartition

#: A partition pauses at this number of waiting records or more: enough not to wait for the next fetch.
MIN_BACKLOG = 1_000
#: Time for cancelled handlers to end when the service does.
CLOSE_TIMEOUT_S = 1.0

log = logging.getLogger("kohort.service")


@dataclass(slots=True, eq=False)
class _Postponed:
    """Records of a retry topic's partition whose first one is not due; none if even that was given back."""

    records: list[Record]
    timer: asyncio.TimerHandle


@dataclass(slots=True, eq=False)
class _Arrivals:
    """When records of a session were read first, by the loop's clock: each entry is for the offsets up to its
    own. A record that is given back keeps its time.
    """

    session_id: int
    entries: list[tuple[int, float]] = field(default_factory=list)

    def note_arrival(self, last_offset: int, now: float) -> None:
        if not self.entries or last_offset > self.entries[-1][0]:
            self.entries.append((last_offset, now))

    def time_of(self, offset: int) -> float:
        return self.entries[bisect_left(self.entries, (offset,))][1]

    def forget_before(self, offset: int) -> None:
        del self.entries[: bisect_left(self.entries, (offset,))]


@dataclass(slots=True, eq=False, repr=False)
class RunningHandler:
    """Feeds one handler. Calls ``pause`` for a partition with many waiting records, and later ``resume``.
    ``dropped`` gets records that are neither done nor with a handler any more.

    Each partition pauses by itself, so that a slow one delays no others. A retry topic's partition pauses
    also while its next record is not due; what is over its share of memory meanwhile is passed to
    ``give_back`` and comes again.
    """

    handler: Handler
    _: KW_ONLY
    done: Callable[[Record], None]
    send: SendDeadLetter
    on_failure: Callable[[Exception], None]
    pause: Callable[[TopicPartition], None]
    resume: Callable[[TopicPartition], None]
    give_back: Callable[[Record], None]
    dropped: Callable[[Record], None] = lambda _: None
    finished: int = 0
    queues: QueueScheduler = field(init=False)
    _expects_keys: bool = field(init=False)
    _most_records: int = field(init=False)
    _most_bytes: int = 0
    _halted: bool = False
    _threads: DaemonThreads | None = None
    _burials: set[asyncio.Task[None]] = field(default_factory=set)
    _postponed: dict[TopicPartition, _Postponed] = field(default_factory=dict)
    #: Of retry topics' partitions with records that were not due.
    _arrivals: dict[TopicPartition, _Arrivals] = field(default_factory=dict)

    def __post_init__(self) -> None:
        handler = self.handler
        self._expects_keys = handler.lanes == "key"
        self._most_records = max(MIN_BACKLOG, 4 * max(handler.concurrency, handler.batch))
        if not handler.is_async or handler.may_wait:
            self._threads = DaemonThreads(handler.concurrency, f"kohort-{handler.name}")
        self.queues = QueueScheduler(
            self._run,
            key_of=handler.key_of,
            concurrency=handler.concurrency,
            batch=handler.batch,
            done=self._finish_record,
            on_failure=self._on_failure,
            dropped=self._drop_record,
            is_late=None if handler.deliveries is None else handler.deliveries.is_over,
            held=handler.held,
        )

    def hold(self, held: bool) -> None:
        """Stop beginning calls, or resume. Waiting records stay, up to the backlog of each partition."""
        self.handler.held = held
        self.queues.hold(held or self._halted)

    def drop(self, record: Record) -> bool:
        """Drop a record that others have by now; return whether its handler is at it. A call that has none
        but lost records is cancelled; in a thread it runs on.
        """
        queue = self.queues.drop(record.topic_partition, record)
        if queue is not None and all_lost(queue.taken):
            self.queues.leave_call(queue, cancel=self.handler.is_async)
        return queue is not None

    def halt(self, halted: bool, owned: Container[TopicPartition]) -> None:
        """As ``hold``, while others may own the partitions; at its end those that are not owned are lost."""
        self._halted = halted
        if not halted:
            self.queues.keep(owned)
        self.queues.hold(halted or self.handler.held)

    def hand_over(self, partition: TopicPartition, records: list[Record], most_bytes: int) -> None:
        """Add records of a partition to their queues; with more than ``most_bytes`` there, it pauses."""
        if self._expects_keys:
            self._look_for_missing_keys(records)
        self._most_bytes = most_bytes
        if self.handler.deliveries is not None:
            records = [record for record in records if not self._bury_last(record)]
        if not records:
            return
        if partition.topic in self.handler.retry_topics:
            self._hand_over_due(partition, records)
        else:
            self._add_records(partition, records)

    def _bury_last(self, record: Record) -> bool:
        """Begin to write the letter of a record that is for it, ahead of all that waits; return whether."""
        if not self.handler.is_for_letter(record):
            return False

        async def bury() -> None:
            try:
                await self.handler.bury(record, self.send)
                self.done(record)
                self.finished += 1
            except asyncio.CancelledError:
                self.dropped(record)
                raise
            except Exception as error:
                self.dropped(record)
                self._on_failure(error)

        burial = asyncio.get_running_loop().create_task(bury())
        self._burials.add(burial)
        burial.add_done_callback(self._burials.discard)
        return True

    def _hand_over_due(self, partition: TopicPartition, records: list[Record]) -> None:
        """Hand over the records up to the first that is not due, and the rest later.

        Clocks differ: a record is also due when the topic's delay has passed since it was read.
        """
        earlier = self._postponed.pop(partition, None)
        if earlier is not None:
            earlier.timer.cancel()
            if not records or not earlier.records or earlier.records[0].session_id == records[0].session_id:
                records = [*earlier.records, *records]
        waits = self._waits_s(partition, records)
        due = next((nth for nth, wait_s in enumerate(waits) if wait_s > 0), len(records))
        if due:
            self._add_records(partition, records[:due])
        if due < len(records):
            self.pause(partition)
            left = records[due:]
            wait_s = next(self._waits_s(partition, left[:1]))
            timer = asyncio.get_running_loop().call_later(wait_s, self._hand_over_due, partition, [])
            self._arrivals[partition].forget_before(left[0].offset)
            self._postponed[partition] = _Postponed(self._keep_records(left), timer)
            return
        if records:
            del self._arrivals[partition]
        if earlier is not None and not self.queues.is_paused(partition):
            self.resume(partition)

    def _waits_s(self, partition: TopicPartition, records: list[Record]) -> Iterator[float]:
        """How long each record is not due, in seconds; 0 or less if it is."""
        if not records:
            return
        now, wall = asyncio.get_running_loop().time(), wall_ms()
        arrivals = self._arrivals.get(partition)
        if arrivals is None or arrivals.session_id != records[0].session_id:
            arrivals = self._arrivals[partition] = _Arrivals(records[0].session_id)
        arrivals.note_arrival(records[-1].offset, now)
        delay_s = self.handler.retry_topics[partition.topic] / 1000
        for record in records:
            yield min((_due_ms(record) - wall) / 1000, arrivals.time_of(record.offset) + delay_s - now)

    def _keep_records(self, records: list[Record]) -> list[Record]:
        """As many of a partition's records as have room; the rest are given back."""
        room = self._most_bytes - self.queues.bytes_of(records[0].topic_partition)
        count = bisect_right(list(accumulate(map(size_of, records))), room)
        if count < len(records):
            self.give_back(records[count])
        return records[:count]

    def _add_records(self, partition: TopicPartition, records: list[Record]) -> None:
        held = self.queues.add(partition, records[0].session_id, records)
        if held is None or held.paused:
            return
        if held.records > self._most_records or held.bytes > self._most_bytes:
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
            self._drop_postponed([*self._postponed, *self._arrivals])
            (_, unfinished) = await asyncio.gather(
                self._finish_burials(timeout_ms / 1000), self.queues.release_all(timeout_ms / 1000)
            )
        else:
            mine = [partition for partition in partitions if partition.topic in self.handler.all_topics]
            self._drop_postponed(mine)
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

    async def _finish_burials(self, timeout_s: float) -> None:
        if self._burials:
            _, late = await asyncio.wait(self._burials, timeout=timeout_s)
            for burial in late:
                burial.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _drop_postponed(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._arrivals.pop(partition, None)
            if (postponed := self._postponed.pop(partition, None)) is not None:
                postponed.timer.cancel()

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

    def _finish_record(self, record: Record, held: PartitionQueues) -> None:
        self.done(record)
        self.finished += 1
        self._resume_with_room(held)

    def _drop_record(self, record: Record, held: PartitionQueues) -> None:
        self.dropped(record)
        if held.ended is None:
            self._resume_with_room(held)

    def _resume_with_room(self, held: PartitionQueues) -> None:
        if held.paused and 2 * held.records <= self._most_records and 2 * held.bytes <= self._most_bytes:
            held.paused = False
            if held.partition not in self._postponed:
                self.resume(held.partition)

    def _on_failure(self, error: BaseException) -> None:
        if not isinstance(error, Exception):
            cancelled = isinstance(error, asyncio.CancelledError)
            what = "was cancelled from outside" if cancelled else f"raised {type(error).__name__}"
            cause, error = error, ConsumerError(f"handler {self.handler.name} {what}")
            error.__cause__ = cause
        self.on_failure(error)


def _due_ms(record: Record) -> int:
    """When a record of a retry topic is due; records that are not letters are due at once."""
    letter = read_retry(record)
    return 0 if letter is None else letter.due_ms
