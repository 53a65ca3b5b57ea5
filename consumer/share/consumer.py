"""The share consumer for asyncio: a member of a share group, whose records are acknowledged one by one."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, Protocol, Self
from uuid import UUID
from weakref import WeakSet

from ...client.errors import ConfigError, ConsumerClosedError
from ...client.surroundings import SURROUNDINGS
from ...client.waiting import Backoff, Signal, clock_of, now_ms
from ...protocol import AcknowledgeType, KohortError, TopicPartition
from ..errors import ForkedError
from ..event_lines import EventLines, tell_blocked_loop
from ..events import BrokerUnavailable, ConsumerFailed, Event, EventLog, LoopBlocked
from ..reading.user_decoders import Decoder, decode_data, make_decoder
from ..run.watchdogs import LoopWatch
from .config import share_consumer_config
from .event_lines import line_of_share
from .events import LockLost, ShareAssignmentChanged
from .exchange import ShareExchange
from .fetched import ShareReader
from .locks import Locks, already_said
from .member import ShareMembership
from .records import Judge, ShareRecord, WrongConsumerError, own_records

if TYPE_CHECKING:
    from typing import Unpack

    from ..typed_settings import ShareConsumerSettings

#: Time for a close in which nothing answers.
CLOSE_TIMEOUT_MS = 30_000.0
#: An event loop that is late by so much counts as blocked, in ms: the time between a consumer's heartbeats.
_LATE_MS = 3_000.0
#: A reader that never has to wait lets other tasks run after this long.
_TURN_S = 0.002


class Forked(Protocol):
    """In a forked child it belongs to the parent."""

    def _leave_to_parent(self) -> None: ...


#: Those of this process, and in a forked child those of its parent.
CONSUMERS: Final[WeakSet[Forked]] = WeakSet()


@dataclass(frozen=True, slots=True)
class ShareConsumerStatus:
    """State of the member: ``locked`` records are delivered and not acknowledged, ``buffered`` ones wait for
    delivery, and verdicts on ``unanswered`` ones are on their way. ``epoch`` is 0 for no member.
    """

    epoch: int
    member_id: str
    assigned: int
    locked: int
    buffered: int
    unanswered: int


class ShareConsumer:
    """Reads topics as a member of a share group, of Apache Kafka 4.2 or later or of kohort's broker.

    ``async with ShareConsumer("orders", bootstrap="localhost:9092", group="billing") as consumer:``, then
    ``async for record in consumer:`` and ``async with record: ...``; or ``accept``, ``release`` or ``reject``
    each record. A record is locked for this member until then; nothing is acknowledged by itself. Settings:
    see ShareConsumerConfig. Wrong ones raise ConfigError here, before anything connects.

    What is said of records is sent with the next fetch, or a little later; ``flush`` waits for the answers. A
    lock that was lost is a LockLost event, whose record is delivered again.

    ``decode`` and ``key_decode`` are as for AsyncGroupConsumer. Use it on one event loop.
    """

    def __init__(
        self,
        *topics: str,
        decode: object = None,
        key_decode: object = None,
        **config: Unpack[ShareConsumerSettings],
    ) -> None:
        self._topics = _check_topics(topics)
        self.config = settings = share_consumer_config(**config)
        self._decode, self._key_decode = make_decoder(decode, "value"), make_decoder(key_decode, "key")
        #: Typed events: iterate it, or give it a listener.
        self.events = EventLog()
        lines = EventLines(settings.group, lambda: now_ms() / 1000, line_of_share)
        #: Whether events are written to the logger ``kohort.consumer``.
        self.logged = True
        self.events.listen(lambda event: lines.write_event(event) if self.logged else None)
        self._more = Signal()
        #: Fires when a flush has its answers: many may wait for theirs at a time.
        self._answered = Signal()
        self._buffer: deque[ShareRecord] = deque()
        #: No fewer bytes than are buffered.
        self._most_bytes = 0
        self._error: Exception | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._loop_watch = LoopWatch(
            _LATE_MS,
            blocked=lambda late_ms, what: self._publish_event(LoopBlocked(late_ms, what)),
            blocking=lambda late_ms, what: tell_blocked_loop(settings.group, late_ms, what),
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Whom its records tell what becomes of them.
        self._judge: Judge = self
        self._started = self._closing = self._closed = False
        self._assignment_told = True
        self._process, self._thread_id = os.getpid(), 0
        #: How long records are delivered without a turn for others; 0 for not at all.
        self._turn_ends = 0.0
        self._clock: Callable[[], float] = time.monotonic
        rng = SURROUNDINGS.get().make_random()
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, rng=rng)
        self.cluster = settings.cluster(settings.default_api_timeout_ms, settings.max_response_bytes)
        member_id = str(UUID(int=rng.getrandbits(128), version=4))
        self._locks = Locks(self._publish_event, self._wake, settings.max_processing_ms)
        self._reader = ShareReader(self, settings.check_crcs, settings.max_decompressed_batch_bytes)
        self._exchange = ShareExchange(
            settings,
            self.cluster,
            self._locks,
            self._reader,
            member_id,
            backoff=backoff,
            topics=lambda: self._member.topics,
            assignment=lambda: self._member.assignment,
            deliver=self._on_records,
            buffered=self._count_buffered,
            report=self._publish_event,
            named=self._tell_assignment,
        )
        self._member = ShareMembership(
            self.cluster,
            settings.group,
            self._topics,
            member_id,
            rack=settings.client_rack,
            backoff=backoff,
            report=self._publish_event,
            assigned=self._on_assigned,
        )
        CONSUMERS.add(self)

    def __repr__(self) -> str:
        # in any thread: no look at what is locked
        member = self._member
        return (
            f"ShareConsumer({self.config.group!r}, epoch {member.epoch}, {len(member.assignment)} partitions)"
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # life

    async def start(self) -> None:
        """Connect and join the group. Raises BrokerConnectionError if no broker answers within
        default_api_timeout_ms.
        """
        if self._started or self._closed:
            raise ConsumerClosedError("a consumer starts once: make a new one")
        self._started, self._loop = True, asyncio.get_running_loop()
        self._thread_id, self._clock = get_ident(), clock_of(self._loop)
        try:
            await self.cluster.connect()
        except BaseException:
            self._closed = True
            await self.cluster.close()
            raise
        self.cluster.refused = self._on_failure
        jobs = [self._member.run(), self._exchange.run(), self._exchange.watch_topics()]
        if SURROUNDINGS.get().in_thread is None:
            jobs.append(self._loop_watch.run())
        for job in jobs:
            task = asyncio.create_task(job, name=f"kohort share consumer {self.config.group}")
            task.add_done_callback(self._on_task_ended)
            self._tasks.append(task)

    async def close(self, *, drain_timeout_ms: float = 0.0, timeout_ms: float = CLOSE_TIMEOUT_MS) -> None:
        """Send what was said, give back the rest, and leave the group.

        Nothing more is delivered. Waits up to ``drain_timeout_ms`` for records that other tasks work on, and
        up to ``timeout_ms`` for the rest; cancelled or not, connections are closed, and with them locks end.
        Called again meanwhile it waits for the first call.
        """
        if os.getpid() != self._process:
            return  # in a forked child, where it belongs to the parent
        self._require_own_loop()
        if not self._started:
            self._closed = True
        while self._closing and not self._closed:
            await self._more.wait()
        if self._closed:
            return
        self._closing, self._turn_ends = True, 0.0
        self.stop_fetching()
        self._more.fire()
        try:
            async with asyncio.timeout((drain_timeout_ms + timeout_ms) / 1000):
                await self._give_back(drain_timeout_ms)
                await self._end_tasks()
                await self._exchange.close()
                await self._member.leave()
        except TimeoutError as error:
            self._publish_event(BrokerUnavailable("closing the share consumer", error))
        except KohortError as error:
            self._publish_event(BrokerUnavailable("leaving the share group", error))
        finally:
            self._closed = True
            for task in self._tasks:
                task.cancel()
            await self.cluster.close()
            self._locks.end(now_ms(), "the consumer was closed")
            self._buffer.clear()
            self._more.fire()
            self._answered.fire()
            self.events.close()

    def stop_fetching(self) -> None:
        """Fetch nothing more. What is locked stays so."""
        self._exchange.reads = False

    async def _give_back(self, drain_ms: float) -> None:
        """Release what was not delivered, and wait for what others work on."""
        self._release_buffered()
        until = now_ms() + drain_ms
        while self._locks.any_held and (left := until - now_ms()) > 0:
            await self._more.wait(left)

    def _release_buffered(self) -> None:
        while self._buffer:
            record = self._buffer.popleft()
            if record.lock is not None:
                self._locks.acknowledge(record, AcknowledgeType.RELEASE, now_ms())

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def subscribe(self, *topics: str) -> None:
        """Subscribe to these topics instead. What is locked of others stays so."""
        self._require_running()
        self._topics = _check_topics(topics)
        self._member.subscribe(self._topics)
        self._exchange.assigned()

    def pause(self, *where: TopicPartition | str) -> None:
        """Fetch nothing of these partitions, or topics, until ``resume``. What is locked of them stays so."""
        self._exchange.paused.update(where)

    def resume(self, *where: TopicPartition | str) -> None:
        """Fetch again what was paused."""
        self._exchange.paused.difference_update(where)
        self._exchange.wake()

    def paused(self) -> frozenset[TopicPartition | str]:
        """The partitions and topics that are paused."""
        return frozenset(self._exchange.paused)

    # records

    async def __aiter__(self) -> AsyncIterator[ShareRecord]:
        # a generator: a coroutine for each record would cost as much as all else that is done with it
        buffer = self._buffer
        while one := await self.next_records(1, None):
            yield one[0]
            clock = self._clock
            # others have their turn before all are taken, so that a broker works on the next ones meanwhile
            first = len(buffer) - self._exchange.refill_at
            for _ in range(first if first > 0 else len(buffer)):
                if not buffer or (now := clock()) >= self._turn_ends:
                    break
                record = buffer.popleft()
                if not buffer:
                    self._exchange.wake()
                if (lock := record.lock) is not None and lock.deadline_ms > now * 1000:
                    yield record
                else:
                    self._refuse_late(record, now * 1000)

    async def __anext__(self) -> ShareRecord:
        if one := await self.next_records(1, None):
            return one[0]
        raise StopAsyncIteration

    async def batches(self, max_records: int | None = None) -> AsyncIterator[list[ShareRecord]]:
        """Lists of the available records, up to ``max_records`` (default max_locked_records)."""
        while batch := await self.next_records(max_records, None):
            yield batch

    async def getmany(
        self, max_records: int | None = None, timeout_ms: float | None = 1_000
    ) -> list[ShareRecord]:
        """The available records, up to ``max_records`` (default max_locked_records); empty after
        ``timeout_ms``.

        Raises FatalGroupError or KafkaError if the consumer cannot go on, and ConsumerClosedError.
        """
        self._require_running()
        return await self.next_records(max_records, timeout_ms)

    async def next_records(self, max_records: int | None, timeout_ms: float | None) -> list[ShareRecord]:
        """As ``getmany``, for a loop: empty when the consumer is closed."""
        limit = self.config.max_locked_records if max_records is None else max_records
        if limit < 1:
            raise ValueError(f"max_records is {limit}: ask for 1 or more")
        if not self._closing:
            self._require_running()
        until = None if timeout_ms is None else now_ms() + timeout_ms
        await self._give_way()
        buffer = self._buffer
        while not self._closing:
            if self._error is not None:
                raise self._error
            taken: list[ShareRecord] = []
            now = now_ms()
            while buffer and len(taken) < limit:
                record = buffer.popleft()
                if (lock := record.lock) is not None and lock.deadline_ms > now:
                    taken.append(record)
                else:
                    self._refuse_late(record, now)
            if not buffer:
                self._exchange.wake()
            if taken:
                return taken
            left_ms = None if until is None else until - now
            if left_ms is not None and left_ms <= 0:
                break
            await self._more.wait(left_ms)
        return []

    def _refuse_late(self, record: ShareRecord, now: float) -> None:
        """A record has waited for delivery until its lock ended."""
        if record.lock is not None:
            # if the broker has it locked all the same, it is delivered again sooner
            self._locks.acknowledge(record, AcknowledgeType.RELEASE, now)

    async def _give_way(self) -> None:
        """Let heartbeats and requests run: a reader may never wait."""
        await asyncio.sleep(0)
        goes_on = not self._closing and self._error is None
        self._turn_ends = self._clock() + _TURN_S if goes_on else 0.0

    async def decode(self, record: ShareRecord) -> Any:
        """The record's value, decoded by ``decode``; None for a null. Raises InvalidRecordError."""
        return await decode_data(self.decoder(), record.value)

    async def decode_key(self, record: ShareRecord) -> Any:
        """As ``decode``, the record's key, by ``key_decode``."""
        return await decode_data(self.decoder(key=True), record.key)

    def decoder(self, *, key: bool = False) -> Decoder:
        """The decoder of values, or of keys. Raises ConfigError if this consumer has none."""
        decoder, name = (self._key_decode, "key_decode") if key else (self._decode, "decode")
        if decoder is None:
            raise ConfigError(f"this consumer has no {name}: give it one, {name}=Order")
        return decoder

    # what is said of them

    def accept(self, records: ShareRecord | Iterable[ShareRecord]) -> None:
        """Say that a record, or each of several, is done. Raises AlreadyAcknowledgedError."""
        self._say(records, AcknowledgeType.ACCEPT)

    def release(self, records: ShareRecord | Iterable[ShareRecord]) -> None:
        """Give records back: they are delivered again, unless this was their last delivery."""
        self._say(records, AcknowledgeType.RELEASE)

    def reject(self, records: ShareRecord | Iterable[ShareRecord]) -> None:
        """Set records aside for good."""
        self._say(records, AcknowledgeType.REJECT)

    def renew(self, records: ShareRecord | Iterable[ShareRecord]) -> None:
        """Have the locks of records begin anew, beside what the consumer renews by itself."""
        self._require_own_loop()
        for record in own_records(records, self._judge):
            self._locks.renew(record)

    def _say(self, records: ShareRecord | Iterable[ShareRecord], verdict: AcknowledgeType) -> None:
        self._require_own_loop()
        self._locks.acknowledge_all(own_records(records, self._judge), verdict, now_ms())

    def acknowledge(self, record: ShareRecord, verdict: AcknowledgeType) -> None:
        """Queue what a record says of itself."""
        noted = self._locks.noted
        if not noted or get_ident() != self._thread_id:
            self._locks.acknowledge(record, verdict, self._require_own_loop().time() * 1000)
            return
        # as above: the loop has not had its turn since it was looked for
        if record.verdict is not None:
            raise already_said(record)
        record.verdict = verdict
        noted.append(record)

    def take_verdicts(self, judge: Judge) -> None:
        """Have records tell another judge, in another thread, what becomes of them."""
        self._judge = self._reader.judge = judge

    def queue_verdicts(self, records: Iterable[ShareRecord]) -> None:
        """Queue what was said of records in other threads."""
        self._locks.note(records, now_ms())

    async def flush(self, timeout_ms: float | None = None) -> dict[ShareRecord, KohortError | None]:
        """Wait until all that was said before has been answered; return the answers by record.

        None: it counts. LockLostError: the lock had ended. BrokerConnectionError: the answer was lost, so it
        may count or not. Records whose answers did not come within ``timeout_ms`` (default
        default_api_timeout_ms) are left out.
        """
        self._require_own_loop()
        flush = self._locks.begin_flush(self._answered.fire)
        until = now_ms() + (self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms)
        try:
            while flush.left and self._exchange.runs and not self._closed and (left := until - now_ms()) > 0:
                await self._answered.wait(left)
        finally:
            self._locks.flushes.remove(flush)
        return flush.answers

    # state

    @property
    def state(self) -> ShareConsumerStatus:
        """State of the member, and how many records are where."""
        buffered = len(self._buffer)
        return ShareConsumerStatus(
            self._member.epoch,
            self._member.member_id,
            len(self._member.assignment),
            self._locks.count(self._locks.held) - buffered,
            buffered,
            self._locks.unanswered,
        )

    @property
    def outage_s(self) -> float:
        """Seconds for which a broker, or a request, that is still tried has had no success; 0 if all has."""
        return self.cluster.outage_s

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the coordinator has assigned, as far as their topics' names are known."""
        names = (self._exchange.name_of(place) for place in self._member.assignment)
        return frozenset(name for name in names if name is not None)

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to."""
        return self._topics

    # inside

    def _on_records(self, records: list[ShareRecord], size: int) -> None:
        self._most_bytes = size + (self._most_bytes if self._buffer else 0)
        self._buffer.extend(records)
        if self._closing:
            # of a fetch that was under way: nobody gets them, and the close waits for none of them
            self._release_buffered()
        self._more.fire()

    def _count_buffered(self) -> tuple[int, int]:
        """How many records wait for delivery, and their bytes, exactly where these are many."""
        if self._most_bytes >= self.config.fetch_max_bytes:
            self._most_bytes = sum(map(_size_of, self._buffer))
        return len(self._buffer), self._most_bytes

    def _on_assigned(self) -> None:
        self._assignment_told = False
        self._exchange.assigned()
        self._tell_assignment()

    def _tell_assignment(self) -> None:
        """Tell the assignment once the names of its topics are known."""
        named = self.assignment()
        if not self._assignment_told and len(named) == len(self._member.assignment):
            self._assignment_told = True
            self._publish_event(ShareAssignmentChanged(tuple(sorted(named)), self._member.epoch))

    def _wake(self) -> None:
        self._exchange.wake()
        if self._closing or self._locks.flushes:
            self._more.fire()

    def _require_running(self) -> None:
        if not self._started or self._closed:
            state = "has been closed" if self._closed else "was not started: use it in 'async with'"
            raise ConsumerClosedError(f"this consumer {state}")
        self._require_own_loop()

    def _require_own_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop. Raises WrongConsumerError in other threads and loops, where nothing is safe, and
        ForkedError in a forked child.
        """
        try:
            # in a forked child none runs
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if loop is not None and self._loop in (None, loop):
            return loop
        if os.getpid() != self._process:
            raise ForkedError
        raise WrongConsumerError(
            "a ShareConsumer and its records are used on its event loop: elsewhere hand the call over "
            "with loop.call_soon_threadsafe(record.accept), or take a BlockingShareConsumer"
        )

    def _leave_to_parent(self) -> None:
        """In a forked child, whose thread has the number of the parent's, nothing is only noted."""
        self._thread_id = 0

    def _publish_event(self, event: Event) -> None:
        self.events.publish(event)
        if isinstance(event, LockLost):
            self._more.fire()

    def _on_task_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        assert isinstance(error, Exception), "others are not kept in tasks"
        self._on_failure(error)

    def _on_failure(self, error: Exception) -> None:
        if self._error is None:
            self._error, self._turn_ends = error, 0.0
            self._publish_event(ConsumerFailed(error))
            self._more.fire()
            self._answered.fire()


def _size_of(record: ShareRecord) -> int:
    size = len(record.value or b"") + len(record.key or b"")
    return size + sum(len(name) + len(value or b"") for name, value in record.headers)


def _check_topics(topics: Iterable[Any]) -> frozenset[str]:
    names = tuple(topics)
    if not names or not all(isinstance(topic, str) and topic for topic in names):
        raise ConfigError(f"topics are {names!r}: give the names of one or more")
    return frozenset(names)


def _on_forked() -> None:
    for consumer in CONSUMERS:
        consumer._leave_to_parent()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_on_forked)
