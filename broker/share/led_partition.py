"""One share partition at the leader of its partition: loaded, given out, stored, given up (KIP-932).

``share_partitions`` decides what happens to records; here is when. The state is read from the share
coordinator when a member first fetches, and every change is written behind: while a write is on the way, the
changes that follow wait and go together. All locks have one timer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias

from ...log import Steps
from ...protocol import ErrorCode, KafkaError
from ...protocol.named_tuples import NamedTuple
from ...share_partitions import (
    AcknowledgedRange,
    AcquiredRange,
    SharePartition,
    ShareRules,
    StateWrite,
)
from ..event_loop.stopwatch import clock
from ..event_loop.time_slices import Slices
from ..metrics import ShareCounters, SharePartitionCounters, SharePartitionFigures
from ..partitions.partition import Partition, Waiter, not_leader
from .persister import LOST, Persister, ShareKey, StateId, told_error
from .reading import KeptBatch, measure_wanted, read_wanted
from .share_events import ShareEvent
from .share_watch import ShareWatch

log = logging.getLogger("kohort.broker")

#: The outcome of a write: None, or why it failed.
Stored: TypeAlias = "asyncio.Future[KafkaError | None]"

#: After a write that failed, locks that have ended are looked at again only after this time, in seconds.
_AGAIN_S: Final = 1.0
#: Most batches in one request to a share coordinator, which carries it out in one turn of its loop.
_MOST_BATCHES: Final = 1_000


def unread() -> KafkaError:
    """What an acknowledgement is told of a share partition that nobody has fetched here, in Kafka's words."""
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")


class Asking(NamedTuple):
    """What a member asks of one share partition in a fetch.

    ``strict``: no more than ``most_records``, else whole record batches. ``at_least_one``: the first record
    batch is given whatever its size.
    """

    member: str
    most_records: int
    most_bytes: int
    batch_size: int
    strict: bool
    at_least_one: bool


class Given(NamedTuple):
    """What a member was given: record batches, and the ranges in them that it has now."""

    records: bytes
    ranges: Sequence[AcquiredRange]

    @property
    def record_count(self) -> int:
        return sum(last - first + 1 for first, last, _ in self.ranges)


class InFlight(NamedTuple):
    """What is known of a share partition now. ``stalled_ms``: for how long its start offset has stood still,
    None if it does not stall. ``last_delivery``: records that members have for the last time.
    """

    topic: str
    partition: int
    records: SharePartition
    stalled_ms: int | None
    last_delivery: int


class Leader(Protocol):
    """What a share partition needs of the broker that leads it."""

    persister: Persister
    #: The rules of a group as they are now.
    rules_of: Callable[[str], ShareRules]
    #: Runs long work in steps.
    run_long: Callable[[Steps[tuple[int, int, int] | None]], Awaitable[tuple[int, int, int] | None]]
    #: The wall clock, in ms.
    now_ms: Callable[[], int]
    counters: ShareCounters
    #: Whether another broker may lead a partition by now, without this one knowing.
    may_be_replaced: Callable[[Partition], bool]

    def give_up(self, led: LedPartition) -> None:
        """Forget a share partition that is not led any more."""

    def forget_if_idle(self, led: LedPartition) -> None:
        """Forget a share partition that nobody uses, and that the last session of its group has left."""


class LedPartition:
    """A share partition that this broker leads. ``error`` is set once it does not."""

    def __init__(self, key: ShareKey, partition: Partition, leader: Leader) -> None:
        """Begin to load. Raises KafkaError if the partition cannot be read."""
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.error: KafkaError | None = None
        #: None until the state is loaded.
        self.records: SharePartition | None = None
        self.counters = SharePartitionCounters(clock())
        #: Fetches that wait for it, in the order in which they came, and whether they have been told.
        self._waiters: dict[Waiter[LedPartition], bool] = {}
        self._leader = leader
        self._watch = ShareWatch(key.group, partition.topic.name, partition.index)
        self._loop = asyncio.get_running_loop()
        self._state = StateId(0)
        self._kept: KeptBatch | None = None
        self._unwritten: list[tuple[StateWrite, Stored]] = []
        # the timer of the next lock, and its time: a handle does not always tell it
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = 0.0
        self._task: asyncio.Task[None] | None = self._loop.create_task(self._load())

    def __repr__(self) -> str:
        return f"<LedPartition: {self.key}, {self.records}, {self.error}>"

    @property
    def rules(self) -> ShareRules:
        return self._leader.rules_of(self.key.group)

    @property
    def is_idle(self) -> bool:
        """Return whether nobody has records of it, and nothing is being read or written."""
        return self._task is None and (self.records is None or not self.records.has_acquired)

    def figures(self) -> SharePartitionFigures:
        """Return what is in flight, and how often a lock ended."""
        ranges, records = (0, 0) if self.records is None else self.records.in_flight
        topic, number = self.partition.topic.name, self.key.number
        return self.counters.figures(self.key.group, topic, number, ranges=ranges, records=records)

    def look(self) -> Sequence[ShareEvent]:
        """Return what happened since the last look."""
        if self.records is None:
            return ()
        return list(self._watch.look(self.records, self.rules.limits, self._now_ms()))

    @property
    def stalled_ms(self) -> int | None:
        """Return for how long it has stood still, as of the last look; None if it does not."""
        return self._watch.stalled_ms(self._now_ms())

    def in_flight(self) -> InFlight | None:
        """Return what is known of it now, as of the last look; None while it is loading."""
        if self.records is None:
            return None
        last = self.records.count_on_last_delivery(self.rules.limits)
        return InFlight(self.partition.topic.name, self.key.number, self.records, self.stalled_ms, last)

    def check(self) -> None:
        """Raise KafkaError once this broker does not lead it any more."""
        if self.error is None and self._is_lost:
            partition = self.partition
            self.give_up(not_leader(partition.topic.name, partition.index))
        if self.error is not None:
            raise self.error

    @property
    def _is_lost(self) -> bool:
        one = self.partition
        return one.gone or not one.is_led or one.leader_epoch != self.leader_epoch

    # -- waiting ---------------------------------------------------------------------------------------------

    def watch(self, waiter: Waiter[LedPartition]) -> None:
        """Tell a waiter when there is something for it, or when the leadership ends. Who is told has to
        ``watch`` again, at its place among the others, or to ``leave``.
        """
        self._waiters[waiter] = False
        self.partition.waiters[self] = None

    def leave(self, waiter: Waiter[LedPartition]) -> None:
        """End a wait: what it has not taken is for the next."""
        self._waiters.pop(waiter, None)
        self.offer()

    def offer(self, after: Waiter[LedPartition] | None = None) -> None:
        """Tell the fetch that waits longest, if it may be given something; or the next one ``after`` one that
        does not take it. So a change wakes only who gets something, however many wait.
        """
        if not self._waiters:
            return
        try:
            if not self.has_news():
                return
        except KafkaError:
            return  # all have been told
        waiting = iter(self._waiters)
        if after is not None:
            for waiter in waiting:
                if waiter is after:
                    break
        first = next(waiting, None)
        if first is not None and not self._waiters[first]:
            self._waiters[first] = True
            first.tell(self)

    def tell(self, _partition: Partition, /) -> None:
        """Called when the log has changed, or is not led any more."""
        if self._waiters:
            self.partition.waiters[self] = None
            self.offer()

    def _tell_all(self) -> None:
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            waiter.tell(self)

    # -- fetching --------------------------------------------------------------------------------------------

    def measure(self, most_bytes: int) -> int:
        """Return how many bytes a fetch could be given, up to ``most_bytes`` or so. Raises KafkaError."""
        if not self.has_news():
            return 0
        assert self.records is not None, "it is loaded"
        rules = self.rules
        return measure_wanted(
            self.partition, self.records, rules.limits, most_bytes, committed=rules.committed
        )

    def check_lead(self) -> None:
        """Raise KafkaError if another broker may lead it by now: members have to look for that one."""
        self.check()
        if self._leader.may_be_replaced(self.partition):
            raise not_leader(self.partition.topic.name, self.partition.index)

    def has_news(self) -> bool:
        """Return whether a fetch may be given something. Raises KafkaError once it is not led any more.

        Acquiring writes nothing that could be fenced: so nothing is given that a successor may have given.
        """
        return self._find_wanted() is not None

    def _find_wanted(self) -> int | None:
        """Return the first offset that a fetch could acquire, if the log has it."""
        self.check()
        records = self.records
        if records is None or self._leader.may_be_replaced(self.partition):
            return None
        if records.follow_log_start(self.partition.log_start_offset):
            self.offer()
        rules = self.rules
        wanted = records.next_wanted(records.start_offset, rules.limits)
        return wanted if wanted is not None and wanted < self._end(rules) else None

    def _end(self, rules: ShareRules) -> int:
        return self.partition.last_stable_offset if rules.committed else self.partition.high_watermark

    def acquire(self, asking: Asking) -> Given | None:
        """Give a member records; None if there are none for it. Raises KafkaError."""
        begun_s = clock()
        try:
            given = self._acquire(asking)
        finally:
            self.counters.count_lock(begun_s, clock())
        for first, last, _ in () if given is None else given.ranges:
            self.counters.batch_sizes.add(last - first + 1)
        return given

    def _acquire(self, asking: Asking) -> Given | None:
        while (wanted := self._find_wanted()) is not None:
            rules, records = self.rules, self.records
            assert records is not None, "it is loaded"
            read = read_wanted(
                self.partition,
                records,
                rules.limits,
                wanted,
                most_records=asking.most_records,
                most_bytes=asking.most_bytes,
                at_least_one=asking.at_least_one,
                committed=rules.committed,
                kept=self._kept,
            )
            if not read.offsets:
                return None
            taken = records.acquire(
                asking.member,
                read.offsets,
                rules.limits,
                self._now_ms(),
                most=asking.most_records,
                strict=asking.strict,
                batch_size=asking.batch_size,
                aborted=read.aborted,
            )
            if taken.write is not None:
                self._store(taken.write)
            if taken.ranges:
                self._arm()
                self._kept = read.keep(taken.ranges, self._kept)
                return Given(read.select(taken.ranges), taken.ranges)
            if taken.write is None:
                return None
            # all of it was of aborted transactions, or no record at all: what follows may be for the member
        return None

    def take_back(self, member: str, ranges: Sequence[AcquiredRange]) -> None:
        """Take from a member what an answer gave it that was not sent."""
        if self.records is not None and self.error is None:
            self.records.take_back(member, ranges)
            self.offer()

    # -- acknowledging ---------------------------------------------------------------------------------------

    async def acknowledge(self, member: str, ranges: Sequence[AcknowledgedRange]) -> Stored | None:
        """Carry out what a member says of its records; None if that is not stored. Raises KafkaError.

        Other work runs in between if it is very much.
        """
        self.check()
        if self.records is None:
            raise unread()
        steps = self.records.acknowledge_in_steps(member, ranges, self.rules.limits, self._now_ms())
        slices = Slices()
        try:
            while True:
                next(steps)
                await slices.end_if_due()
                self.check()
        except StopIteration as done:
            write: StateWrite | None = done.value
        finally:
            # it may be given up halfway
            steps.close()
        stored = None if write is None else self._store(write)
        self._leader.counters.count_acknowledged(ranges)
        self._arm()
        return stored

    def release(self, member: str) -> Stored | None:
        """Take from a member whatever it has; None if it has nothing."""
        if self.records is None or self.error is not None:
            return None
        write = self.records.release_member(member, self.rules.limits)
        return None if write is None else self._store(write)

    # -- locks -----------------------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1_000)

    def _arm(self, least_s: float = 0.0) -> None:
        """Set the timer to the end of the next lock, no sooner than in ``least_s``."""
        due_ms = None if self.records is None else self.records.next_deadline_ms
        # a deadline is a whole ms, which has to be over
        due_s = 0.0 if due_ms is None else (due_ms + 1) / 1_000
        if self._timer is not None:
            if not least_s and self._timer_s <= due_s:
                return  # it is set anew when it fires, once instead of at every change
            self._timer.cancel()
            self._timer = None
        if due_ms is not None and self.error is None:
            due_s = max(due_s, self._loop.time() + least_s)
            self._timer, self._timer_s = self._loop.call_at(due_s, self._expire), due_s

    def _expire(self) -> None:
        self._timer = None
        if self.error is not None or self.records is None:
            return
        if self._is_lost:
            self.give_up(not_leader(self.partition.topic.name, self.partition.index))
            return
        self.end_locks(self._now_ms())

    def end_locks(self, until_ms: int) -> int:
        """Take from members the records whose locks end by a time; return how many."""
        ended = 0
        if self.records is not None and self.error is None:
            write = self.records.expire(self.rules.limits, until_ms)
            if write is not None:
                ended = sum(last - first + 1 for first, last, _, _ in write.batches)
                self.counters.lock_timeouts += ended
                self._store(write)
            self._arm()
        return ended

    # -- loading and storing ---------------------------------------------------------------------------------

    async def _load(self) -> None:
        begun_s = clock()
        try:
            stored = await self._leader.persister.read(self.key, self.leader_epoch)
            start = stored.start_offset
            if start < 0:
                start = await self._begin(stored.state)
            records = SharePartition(start, stored.batches)
            records.follow_log_start(self.partition.log_start_offset)
        except KafkaError as error:
            self._task = None
            self.give_up(told_error(error))
            return
        except Exception:
            self._task = None
            log.exception("the state of %s cannot be read", self.key)
            self.give_up(told_error(KafkaError(-1, "the state cannot be read")))
            return
        self._task = None
        if self.error is None:
            self._leader.counters.load_times.record(clock() - begun_s)
            self.records, self._state = records, stored.state
            if records.start_offset > stored.start_offset >= 0 and not records.in_flight[1]:
                # a write that failed for who led before may be stored, and not counted: no other one follows
                self._store(records.write_start())
            self.offer()
            self._leader.forget_if_idle(self)

    async def _begin(self, state: StateId) -> int:
        """Return where a share partition begins that was never read, by the group's rule. Raises KafkaError.

        It is stored before anything is given: after a crash the rule would say a later offset, and skip
        records that nobody has acknowledged.
        """
        start = self.rules.start
        if start == "earliest":
            return self.partition.log_start_offset
        found = None
        if start != "latest":
            search = self.partition.find_timestamp(self._leader.now_ms() - start)
            found = await self._leader.run_long(search)
        first = self.partition.high_watermark
        if found is not None:
            first = min(found[0], first)
        await self._leader.persister.write(self.key, state, self.leader_epoch, first, 0, ())
        return first

    def _store(self, write: StateWrite) -> Stored:
        stored: Stored = self._loop.create_future()
        self._unwritten.append((write, stored))
        if self._task is None:
            self._task = self._loop.create_task(self._write_all())
        return stored

    async def _write_all(self) -> None:
        # once it is given up there is nothing left to write
        while self._unwritten:
            written, self._unwritten = self._unwritten, []
            try:
                await self._write_these(written)
            except Exception:
                # what follows would wait behind it for ever: whoever is next reads what is stored
                log.exception("%s cannot go on, and is read anew", self.key)
                self.give_up(told_error(KafkaError(-1, "the share partition is read anew")))
            finally:
                for _, stored in written:
                    _settle(stored, self.error)
        self._task = None
        self._leader.forget_if_idle(self)

    async def _write_these(self, written: Sequence[tuple[StateWrite, Stored]]) -> None:
        refused = await self._write(written)
        failed = None if refused is None else told_error(refused)
        if self.error is not None:
            failed = self.error
        elif self.records is not None:
            # all at once: the start offset must not stop before a write of the same request
            for write, _ in written:
                self.records.complete(write) if failed is None else self.records.undo(write)
            self._arm(0.0 if failed is None else _AGAIN_S)
        for _, stored in written:
            _settle(stored, failed)
        if failed is not None and refused is not None and refused.code in LOST:
            self.give_up(failed)
        self.offer()

    async def _write(self, written: Sequence[tuple[StateWrite, Stored]]) -> KafkaError | None:
        records = self.records
        assert records is not None, "it is loaded"
        batches = sorted(batch for write, _ in written for batch in write.batches)
        try:
            for first in range(0, len(batches) or 1, _MOST_BATCHES):
                # the start as it is before these writes count, and what is done above it with all of them
                await self._leader.persister.write(
                    self.key,
                    self._state,
                    self.leader_epoch,
                    records.start_offset,
                    records.done_count,
                    batches[first : first + _MOST_BATCHES],
                )
        except KafkaError as error:
            return error
        except Exception:
            log.exception("the state of %s cannot be written", self.key)
            return KafkaError(-1, "the state cannot be written")
        return None

    def give_up(self, error: KafkaError) -> None:
        """Lead it no longer: whatever waits for it gets ``error``."""
        if self.error is not None:
            return
        self.error = error
        if self._timer is not None:
            self._timer.cancel()
        self.partition.waiters.pop(self, None)
        unwritten, self._unwritten = self._unwritten, []
        for _, stored in unwritten:
            _settle(stored, error)
        self._leader.give_up(self)
        self._tell_all()

    def leave_memory(self) -> None:
        """Give it up though it is led: whoever fetches from it next reads it anew."""
        self.give_up(not_leader(self.partition.topic.name, self.partition.index))

    async def stop(self) -> None:
        """Give it up, and end what is under way: the broker stops."""
        self.leave_memory()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])


def _settle(stored: Stored, failed: KafkaError | None) -> None:
    """Tell the outcome of a write, unless nobody waits for it any more."""
    if not stored.done():
        stored.set_result(failed)
