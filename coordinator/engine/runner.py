"""Runs one shard on asyncio: its writes, its timer, and the calls that wait for responses.

A request steps the shard at once; the records that the shard hands out are collected until all ready requests
have been handled (:class:`Writes`), then written as one batch, and the responses that wait for it are sent in
order. So requests that arrive together share the cost of a write, and the faster they arrive the more of them
share it.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Generic, Protocol, TypeVar

from ...offsets_topic import FullDiskError
from ...protocol import ErrorCode, KafkaError
from .effects import NO_PRODUCER, Append, Command, Reply, Request
from .events import CoordinatorEvent, ShardLoaded, ShardLoading
from .loader import LoadedBatch, Loader
from .shard import S, Shard
from .timers import NEVER

#: Most bytes of keys and values in one batch; a single larger write gets a batch of its own.
_BATCH_BYTES: Final = 512 * 1024

# most records loaded before other tasks run
_LOAD_SLICE: Final = 2_000
# longest time, in ms, for which timers fire before other tasks run
_TIMERS_MS: Final = 10
# longest time, in seconds, that a write without a waiting request waits for others
_LAZY_S: Final = 0.001
# pause, in seconds, before a partition that a full disk keeps from being read is tried again: an attempt may
# read a whole segment on the loop, and leaves nine tenths of the time to others
_AGAIN_S, _MOST_AGAIN_S = 1.0, 60.0
# interval at which a long load reports its progress
_PROGRESS_MS: Final = 5_000

_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_PRODUCER: Final = attrgetter("producer_id", "producer_epoch", "marker")

#: If nothing was read for this long, in seconds, the loop was not in the middle of reading many sockets.
_REST_S: Final = 15e-6
_clock: Final = time.perf_counter

_UNANSWERED: Final = object()

#: Turns of the loop after which everything that had arrived before is handled: timers may fire before sockets
#: are read, and a request may be read in one turn and taken in the next.
READ_TURNS: Final = 3

T = TypeVar("T")


def when_read(action: Callable[[], None], turns: int = READ_TURNS) -> None:
    """Call ``action`` when all requests that have arrived by now are handled.

    For timers: after the process stood still (SIGSTOP, a migrated machine), requests that were in time are
    still waiting in the sockets.
    """
    if turns:
        asyncio.get_running_loop().call_soon(when_read, action, turns - 1)
    else:
        action()


class CoordinatorLog(Protocol):
    """The internal topic as a coordinator needs it.

    ``append`` writes one batch and returns its offset. With a producer it is part of that producer's
    transaction; a marker, (committed, epoch of the transaction's coordinator), ends the transaction instead;
    then there are no records. Raises KafkaError.
    """

    @property
    def partition_count(self) -> int:
        """Number of the topic's partitions."""

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        now_ms: int,
        /,
        *,
        producer_id: int = ...,
        producer_epoch: int = ...,
        marker: tuple[bool, int] | None = ...,
    ) -> int:
        """Append records as one batch; return the offset of the first. Raises KafkaError."""

    def load(self, partition: int, /) -> Iterator[LoadedBatch]:
        """Yield every batch of a partition, from its start."""

    def flush(self, partition: int, /) -> None:
        """Sync what was appended to a partition."""


class ShardReplicas(Protocol):
    """The copies that other brokers have of the internal topic's partitions.

    ``when_committed`` returns whether everything below an offset is committed. If not, ``then`` is called
    once: with None when it is, or with the reason why this broker cannot know. ``when_loaded`` does the same
    for what the log has now, and asks whether all in-sync replicas have it: while too few of them are in sync
    nothing becomes committed, and yet it can get lost no more. Requests that wait longer than ``timeout_s``
    are refused. ``may_be_replaced`` returns whether another broker may lead a partition by now, without this
    one having heard of it.
    """

    timeout_s: float

    def when_committed(
        self, partition: int, end_offset: int, then: Callable[[KafkaError | None], None], /
    ) -> bool: ...

    def when_loaded(self, partition: int, then: Callable[[KafkaError | None], None], /) -> bool: ...

    def may_be_replaced(self, partition: int, /) -> bool: ...


class Handle(Protocol):
    """Receives the response to a request, once."""

    def set(self, body: object, /) -> None:
        """Take the response, once."""


class Call:
    """A request's handle: the response arrives here, before or after it is awaited."""

    __slots__ = ("_future", "body")

    def __init__(self) -> None:
        self.body: Any = _UNANSWERED
        self._future: asyncio.Future[None] | None = None

    def set(self, body: object) -> None:
        """See Handle."""
        assert self.body is _UNANSWERED, "a request is answered once"
        self.body = body
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def answer(self) -> Any:
        """Wait for the response and return it."""
        if self.body is _UNANSWERED:
            self._future = asyncio.get_running_loop().create_future()
            await self._future
        return self.body


class Writes:
    """The pending writes of shards, and when they go out.

    They go out in the loop's next turn, after all ready requests. But the network layer reports when a read
    begins and ends: if nothing was read for a while before, no other request is likely to be ready, and the
    writes go out when the read ends.
    """

    def __init__(self) -> None:
        self._due: list[Callable[[], None]] = []
        self._planned = False
        self._reading = False
        self._rested = False
        self._ended_s = 0.0

    def add(self, write: Callable[[], None]) -> None:
        """Register a write: it is done when the read of a socket ends, or soon."""
        self._due.append(write)
        if not self._reading:
            self._plan_write()

    def begin_read(self) -> None:
        """A socket is being read: its requests' records are to share one batch."""
        self._reading = True
        self._rested = _clock() - self._ended_s > _REST_S

    def end_read(self) -> None:
        """The read is over: write what was gathered."""
        self._reading = False
        if self._due:
            if self._rested and not self._planned:
                self._write_gathered()
            else:
                self._plan_write()
        self._ended_s = _clock()

    def _plan_write(self) -> None:
        if not self._planned:
            self._planned = True
            asyncio.get_running_loop().call_soon(self._write_gathered)

    def _write_gathered(self) -> None:
        self._planned = False
        due, self._due = self._due, []
        for write in due:
            try:
                write()
            except Exception as error:
                context = {"message": "a shard's write failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)


@dataclass(slots=True, eq=False)
class ShardRunner(Generic[S]):
    """One shard with its writes and its timer."""

    partition: int
    shard: Shard[S]
    log: CoordinatorLog
    clock_ms: Callable[[], int]
    on_event: Callable[[CoordinatorEvent], None]
    writes: Writes
    fsync: bool
    linger_ms: int = -1
    on_command: Callable[[ShardRunner[S], Command], None] | None = None
    replicas: ShardReplicas | None = None
    ahead_ms: Callable[[], int] = lambda: 0
    loading: bool = True
    skipped: int = 0
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)
    _pending: list[Append] = field(default_factory=list)
    _then: list[Callable[[Shard[S], int], None]] = field(default_factory=list)
    _alarm: asyncio.Handle | None = None
    _alarm_ms: int = NEVER
    _flush_due: bool = False
    # the next attempt to load what a full disk kept from being read
    _again: asyncio.TimerHandle | None = None
    _reload: asyncio.Task[None] | None = None
    # a pending write belongs to a transaction
    _mixed: bool = False
    _closed: bool = False

    async def load(self) -> None:
        """Load the partition, yielding to other tasks now and then, then start to serve. Where a full disk
        keeps it from being read this is repeated until there is room.
        """
        began_ms = self.clock_ms()
        try:
            await self._load_log()
        except FullDiskError:
            pause_s = min(max(_AGAIN_S, 9 * (self.clock_ms() - began_ms) / 1_000), _MOST_AGAIN_S)
            self._again = asyncio.get_running_loop().call_later(pause_s, self._begin_load)

    def _begin_load(self) -> None:
        self._reload = asyncio.get_running_loop().create_task(self.load())

    async def _load_log(self) -> None:
        started_ms = self.clock_ms()
        loader = Loader(self.shard, self.partition, self._report_event)
        told_ms, count = started_ms, 0
        for records in loader.run(self.log.load(self.partition)):
            count += records
            if count >= _LOAD_SLICE:
                count = 0
                await asyncio.sleep(0)
                if self._closed:
                    return
                now_ms = self.clock_ms()
                if now_ms - told_ms >= _PROGRESS_MS:
                    told_ms = now_ms
                    self._report_event(ShardLoading("", self.partition, loader.records, now_ms - started_ms))
        if self.replicas is not None:
            # records that not all replicas have may be lost with this broker: serve nothing that depends on
            # them
            error = await self._wait_until_committed(self.replicas)
            loader.failed = loader.failed or error is not None
            if self._closed:
                return
        now_ms = self.clock_ms()
        self.skipped = loader.skipped
        if loader.failed:
            # responses from half a log would start consumers at wrong offsets
            self.shard.unload(now_ms)
        else:
            self.shard.activate(now_ms)
        self.loading = False
        self._loaded.set()
        if loader.records:
            count, took_ms = self.shard.topic.count(self.shard.state), now_ms - started_ms
            self._report_event(
                ShardLoaded("", self.partition, loader.records, loader.skipped, count, took_ms)
            )
        self._carry_out()
        for step in self._then:
            self._step_durably(step)
        self._then.clear()

    async def _wait_until_committed(self, replicas: ShardReplicas) -> KafkaError | None:
        """Wait until all replicas have all that was loaded; return the reason if this broker cannot know."""
        done: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()

        def then(error: KafkaError | None) -> None:
            # the load may have been cancelled: another broker has the partition by now
            if not done.done():
                done.set_result(error)

        if replicas.when_loaded(self.partition, then):
            return None
        return await done

    async def wait_loaded(self, seconds: float) -> None:
        """Return when the shard is loaded, or after a timeout."""
        try:
            await asyncio.wait_for(self._loaded.wait(), seconds)
        except TimeoutError:
            return

    def step(self, request: Request) -> None:
        """Handle a request and carry out what follows."""
        now_ms = self.clock_ms()
        self.shard.handle(request, now_ms)
        self._carry_out(now_ms)

    def steer(self, step: Callable[[Shard[S], int], T]) -> T:
        """Run a step of the shard that is not a request."""
        try:
            return step(self.shard, self.clock_ms())
        finally:
            self._carry_out()

    def wake(self) -> None:
        """Do what is due now."""
        self._fire_timers(self.clock_ms())

    def when_loaded(self, step: Callable[[Shard[S], int], None]) -> None:
        """Run a step of the shard that is not a request, now or when it is loaded. In a loaded shard its
        writes are on the disk when this returns, so that the caller need not remember the task.
        """
        if self.loading:
            self._then.append(step)
        else:
            self._step_durably(step)

    def _step_durably(self, step: Callable[[Shard[S], int], None]) -> None:
        step(self.shard, self.clock_ms())
        self._carry_out()
        if self._pending:
            self._flush_appends()
            # if the disk fails the log goes offline, and is read again later
            with suppress(KafkaError, OSError):
                self.log.flush(self.partition)

    def close(self) -> None:
        """Write what is pending, answer all requests, and stop."""
        if self._pending:
            self._flush_appends()
        self._closed = True
        for timer in (self._alarm, self._again):
            if timer is not None:
                timer.cancel()
        self.shard.unload(self.clock_ms())
        # requests that waited for the last write are refused by now: the next coordinator must not find the
        # write
        self._pending.clear()
        self._carry_out()
        self.loading = False
        self._loaded.set()

    def _carry_out(self, now_ms: int = NEVER) -> None:
        shard, awaited = self.shard, False
        for effect in shard.take_effects():
            if type(effect) is Reply:
                handle, body = effect
                handle.set(body)
            elif type(effect) is Append:
                self._pending.append(effect)
                if effect.lazy:
                    asyncio.get_running_loop().call_later(_LAZY_S, self._flush_appends)
                else:
                    awaited = True
                self._mixed = self._mixed or effect.producer_id != NO_PRODUCER
            elif isinstance(effect, Command):
                assert self.on_command is not None, "its shards give commands"
                self.on_command(self, effect)
            else:
                assert isinstance(effect, CoordinatorEvent)
                self._report_event(effect)
        if self._closed:
            return
        if awaited and not self._flush_due:
            self._flush_due = True
            if self.linger_ms > 0:
                asyncio.get_running_loop().call_later(self.linger_ms / 1000, self._flush_appends)
            else:
                self.writes.add(self._flush_appends)
        soonest_ms = shard.timers.soonest_ms
        if soonest_ms < self._alarm_ms:
            self._set_alarm(soonest_ms, now_ms)

    def _set_alarm(self, deadline_ms: int, now_ms: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = deadline_ms
        loop = asyncio.get_running_loop()
        if deadline_ms == now_ms:
            # a request has just set it for now: nothing that has arrived could be in time for it
            self._alarm = loop.call_soon(self._fire_timers, now_ms)
        else:
            delay_ms = max(0, deadline_ms - self.clock_ms())
            self._alarm = loop.call_later(delay_ms / 1000, self._wake_up)

    def _wake_up(self) -> None:
        when_read(partial(self._fire_timers, self.clock_ms()))

    def _fire_timers(self, due_ms: int) -> None:
        """Fire the timers that were due at that time, for some ms; the rest, maybe thousands, a moment
        later.
        """
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_ms = None, NEVER
        try:
            start_ms = self.clock_ms()
            self.shard.advance(start_ms, lambda: self.clock_ms() - start_ms < _TIMERS_MS, due_ms=due_ms)
        finally:
            self._carry_out()

    def _flush_appends(self) -> None:
        if self.shard.before_write:
            self._fire_before_write()
        self._flush_due = False
        appends, self._pending = self._pending, []
        if not appends:
            return
        if not self._mixed:
            self._write_batch(appends)
            self._carry_out()
            return
        self._mixed = False
        # a batch has one producer, and a marker is a batch of its own
        for (_, _, marker), run in groupby(appends, _PRODUCER):
            for together in [run] if marker is None else ([each] for each in run):
                self._write_left(together)
        self._carry_out()

    def _fire_before_write(self) -> None:
        # what is handed out here goes with the rest
        self._flush_due = True
        try:
            self.shard.fire_before_write(self.clock_ms())
        except Exception as error:
            # what is written does not depend on it
            context = {"message": "a step before a write failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
        self._carry_out()

    def _write_left(self, appends: Iterable[Append]) -> None:
        """Write the appends that did not fail together with an earlier one."""
        left = [append for append in appends if self.shard.awaits(append.ticket)]
        if left:
            self._write_batch(left)

    def _write_batch(self, appends: list[Append]) -> None:
        """Write one batch for all of these appends, which have the same producer."""
        now_ms, ahead_ms, first = self.clock_ms(), self.ahead_ms(), appends[0]
        records = first.records if len(appends) == 1 else [each for one in appends for each in one.records]
        try:
            # the next process has another clock: its own would take what was stored just now for old
            stored = self.shard.topic.later(records, ahead_ms) if ahead_ms else records
            pairs, size = self.shard.topic.encode(stored)
        except (ValueError, struct.error):
            # a name or metadata too long, or a number too large for the record format
            self._on_refusal(appends, ErrorCode.UNKNOWN_SERVER_ERROR, now_ms, some=True)
            return
        if size > _BATCH_BYTES and len(appends) > 1:
            self._on_refusal(appends, ErrorCode.MESSAGE_TOO_LARGE, now_ms, some=True)
            return
        try:
            offset = self.log.append(
                self.partition,
                pairs,
                now_ms + ahead_ms,
                producer_id=first.producer_id,
                producer_epoch=first.producer_epoch,
                marker=first.marker,
            )
            if self.fsync:
                self.log.flush(self.partition)
        except (KafkaError, OSError) as error:
            code = error.code if isinstance(error, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
            self._on_refusal(appends, code, now_ms, some=code in _TOO_LARGE)
            return
        if self.replicas is None:
            self.shard.appended_all(appends, records, offset, now_ms)
        else:
            self._wait_for_replicas(self.replicas, appends, records, offset)

    def _wait_for_replicas(
        self, replicas: ShardReplicas, appends: list[Append], records: Sequence[object], offset: int
    ) -> None:
        """Tell the shard when all replicas have what was written. Responses wait for that, up to a
        timeout.
        """
        loop = asyncio.get_running_loop()
        overdue: asyncio.TimerHandle | None = None

        def then(error: KafkaError | None) -> None:
            if overdue is not None:
                overdue.cancel()
            if error is None or error.code is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
                self.shard.appended_all(appends, records, offset, self.clock_ms())
            else:
                self._on_refusal(appends, error.code, self.clock_ms(), some=False)
            self._carry_out()

        if replicas.when_committed(self.partition, offset + (len(records) or 1), then):
            self.shard.appended_all(appends, records, offset, self.clock_ms())
        else:
            overdue = loop.call_later(replicas.timeout_s, self._fail_overdue, appends)

    def _fail_overdue(self, appends: list[Append]) -> None:
        for append in appends:
            self.shard.append_overdue(append.ticket, self.clock_ms())
        self._carry_out()

    def _on_refusal(self, appends: list[Append], error: ErrorCode, now_ms: int, *, some: bool) -> None:
        """Report a failed write to the shard. If only ``some`` of the appends may be to blame, retry them in
        halves, so that the others are not lost.
        """
        if some and len(appends) > 1:
            middle = len(appends) // 2
            self._write_batch(appends[:middle])
            self._write_left(appends[middle:])
        else:
            for append in appends:
                self.shard.append_failed(append.ticket, error, now_ms)

    def _report_event(self, event: CoordinatorEvent) -> None:
        try:
            self.on_event(event)
        except Exception as error:
            # a listener's mistake must not stop the coordinator; the loop's handler reports it
            context = {"message": f"on_event failed on {event.name}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
