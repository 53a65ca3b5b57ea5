"""Schedules key queues: which records are handled at the same time, and which wait for earlier ones.

Records of one key queue are handled one after the other, in the order of their offsets; queues run
concurrently, up to a limit. A queue with work is served by a *slot*: a task that serves the next ready queue
afterwards, so that records need no tasks of their own. A slot ends when no queue is ready, and after a call
in which it was cancelled, so that no other queue sees the consequences. A queue that waits for its next
attempt has no slot. Partitions take turns, and none takes the last slot while it has another one: if all
records of one hang, the others go on. A queue belongs to one partition, so revoking a partition removes whole
queues. What handling means is up to the owner, who passes a coroutine function, see ``Run``.

Releasing a partition (it moves to another member) drops records that are not started, except those *before* a
started one: left undone, they would make the next owner repeat the later ones.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import Any, Final, Literal, Protocol

from ...protocol import TopicPartition

#: A batch is out of attempts: its records are handled one at a time, each with attempts of its own.
ONE_BY_ONE: Final = "one by one"


@dataclass(frozen=True, slots=True)
class Partly:
    """These records of a call are finished; ``rest`` is the outcome of the others, or what they raised."""

    finished: Sequence[Waiting]
    rest: float | Exception | None


class Begins(Enum):
    """Which calls begin."""

    ALL = "all"
    #: Those with the first unfinished record of a partition, if later ones have begun: they wait for it.
    FIRST = "first"
    NONE = "none"


#: None: finished. A number: retry after this many seconds.
Outcome = float | Literal["one by one"] | Partly | None
#: Handles records: (records, number of the attempt from 1).
Run = Callable[[list[Any], int], Awaitable[Outcome]]


#: Approximate memory of a record apart from its key and value: objects for its fields, and its queue entry.
RECORD_OVERHEAD_BYTES = 400


class Waiting(Protocol):
    """The fields of a record that queues use."""

    @property
    def offset(self) -> int:
        """Offset of the record."""

    @property
    def key(self) -> bytes | None:
        """Key of the record."""

    @property
    def value(self) -> bytes | None:
        """Value of the record."""


def size_of(record: Waiting) -> int:
    """Return the bytes that a record counts for towards ``backlog_max_bytes``."""
    key, value = record.key, record.value
    return RECORD_OVERHEAD_BYTES + (len(value) if value else 0) + (len(key) if key else 0)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A record whose handler did not finish in time and was cancelled."""

    partition: TopicPartition
    offset: int


@dataclass(slots=True, eq=False)
class KeyQueue:
    """Records that are handled in order; ``taken`` are with the handler, or wait for their next attempt."""

    partition: PartitionQueues
    key: Hashable
    waiting: deque[Waiting]
    #: A list when there are any.
    taken: Any = ()
    attempt: int = 0
    #: How many of the next records were in a batch that is out of attempts.
    one_by_one: int = 0
    #: The slot that serves it now.
    slot: asyncio.Task[None] | None = None
    #: When its current call began, and when somebody was last told that it is still running; by the loop's
    #: clock.
    began: float = 0.0
    told: float = 0.0
    #: Set while it waits for its next attempt.
    timer: asyncio.TimerHandle | None = None
    #: The outcome of its current call is ignored.
    abandoned: bool = False


@dataclass(slots=True, eq=False)
class PartitionQueues:
    """The non-empty queues of a partition, and the number and size of their records."""

    partition: TopicPartition
    queues: dict[Hashable, KeyQueue] = field(default_factory=dict)
    #: The queues that wait for a slot, and how many have one.
    ready: deque[KeyQueue] = field(default_factory=deque)
    running: int = 0
    records: int = 0
    bytes: int = 0
    #: Highest offset that any queue has started.
    begun: int = -1
    #: The session that the records are from, see ``Record.session_id``.
    session: int = -1
    #: Exists once it takes no more records; set when its last queue ends.
    ended: asyncio.Event | None = None
    #: End of its release by the loop's clock, and the records known to be unfinished by then.
    until: float = math.inf
    unfinished: list[Unfinished] = field(default_factory=list)
    #: Whether its delivery is paused, because too many of its records wait.
    paused: bool = False


@dataclass(slots=True, eq=False, repr=False)
class QueueScheduler:
    """Runs key queues with ``concurrency`` calls at a time, each with up to ``batch`` records.

    ``key_of`` maps a record to its queue in the partition; None: the partition has a single queue. ``done``
    is called for each finished record, with its partition's queues. ``on_failure`` gets an exception of
    ``run``; the records of its queue are dropped, not done, and the partition takes no more.
    """

    run: Run
    _: KW_ONLY
    key_of: Callable[[Waiting], Hashable] | None
    concurrency: int
    batch: int
    done: Callable[[Any, PartitionQueues], None]
    on_failure: Callable[[BaseException], None]
    #: Called for each record that is dropped, not done, as ``done``.
    dropped: Callable[[Any, PartitionQueues], None] = lambda *_: None
    #: Whether it is too late to begin a call with this record: then it is dropped.
    is_late: Callable[[Waiting], bool] | None = None
    _partitions: dict[TopicPartition, PartitionQueues] = field(default_factory=dict)
    #: Partitions with ready queues, in the order of their turns.
    _turns: deque[PartitionQueues] = field(default_factory=deque)
    _slots: set[asyncio.Task[None]] = field(default_factory=set)
    #: Abandoned ones whose calls run on.
    _left: set[KeyQueue] = field(default_factory=set)
    #: Whether no call begins now.
    held: bool = False
    _begins: Begins = Begins.ALL
    #: Number of busy slots when the last one is left; with a single slot none can be left.
    _last_slot: int = field(init=False)

    def __post_init__(self) -> None:
        self._last_slot = self.concurrency - 1 or 1

    @property
    def backlog(self) -> int:
        """Number of records that wait or are being handled."""
        return sum(each.records for each in self._partitions.values())

    @property
    def in_flight(self) -> int:
        """Number of records being handled or waiting for their next attempt; counted on request."""
        works = self._partitions.values()
        return sum(len(queue.taken) for work in works for queue in work.queues.values())

    def calls(self) -> Iterator[KeyQueue]:
        """The queues whose ``taken`` records are being handled now."""
        for work in self._partitions.values():
            yield from (queue for queue in work.queues.values() if queue.slot is not None)
        yield from self._left

    @property
    def oldest_call(self) -> float | None:
        """When the oldest call that runs began, by the loop's clock; None if none runs."""
        return min((queue.began for queue in self.calls()), default=None)

    def add(
        self, partition: TopicPartition, session: int, records: Sequence[Waiting]
    ) -> PartitionQueues | None:
        """Append records of a partition, in order, to their queues; returns the partition's queues.

        Returns None and drops the records when the partition is being released. Records of an earlier session
        that are not started, or wait for their next attempt, are dropped: they are delivered again, or gone
        from the log.
        """
        work = self._partitions.get(partition)
        if work is None:
            work = self._partitions[partition] = PartitionQueues(partition, session=session)
        elif work.ended is not None:
            return None
        elif work.session != session:
            work.session, work.begun = session, -1
            self._drop_waiting(work, lambda _: False)
            for earlier in list(work.queues.values()):
                if earlier.slot is None:
                    self._abandon_queue(earlier)
        work.records += len(records)
        work.bytes += sum(map(size_of, records))
        if self.key_of is None:
            queue = work.queues.get(None)
            if queue is None:
                self._begin_call(work, None, deque(records))
            else:
                queue.waiting.extend(records)
        else:
            queues, key_of = work.queues, self.key_of
            for record in records:
                key = key_of(record)
                queue = queues.get(key)
                if queue is None:
                    self._begin_call(work, key, deque((record,)))
                else:
                    queue.waiting.append(record)
        self._fill_slots()
        return work

    def hold(self, held: bool) -> None:
        """Begin no further calls, or go on. What a release would wait for is dropped while it is held."""
        self.held = held
        if not held:
            self._fill_slots()
            return
        for work in list(self._partitions.values()):
            if work.ended is not None:
                self._give_up_waiting(work)

    def limit(self, begins: Begins) -> None:
        """Begin only such calls from now on. What is released waits for its turn, unlike with ``hold``."""
        self._begins = begins
        self._fill_slots()

    def keep(self, partitions: Container[TopicPartition]) -> None:
        """Drop what has not begun of all other partitions, before they are released."""
        for partition, work in list(self._partitions.items()):
            if partition not in partitions:
                self._give_up_waiting(work)

    def drop(self, partition: TopicPartition, record: Waiting) -> KeyQueue | None:
        """Drop a record that others have by now, unless a call has it: then return the call's queue."""
        work = self._partitions.get(partition)
        queue = (
            None if work is None else work.queues.get(None if self.key_of is None else self.key_of(record))
        )
        if work is None or queue is None:
            return None
        if record in queue.waiting:
            queue.waiting.remove(record)
        elif queue.slot is None:
            queue.taken = [taken for taken in queue.taken if taken is not record]
        else:
            return queue
        self._forget_records(work, [record])
        if not queue.taken and not queue.waiting:
            self._abandon_queue(queue)
        return None

    def leave_call(self, queue: KeyQueue, *, cancel: bool) -> None:
        """Cancel the call of a queue, or let it run on: its records are dropped, those behind them go on."""
        work, slot, taken = queue.partition, queue.slot, queue.taken
        rest, queue.waiting = queue.waiting, deque()
        if not cancel:
            queue.slot = None
        self._abandon_queue(queue)
        if not cancel:
            queue.slot, queue.taken = slot, taken
            self._left.add(queue)
        if rest:
            self._begin_call(work, queue.key, rest)
            self._fill_slots()

    def _begin_call(self, work: PartitionQueues, key: Hashable, records: deque[Waiting]) -> None:
        queue = work.queues[key] = KeyQueue(work, key, records)
        self._make_ready(queue)

    def _make_ready(self, queue: KeyQueue) -> None:
        work = queue.partition
        if not work.ready:
            self._turns.append(work)
        work.ready.append(queue)

    def _fill_slots(self) -> None:
        while (
            len(self._slots) < self.concurrency and (queue := self._next_queue(len(self._slots))) is not None
        ):
            self._slots.add(asyncio.get_running_loop().create_task(self._serve_queue(queue)))

    def _next_queue(self, busy: int) -> KeyQueue | None:
        """The queue to serve next, with this many busy slots; None if there is none."""
        if self.held or self._begins is not Begins.ALL:
            return None if self.held or self._begins is Begins.NONE else self._next_first()
        turns, passed = self._turns, 0
        while passed < len(turns):
            work = turns[0]
            if busy >= self._last_slot and work.running and len(self._partitions) > 1:
                turns.rotate(-1)
                passed += 1
                continue
            queue = work.ready.popleft()
            if not work.ready:
                turns.popleft()
            elif len(turns) > 1:
                turns.rotate(-1)
            if not queue.abandoned:
                work.running += 1
                return queue
        return None

    def _next_first(self) -> KeyQueue | None:
        """As ``_next_queue``, but only a queue with the first unfinished record of its partition."""
        for work in self._turns:
            queue = min(work.queues.values(), key=_first_offset, default=None)
            if queue is not None and queue in work.ready and _first_offset(queue) < work.begun:
                work.ready.remove(queue)
                if not work.ready:
                    self._turns.remove(work)
                work.running += 1
                return queue
        return None

    def is_paused(self, partition: TopicPartition) -> bool:
        """Return whether its owner has paused the partition's delivery, because too much waits."""
        work = self._partitions.get(partition)
        return work is not None and work.paused

    def bytes_of(self, partition: TopicPartition) -> int:
        """Size of the partition's records here."""
        work = self._partitions.get(partition)
        return 0 if work is None else work.bytes

    async def release(self, partitions: Iterable[TopicPartition], timeout_s: float) -> list[Unfinished]:
        """Finish or drop all records of these partitions within ``timeout_s``; returns the cancelled ones."""
        works = [self._partitions[p] for p in partitions if p in self._partitions]
        until = asyncio.get_running_loop().time() + timeout_s
        for work in works:
            work.until = min(work.until, until)
            self._close(work)
            if self.held:
                self._give_up_waiting(work)
            for queue in list(work.queues.values()):
                if queue.timer is not None and queue.timer.when() > work.until:
                    self._give_up(queue)
        ends = [asyncio.ensure_future(work.ended.wait()) for work in works if work.ended and work.queues]
        unfinished: list[Unfinished] = []
        try:
            if ends:
                await asyncio.wait(ends, timeout=timeout_s)
        finally:
            for end in ends:
                end.cancel()
            for work in works:
                self._give_up_all(work)
                unfinished += work.unfinished
                work.unfinished = []
                if self._partitions.get(work.partition) is work:
                    del self._partitions[work.partition]
            self._fill_slots()
        return unfinished

    async def release_all(self, timeout_s: float) -> list[Unfinished]:
        """As ``release``, for all partitions."""
        return await self.release(list(self._partitions), timeout_s)

    async def close(self, timeout_s: float) -> int:
        """Cancel all calls; nothing may be added afterwards. Returns how many calls do not end in time."""
        for work in list(self._partitions.values()):
            self._give_up_all(work)
        for queue in self._left:
            if queue.slot is not None:
                queue.slot.cancel()
        if not self._slots:
            return 0
        _, late = await asyncio.wait(self._slots, timeout=timeout_s)
        return len(late)

    # a slot

    async def _serve_queue(self, queue: KeyQueue | None) -> None:
        this = asyncio.current_task()
        assert this is not None, "a slot is a task"
        try:
            while queue is not None:
                try:
                    if not queue.abandoned:  # since the slot was made for it
                        taken = self._take_records(queue, this)
                        outcome = await self.run(taken, queue.attempt) if taken else None
                        if not queue.abandoned:
                            self._after_turn(queue, outcome)
                except BaseException as error:
                    if not _runs_in(this):
                        self._turns.clear()  # the loop is gone
                        raise
                    # no failure may be silent, not even of a slot that other code has cancelled
                    if not queue.abandoned:
                        self._fail_partition(queue)
                        self.on_failure(error)
                    if not isinstance(error, Exception | asyncio.CancelledError | GeneratorExit):
                        raise
                finally:
                    queue.partition.running -= 1
                    self._left.discard(queue)
                queue = None if this.cancelling() else self._next_queue(len(self._slots) - 1)
        finally:
            # in the same step as the search that found no ready queue, or a queue could miss its slot
            self._slots.discard(this)
            self._fill_slots()

    def _after_turn(self, queue: KeyQueue, outcome: Outcome) -> None:
        queue.slot = None
        if isinstance(outcome, Partly):
            self._finish_call(queue, outcome.finished)
            if isinstance(outcome.rest, Exception):
                raise outcome.rest
            outcome = outcome.rest
        if outcome is None:
            self._finish_call(queue, queue.taken)
        elif outcome == ONE_BY_ONE:
            self._split_call(queue)
        else:
            loop = asyncio.get_running_loop()
            due = loop.time() + outcome
            if due > queue.partition.until:
                self._give_up(queue)  # the attempt would be too late
            else:
                queue.timer = loop.call_at(due, self._try_again, queue)
            return
        if queue.waiting:
            self._make_ready(queue)
        else:
            self._end_queue(queue)

    def _try_again(self, queue: KeyQueue) -> None:
        queue.timer = None
        self._make_ready(queue)
        self._fill_slots()

    def _take_records(self, queue: KeyQueue, slot: asyncio.Task[None]) -> list[Waiting]:
        """The records of the queue's next call: new ones, or those to retry, but none that is late."""
        queue.slot = slot
        queue.began = queue.told = asyncio.get_running_loop().time()
        queue.attempt += 1
        if not queue.taken:
            self._take_waiting(queue)
        taken: list[Waiting] = queue.taken
        if self.is_late is not None and (late := list(filter(self.is_late, taken))):
            queue.taken = taken = [record for record in taken if record not in late]
            self._forget_records(queue.partition, late)
        return taken

    def _take_waiting(self, queue: KeyQueue) -> None:
        waiting = queue.waiting
        if self.batch == 1 or queue.one_by_one:
            taken = [waiting.popleft()]
            if queue.one_by_one:
                queue.one_by_one -= 1
        else:
            taken = [waiting.popleft() for _ in range(min(self.batch, len(waiting)))]
        queue.taken, queue.attempt = taken, 1
        last = taken[-1].offset
        if last > queue.partition.begun:
            queue.partition.begun = last

    def _finish_call(self, queue: KeyQueue, records: Sequence[Waiting]) -> None:
        taken, work = queue.taken, queue.partition
        if records is taken:
            queue.taken = ()
        else:
            finished = set(records)
            queue.taken = [record for record in taken if record not in finished]
        for record in records:
            work.records -= 1
            work.bytes -= size_of(record)
            self.done(record, work)

    def _split_call(self, queue: KeyQueue) -> None:
        queue.waiting.extendleft(reversed(queue.taken))
        queue.one_by_one = len(queue.taken)
        queue.taken = ()

    def _end_queue(self, queue: KeyQueue) -> None:
        work = queue.partition
        del work.queues[queue.key]
        if work.ended is not None and not work.queues:
            work.ended.set()

    def _fail_partition(self, queue: KeyQueue) -> None:
        """Stop the partition: later records must not overtake one that is neither done nor a dead letter."""
        self._abandon_queue(queue)
        self._close(queue.partition)

    # release

    def _close(self, work: PartitionQueues) -> None:
        """Take no more records; drop those not started, except those before a started one."""
        if work.ended is None:
            work.ended = asyncio.Event()
        self._drop_waiting(work, lambda record: record.offset <= work.begun)

    def _drop_waiting(self, work: PartitionQueues, keep: Callable[[Waiting], bool]) -> None:
        for queue in list(work.queues.values()):
            kept = deque(record for record in queue.waiting if keep(record))
            if not kept and not queue.taken:
                self._abandon_queue(queue)
                continue
            self._forget_records(work, [record for record in queue.waiting if not keep(record)])
            queue.waiting = kept

    def _give_up_waiting(self, work: PartitionQueues) -> None:
        """Drop what has not begun, and give up what waits for its next attempt."""
        self._drop_waiting(work, lambda _: False)
        for queue in list(work.queues.values()):
            if queue.slot is None:
                self._give_up(queue)

    def _give_up_all(self, work: PartitionQueues) -> None:
        for queue in list(work.queues.values()):
            self._give_up(queue)

    def _give_up(self, queue: KeyQueue) -> None:
        """Abandon a queue in a release: its records are unfinished."""
        work = queue.partition
        records = (*queue.taken, *queue.waiting)
        work.unfinished += [Unfinished(work.partition, record.offset) for record in records]
        self._abandon_queue(queue)

    def _abandon_queue(self, queue: KeyQueue) -> None:
        queue.abandoned = True
        if queue.timer is not None:
            queue.timer.cancel()
        if queue.slot is not None and queue.slot is not asyncio.current_task():
            queue.slot.cancel()
        self._forget_records(queue.partition, [*queue.taken, *queue.waiting])
        queue.taken = ()
        queue.waiting.clear()
        self._end_queue(queue)

    def _forget_records(self, work: PartitionQueues, records: Iterable[Waiting]) -> None:
        for record in records:
            work.records -= 1
            work.bytes -= size_of(record)
            self.dropped(record, work)


def _first_offset(queue: KeyQueue) -> int:
    offset: int = (queue.taken or queue.waiting)[0].offset
    return offset


def _runs_in(task: asyncio.Task[None]) -> bool:
    """Return whether this runs in the task, and not in its coroutine as somebody closes that."""
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False
