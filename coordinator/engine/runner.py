"""One shard at work: its writes, its alarm clock, and the calls that wait for its answers.

A request steps the shard at once; what the shard wants written is collected until the loop has handled all
requests that are ready, then goes out as one batch, and the answers that wait for it leave in order. So the
cost of a write is shared by all who came together, and the faster they come the more they share.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from ...offsets_topic import encode_all
from ...protocol import ErrorCode, KafkaError
from ..events import ShardLoaded, ShardLoading
from .effects import Append, Note, Reply, Request
from .loader import LoadedBatch, Loader
from .shard import Shard
from .timers import NEVER

#: Bytes of keys and values that go into one batch; a single larger write still goes alone.
_BATCH_BYTES: Final = 512 * 1024

# records replayed before others may run
_LOAD_SLICE: Final = 2_000
# how often a long load says where it is
_PROGRESS_MS: Final = 5_000

_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
#: A ticket and how many records it has.
_Part: TypeAlias = tuple[int, int]

_UNANSWERED: Final = object()

T = TypeVar("T")


class OffsetsLog(Protocol):
    """What the coordinator needs of the offsets topic. ``append`` writes one batch and raises KafkaError."""

    @property
    def partition_count(self) -> int: ...
    def append(self, partition: int, records: list[tuple[bytes, bytes | None]], now_ms: int, /) -> int: ...
    def load(self, partition: int, /) -> Iterator[LoadedBatch]: ...
    def flush(self, partition: int, /) -> None: ...


class Handle(Protocol):
    """Where the answer to a request goes, once."""

    def set(self, body: Any, /) -> None: ...


class Call:
    """A request's handle: where its answer arrives, before or after somebody waits for it."""

    __slots__ = ("_future", "body")

    def __init__(self) -> None:
        self.body: Any = _UNANSWERED
        self._future: asyncio.Future[None] | None = None

    def set(self, body: Any) -> None:
        assert self.body is _UNANSWERED, "a request is answered once"
        self.body = body
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def answer(self) -> Any:
        if self.body is _UNANSWERED:
            self._future = asyncio.get_running_loop().create_future()
            await self._future
        return self.body


@dataclass(slots=True, eq=False)
class ShardRunner:
    """One shard with its writes and its alarm clock."""

    partition: int
    shard: Shard
    store: OffsetsLog
    clock_ms: Callable[[], int]
    on_note: Callable[[Note], None]
    fsync: bool
    linger_ms: int = -1
    loading: bool = True
    skipped: int = 0
    _loaded: asyncio.Event = field(default_factory=asyncio.Event)
    _pending: list[Append] = field(default_factory=list)
    _deleted: set[str] = field(default_factory=set)
    _alarm: asyncio.TimerHandle | None = None
    _alarm_ms: int = NEVER
    _flush_due: bool = False
    _closed: bool = False

    async def load(self) -> None:
        """Read the partition back, giving way to others now and then, and go to work."""
        started_ms = self.clock_ms()
        loader = Loader(self.shard, self.partition, self._tell)
        told_ms, count = started_ms, 0
        for records in loader.run(self.store.load(self.partition)):
            count += records
            if count >= _LOAD_SLICE:
                count = 0
                await asyncio.sleep(0)
                if self._closed:
                    return
                now_ms = self.clock_ms()
                if now_ms - told_ms >= _PROGRESS_MS:
                    told_ms = now_ms
                    self._tell(ShardLoading("", self.partition, loader.records, now_ms - started_ms))
        now_ms = self.clock_ms()
        self.skipped = loader.skipped
        if loader.failed:
            # to answer from half a log would start consumers from the wrong place
            self.shard.unload(now_ms)
        else:
            self.shard.activate(now_ms)
        self.loading = False
        self._loaded.set()
        groups = len(self.shard.group_ids())
        if loader.records:
            self._tell(
                ShardLoaded("", self.partition, loader.records, loader.skipped, groups, now_ms - started_ms)
            )
        self._carry_out()
        if self._deleted:
            self._remove_offsets(self._deleted)

    async def wait_loaded(self, seconds: float) -> None:
        """Return when loaded, or when that takes too long."""
        try:
            await asyncio.wait_for(self._loaded.wait(), seconds)
        except TimeoutError:
            return

    def step(self, request: Request) -> None:
        """Take in a request."""
        self.shard.handle(request, self.clock_ms())
        self._carry_out()

    def steer(self, step: Callable[[Shard, int], T]) -> T:
        """Run a step of the shard that is no request."""
        try:
            return step(self.shard, self.clock_ms())
        finally:
            self._carry_out()

    def wake(self) -> None:
        """Do what is due now, alarm or not."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._wake()

    def topics_deleted(self, names: set[str]) -> None:
        """Remove offsets of these topics, now or when loaded."""
        if self.loading:
            self._deleted |= names
        else:
            self._remove_offsets(names)

    def _remove_offsets(self, names: set[str]) -> None:
        """Durably: whoever deleted the topics forgets that they were there as soon as this returns."""
        self.shard.topics_deleted(names)
        self._carry_out()
        if self._pending:
            self._flush()
            # a disk that fails takes the log offline, and its offsets are read anew
            with suppress(KafkaError, OSError):
                self.store.flush(self.partition)

    def close(self) -> None:
        """Write what is pending, answer everybody, and stop."""
        if self._pending:
            self._flush()
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        self.shard.unload(self.clock_ms())
        self._carry_out()
        self.loading = False
        self._loaded.set()

    def _carry_out(self) -> None:
        for effect in self.shard.take_effects():
            if type(effect) is Reply:
                effect.handle.set(effect.body)
            elif type(effect) is Append:
                self._pending.append(effect)
            else:
                assert isinstance(effect, Note)
                self._tell(effect)
        if self._closed:
            return
        if self._pending and not self._flush_due:
            self._flush_due = True
            loop = asyncio.get_running_loop()
            if self.linger_ms > 0:
                loop.call_later(self.linger_ms / 1000, self._flush)
            else:
                # behind all requests that are ready: the more there are, the more share the write
                loop.call_soon(self._flush)
        soonest_ms = self.shard.timers.soonest_ms
        if soonest_ms < self._alarm_ms:
            self._set_alarm(soonest_ms)

    def _set_alarm(self, deadline_ms: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        delay_ms = max(0, deadline_ms - self.clock_ms())
        self._alarm_ms = deadline_ms
        self._alarm = asyncio.get_running_loop().call_later(delay_ms / 1000, self._wake)

    def _wake(self) -> None:
        self._alarm, self._alarm_ms = None, NEVER
        try:
            self.shard.advance(self.clock_ms())
        finally:
            self._carry_out()

    def _flush(self) -> None:
        self._flush_due = False
        appends, self._pending = self._pending, []
        pairs: list[tuple[bytes, bytes | None]] = []
        tickets: list[_Part] = []
        size = 0
        for append in appends:
            try:
                added, added_size = encode_all(append.records)
            except (ValueError, struct.error):
                # a name or metadata too long or a number too large for the record format: the writes of
                # other requests must not be lost for it
                self.shard.append_failed(append.ticket, ErrorCode.UNKNOWN_SERVER_ERROR, self.clock_ms())
                continue
            if tickets and size + added_size > _BATCH_BYTES:
                self._write(pairs, tickets)
                pairs, tickets, size = [], [], 0
            pairs += added
            tickets.append((append.ticket, len(added)))
            size += added_size
        if tickets:
            self._write(pairs, tickets)
        self._carry_out()

    def _write(self, pairs: list[tuple[bytes, bytes | None]], parts: list[_Part]) -> None:
        """One batch for all of these; if it is too large for the log, one for each."""
        now_ms = self.clock_ms()
        try:
            offset = self.store.append(self.partition, pairs, now_ms)
            if self.fsync:
                self.store.flush(self.partition)
        except (KafkaError, OSError) as error:
            code = error.code if isinstance(error, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
            if code in _TOO_LARGE and len(parts) > 1:
                start = 0
                for part in parts:
                    self._write(pairs[start : start + part[1]], [part])
                    start += part[1]
                return
            for ticket, _ in parts:
                self.shard.append_failed(ticket, code, now_ms)
            return
        for ticket, count in parts:
            self.shard.appended(ticket, offset, now_ms)
            offset += count

    def _tell(self, note: Note) -> None:
        try:
            self.on_note(note)
        except Exception as error:
            # a listener's mistake must not stop the coordinator; the loop's handler reports it
            context = {"message": f"on_note failed on {type(note).__name__}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
