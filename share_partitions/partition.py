"""The records in flight of one share partition: (group, topic id, partition) at the partition's leader.

Between the start offset, below which all is done, and the end offset, above which nothing was ever acquired,
every offset belongs to one *run*. A run is a range of offsets that share state, member, lock and delivery
count, so a batch that one member acquires and accepts is one run however many records it has::

    offset    0 ........ 9 10 .. 14 15 16 ........ 31   32 and on
              below start  acquired  A  available       never acquired
                           by m1     c  delivered
                                     c  twice

A run is split when only a part of it changes. ``acquire``, ``acknowledge``, ``release_member`` and ``expire``
change the runs at once and return what has to be stored. Until ``complete`` or ``undo`` says how that went,
the runs of the write can be neither acquired nor acknowledged, and the start offset does not pass them.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from operator import attrgetter
from typing import Final

from ..protocol import AcknowledgeType, ErrorCode, KafkaError
from ..protocol.named_tuples import NamedTuple
from ..statemachine import SHARE_RECORD, ShareRecordState, ShareRecordTrigger
from .acknowledgements import AcknowledgedRange
from .tallies import ShareSummary, ShareTallies, Tally

_S, _T = ShareRecordState, ShareRecordTrigger
_DONE: Final = (_S.ACKNOWLEDGED, _S.ARCHIVED)
_FIRST: Final = attrgetter("first")
_NOBODY: Final = ""
#: Void ends of locks, beyond one for each run, that need not be cleared away.
_FEW_LOCKS: Final = 64
#: Ranges that are looked at, or changed, in one step of an acknowledgement.
_STEP: Final = 1_000

#: Apache Kafka's words for what nobody has, and for what another member has: for a batch as it was acquired,
#: and for a part of one.
_WHOLE: Final = (
    "The batch cannot be acknowledged. The batch is not in the acquired state.",
    "Member is not the owner of batch record",
)
_PART: Final = (
    "The offset cannot be acknowledged. The offset is not acquired.",
    "Member is not the owner of offset",
)

#: What an acknowledgement does to a record that may be delivered again.
_TRIGGERS: Final = {
    AcknowledgeType.GAP: _T.REJECT,
    AcknowledgeType.ACCEPT: _T.ACCEPT,
    AcknowledgeType.RELEASE: _T.RELEASE,
    AcknowledgeType.REJECT: _T.REJECT,
    AcknowledgeType.RENEW: _T.RENEW,
}


class StoredState(IntEnum):
    """States of records in ``__share_group_state``; a record that is acquired is not stored."""

    AVAILABLE = 0
    ACKNOWLEDGED = 2
    ARCHIVED = 4


_STORED: Final = {
    _S.AVAILABLE: StoredState.AVAILABLE,
    _S.ACKNOWLEDGED: StoredState.ACKNOWLEDGED,
    _S.ARCHIVED: StoredState.ARCHIVED,
}
_LOADED: Final = {stored: state for state, stored in _STORED.items()}


class StateBatch(NamedTuple):
    """Offsets from ``first`` to ``last``, both included, as they are stored."""

    first: int
    last: int
    state: StoredState
    delivery_count: int


class AcquiredRange(NamedTuple):
    """Offsets from ``first`` to ``last``, both included, that a member has now, for the n-th time."""

    first: int
    last: int
    delivery_count: int


class BatchOffsets(NamedTuple):
    """Offsets of a record batch of the log, both included."""

    first: int
    last: int


@dataclass(frozen=True)
class ShareLimits:
    """Settings of the group, which may change at any time.

    ``lock_ms``: share.record.lock.duration.ms, for locks that begin from now on. ``delivery_count``:
    share.delivery.count.limit. ``record_locks``: share.partition.max.record.locks, how far the end offset may
    be ahead of the start offset. ``may_renew``: share.renew.acknowledge.enable.
    """

    lock_ms: int = 30_000
    delivery_count: int = 5
    record_locks: int = 2_000
    may_renew: bool = True


class _AcquiredTogether:
    """Records that were first acquired together. ``size`` is their number then."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size


class _InFlight:
    """Offsets from ``first`` to ``last`` of one state.

    ``before``: state, member and lock as they were, while a write of the new state is on the way; and the
    tally that counts the records once that is stored.
    """

    __slots__ = ("batch", "before", "deadline_ms", "delivery_count", "first", "last", "member", "state")

    def __init__(
        self, first: int, last: int, batch: _AcquiredTogether, state: ShareRecordState, count: int
    ) -> None:
        self.first, self.last = first, last
        self.batch = batch
        self.state = state
        self.delivery_count = count
        self.member = _NOBODY
        self.deadline_ms = 0
        self.before: tuple[ShareRecordState, str, int, Tally | None] | None = None

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __repr__(self) -> str:
        return f"<{self.first}-{self.last} {self.state.value} {self.delivery_count} {self.member}>"

    def cut(self, first: int) -> _InFlight:
        """End this run before an offset in it, and return a run of the rest."""
        rest = _InFlight(first, self.last, self.batch, self.state, self.delivery_count)
        rest.member, rest.deadline_ms = self.member, self.deadline_ms
        self.last = first - 1
        return rest


@dataclass(frozen=True, eq=False)
class StateWrite:
    """What has to be stored, as WriteShareGroupState has it.

    ``start_offset`` is that of before the change. ``done_count``: offsets at or above it that are done
    (DeliveryCompleteCount).
    """

    batches: Sequence[StateBatch]
    start_offset: int
    done_count: int
    _runs: Sequence[_InFlight] = field(repr=False)


class Acquisition(NamedTuple):
    """What a fetch acquired, and what it found to be no records for anybody, if it did."""

    ranges: Sequence[AcquiredRange]
    write: StateWrite | None


class SharePartition:
    """The share partition of one group, from ``start_offset`` on.

    ``batches``: states as they were stored, in order of their offsets. What no batch has is Available and was
    never delivered.
    """

    def __init__(self, start_offset: int, batches: Iterable[StateBatch] = ()) -> None:
        #: All offsets below are done.
        self.start_offset = start_offset
        self.tallies = ShareTallies()
        self._runs: list[_InFlight] = []
        #: Offsets at or above the start offset that are done, those of writes on the way among them.
        self.done_count = 0
        #: No run that begins below this offset is Available.
        self._look_from = start_offset
        #: Ends of locks: time, first and last offset; an entry whose run has another lock by now is void.
        self._locks: list[tuple[int, int, int]] = []
        for first, last, stored, count in batches:
            self._load(max(first, start_offset), last, _LOADED[stored], count)
        self._advance()

    def __repr__(self) -> str:
        return f"<SharePartition: {self.start_offset} to {self.end_offset}, {len(self._runs)} runs>"

    @property
    def end_offset(self) -> int:
        """The first offset that was never acquired."""
        return self._runs[-1].last + 1 if self._runs else self.start_offset

    @property
    def next_offset(self) -> int:
        """The offset from which the next fetch reads: the first that is Available."""
        end = self.end_offset
        if self._look_from < end:
            for run in self._from(self._look_from):
                if run.state is _S.AVAILABLE and run.before is None:
                    self._look_from = run.first
                    return max(run.first, self.start_offset)
        self._look_from = end
        return end

    def can_acquire(self, limits: ShareLimits) -> bool:
        """Whether a fetch may acquire something, if the log has records at ``next_offset``."""
        return self.next_offset < self.end_offset or self._has_room(limits)

    def next_wanted(self, offset: int, limits: ShareLimits) -> int | None:
        """Return the first offset from ``offset`` on that a fetch could acquire: what lies before need not be
        read. None if there is none, whatever the log has.
        """
        first, end = max(offset, self.next_offset), self.end_offset
        if first < end:
            for run in self._from(first):
                if run.state is _S.AVAILABLE and run.before is None:
                    return max(run.first, offset, self.start_offset)
        return max(offset, end) if end - self.start_offset < limits.record_locks else None

    def count_wanted(self, first: int, last: int) -> int:
        """Return how many offsets from ``first`` to ``last`` a fetch could acquire."""
        count, end = 0, self.end_offset
        if first < end:
            for run in self._from(first):
                if run.first > last:
                    break
                if run.state is _S.AVAILABLE and run.before is None:
                    count += min(run.last, last) - max(run.first, first) + 1
        return count + max(last - max(end, first) + 1, 0)

    @property
    def in_flight(self) -> tuple[int, int]:
        """The number of runs in flight, and of the records in them."""
        return len(self._runs), self.end_offset - self.start_offset

    def summarize(self) -> ShareSummary:
        """Return what is in flight. It takes time for each run."""
        held: dict[str, int] = {}
        deliveries: dict[int, int] = {}
        available = done = 0
        for run in self._runs:
            size = len(run)
            if run.state in _DONE:
                done += size
                continue
            deliveries[run.delivery_count] = deliveries.get(run.delivery_count, 0) + size
            if run.state is _S.ACQUIRED:
                held[run.member] = held.get(run.member, 0) + size
            else:
                available += size
        first = (self._runs[0].member, self._runs[0].delivery_count) if self._runs else (_NOBODY, 0)
        return ShareSummary(held, available, done, deliveries, first)

    def count_on_last_delivery(self, limits: ShareLimits) -> int:
        """Return how many records members have for the last time. It takes time for each run."""
        return sum(
            len(run)
            for run in self._runs
            if run.state is _S.ACQUIRED and run.delivery_count >= limits.delivery_count
        )

    @property
    def has_acquired(self) -> bool:
        """Whether a member has any of it."""
        return any(run.state is _S.ACQUIRED for run in self._runs)

    def acquired_by(self, member: str) -> int:
        """Return the number of offsets that a member has now."""
        return sum(len(run) for run in self._runs if run.state is _S.ACQUIRED and run.member == member)

    def acquire(
        self,
        member: str,
        batches: Sequence[BatchOffsets],
        limits: ShareLimits,
        now_ms: int,
        *,
        most: int,
        strict: bool = False,
        batch_size: int = 0,
        aborted: Sequence[tuple[int, int]] = (),
    ) -> Acquisition:
        """Give a member records that were read from ``next_offset`` on, the first Available ones first.

        ``batches``: the record batches that were read, in order. ``most``: MaxRecords, at least 1; unless
        ``strict`` (ShareAcquireMode 1) the record batch in which it is reached is acquired whole.
        ``batch_size``: a range of new records ends before the record batch that begins so many offsets or
        more behind the range's first (0: nowhere); it means nothing if ``strict``. ``aborted``: ranges of
        offsets, both included, whose records are of aborted transactions and are given to nobody.
        """
        if not batches:
            return Acquisition((), None)
        end = self.end_offset
        discarded = self._discard(batches, aborted)
        taken = self._take_again(member, batches[-1].last, limits, now_ms, most, strict)
        left = most - sum(len(run) for run in taken)
        if left > 0 and not _is_last_delivery(taken, limits):
            new = [batch for batch in batches if batch.last >= end]
            fresh = self._take_new(new, limits, left, strict, 0 if strict else batch_size)
            for run in self._without(fresh, aborted, discarded):
                self._lock(run, member, limits, now_ms)
                taken.append(run)
        self._look_from = min(self._look_from, end)
        write = self._write(discarded) if discarded else None
        return Acquisition(_ranges(taken), write)

    def acknowledge(
        self, member: str, ranges: Sequence[AcknowledgedRange], limits: ShareLimits, now_ms: int
    ) -> StateWrite | None:
        """Carry out what a member says of its records, all or nothing. None if nothing has to be stored.

        ``ranges`` have passed ``check_ranges``; offsets below the start offset are passed over. Raises
        KafkaError with INVALID_RECORD_STATE or INVALID_REQUEST.
        """
        steps = self.acknowledge_in_steps(member, ranges, limits, now_ms)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                write: StateWrite | None = done.value
                return write

    def acknowledge_in_steps(
        self, member: str, ranges: Sequence[AcknowledgedRange], limits: ShareLimits, now_ms: int
    ) -> Generator[None, None, StateWrite | None]:
        """Do the same in steps, between which anything may happen. If the member loses a record meanwhile, or
        the steps are closed, what was done so far is undone, but for renewals.
        """
        before, work = -1, 0
        for each in ranges:
            if each.last >= self.start_offset:
                if each.first <= before:
                    raise _refusal(_PART[0])
                self._check_acquired(member, each, limits)
                before = each.last
                work += 1
                if not work % _STEP:
                    yield
        changed: list[_InFlight] = []
        batches: list[StateBatch] = []
        try:
            for each in ranges:
                for first, last, kind in each.pieces():
                    work += 1
                    if not work % _STEP:
                        yield
                    for run in self._split(first, last):
                        if run.member != member or run.state is not _S.ACQUIRED:
                            raise _not_held(run)
                        if kind is AcknowledgeType.RENEW:
                            self._lock(run, member, limits, now_ms, delivery=0)
                        else:
                            self._give_back(run, kind, limits)
                            changed.append(run)
                            _add_batch(batches, run)
        except BaseException:
            self.undo(StateWrite((), self.start_offset, 0, changed))
            raise
        if not changed:
            return None
        return StateWrite(batches, self.start_offset, self.done_count, changed)

    def take_back(self, member: str, ranges: Iterable[AcquiredRange]) -> None:
        """Take from a member what it was given in an answer that did not reach it: the delivery does not
        count. Nothing has to be stored, as acquiring stored nothing.
        """
        for first, last, count in ranges:
            held = [
                (max(run.first, first), min(run.last, last))
                for run in self._from(first)
                if run.first <= last
                and run.state is _S.ACQUIRED
                and run.member == member
                and run.delivery_count == count
            ]
            for part in held:
                for run in self._split(*part):
                    run.state = SHARE_RECORD.next(run.state, _T.TAKE_BACK)
                    run.member, run.deadline_ms = _NOBODY, 0
                    run.delivery_count -= 1
                    self._look_from = min(self._look_from, run.first)

    def release_member(self, member: str, limits: ShareLimits) -> StateWrite | None:
        """Take from a member whatever it has, as when its session ends. None if it has nothing."""
        return self._release([run for run in self._runs if run.member == member], limits)

    def write_start(self) -> StateWrite:
        """Return what has to be stored where the start offset alone has moved."""
        return self._write(())

    def expire(self, limits: ShareLimits, now_ms: int) -> StateWrite | None:
        """Take from members the records whose locks have ended. None if there are none."""
        late: dict[int, _InFlight] = {}
        while self._locks and self._locks[0][0] <= now_ms:
            deadline_ms, first, last = heapq.heappop(self._locks)
            for run in self._from(first):
                if run.first > last:
                    break
                if run.deadline_ms == deadline_ms:
                    late[run.first] = run
        lost = [late[first] for first in sorted(late)]
        for run in lost:
            self.tallies.lost_locks.add(run.first, run.last, run.member, run.delivery_count)
        return self._release(lost, limits)

    @property
    def next_deadline_ms(self) -> int | None:
        """When ``expire`` should be called; some locks may have been renewed or given up by then."""
        return self._locks[0][0] if self._locks else None

    def complete(self, write: StateWrite) -> None:
        """Go on from a write that is stored: the start offset moves past what is done without a gap."""
        for run in write._runs:
            if run.before is not None and (tally := run.before[3]) is not None:
                tally.add(run.first, run.last, run.before[1], run.delivery_count)
            run.before = None
            if run.state is _S.AVAILABLE:
                self._look_from = min(self._look_from, run.first)
        self._advance()

    def undo(self, write: StateWrite) -> None:
        """Go back to what was before a write that failed. ``expire`` finds locks that ended meanwhile."""
        for run in write._runs:
            assert run.before is not None, "its write is on the way"
            if run.last < self.start_offset:
                continue  # the log has moved past it meanwhile
            if run.state in _DONE:
                self.done_count -= len(run)
            run.state, run.member, run.deadline_ms, _ = run.before
            run.before = None
            if run.state is _S.ACQUIRED:
                heapq.heappush(self._locks, (run.deadline_ms, run.first, run.last))
            else:
                self._look_from = min(self._look_from, run.first)

    def follow_log_start(self, offset: int) -> bool:
        """Drop what the log does not have any more. Returns whether the start offset has moved."""
        if offset <= self.start_offset:
            return False
        while self._runs and self._runs[0].first < offset:
            run = self._runs[0]
            if run.state in _DONE:
                self.done_count -= min(len(run), offset - run.first)
            if run.last < offset:
                # as a write of it may be on the way, it is left as it is
                del self._runs[0]
            else:
                run.first = offset
        self.start_offset = offset
        self._advance()
        return True

    def _load(self, first: int, last: int, state: ShareRecordState, count: int) -> None:
        if last < first:
            return
        end = self.end_offset
        assert first >= end, "stored batches are in order"
        if first > end:
            self._runs.append(_InFlight(end, first - 1, _AcquiredTogether(first - end), _S.AVAILABLE, 0))
        self._runs.append(_InFlight(first, last, _AcquiredTogether(last - first + 1), state, count))
        if state in _DONE:
            self.done_count += last - first + 1

    def _has_room(self, limits: ShareLimits) -> bool:
        return self.end_offset - self.start_offset < limits.record_locks

    def _index(self, offset: int) -> int:
        """Return the index of the run with an offset; that of the first run if it lies below."""
        return max(bisect_right(self._runs, offset, key=_FIRST) - 1, 0)

    def _from(self, offset: int) -> Iterator[_InFlight]:
        """Yield the runs from the one with an offset on."""
        runs = self._runs
        for index in range(self._index(offset), len(runs)):
            if runs[index].last >= offset:
                yield runs[index]

    def _split(self, first: int, last: int) -> list[_InFlight]:
        """Return runs that cover what is in flight from ``first`` to ``last``, and nothing else, but for runs
        of a write that is on the way: these stay whole.
        """
        first = max(first, self.start_offset)
        if first > last or first >= self.end_offset:
            return []
        at = self._index(first)
        if self._runs[at].first < first and self._runs[at].before is None:
            self._runs.insert(at + 1, self._runs[at].cut(first))
            at += 1
        until = self._index(last)
        if self._runs[until].last > last and self._runs[until].before is None:
            self._runs.insert(until + 1, self._runs[until].cut(last + 1))
        return self._runs[at : until + 1]

    def _lock(
        self, run: _InFlight, member: str, limits: ShareLimits, now_ms: int, *, delivery: int = 1
    ) -> None:
        trigger = _T.ACQUIRE if delivery else _T.RENEW
        run.state = SHARE_RECORD.next(run.state, trigger)
        run.member = member
        run.delivery_count += delivery
        run.deadline_ms = now_ms + limits.lock_ms
        if delivery and run.delivery_count >= limits.delivery_count:
            self.tallies.last_deliveries.add(run.first, run.last, member, run.delivery_count)
        heapq.heappush(self._locks, (run.deadline_ms, run.first, run.last))
        if len(self._locks) > 2 * len(self._runs) + _FEW_LOCKS:
            # locks that were renewed again and again
            self._locks = [
                (run.deadline_ms, run.first, run.last) for run in self._runs if run.state is _S.ACQUIRED
            ]
            heapq.heapify(self._locks)

    def _give_back(self, run: _InFlight, kind: AcknowledgeType, limits: ShareLimits) -> None:
        """Carry out an acknowledgement other than a renewal."""
        trigger = _trigger(kind, run, limits)
        tally = None
        if kind is AcknowledgeType.REJECT:
            tally = self.tallies.rejected
        elif trigger is _T.EXHAUST:
            tally = self.tallies.exhausted
        self._change(run, trigger, tally)

    def _change(self, run: _InFlight, trigger: ShareRecordTrigger, tally: Tally | None = None) -> None:
        """Move a run to a state that has to be stored; it has no member from then on."""
        run.before = (run.state, run.member, run.deadline_ms, tally)
        run.state = SHARE_RECORD.next(run.state, trigger)
        run.member, run.deadline_ms = _NOBODY, 0
        if run.state in _DONE:
            self.done_count += len(run)

    def _release(self, runs: Sequence[_InFlight], limits: ShareLimits) -> StateWrite | None:
        held = [run for run in runs if run.state is _S.ACQUIRED]
        for run in held:
            self._give_back(run, AcknowledgeType.RELEASE, limits)
        return self._write(held) if held else None

    def _write(self, runs: Sequence[_InFlight]) -> StateWrite:
        batches: list[StateBatch] = []
        for run in runs:
            _add_batch(batches, run)
        return StateWrite(batches, self.start_offset, self.done_count, tuple(runs))

    def _advance(self) -> None:
        """Move the start offset past what is done and stored."""
        past = 0
        for run in self._runs:
            if run.state not in _DONE or run.before is not None:
                break
            past += 1
            self.done_count -= len(run)
            self.start_offset = run.last + 1
        del self._runs[:past]
        self._look_from = max(self._look_from, self.start_offset)

    def _check_acquired(self, member: str, each: AcknowledgedRange, limits: ShareLimits) -> None:
        """Raise KafkaError unless a member has all of a range that is not wholly below the start offset."""
        if not self._runs:
            raise _refusal("Batch record not found. The request batch offsets are not found in the cache.")
        if each.last >= self.end_offset:
            which = "first" if each.first >= self.end_offset else "last"
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Batch record not found. The {which} offset in request is past acquired records.",
            )
        for run in self._from(max(each.first, self.start_offset)):
            if run.first > each.last:
                break
            if run.member != member or run.state is not _S.ACQUIRED:
                raise _not_held(run)
        if not limits.may_renew and AcknowledgeType.RENEW in each.types:
            raise _refusal("Renewing acquisition locks is not enabled for the group.")

    def _discard(
        self, batches: Sequence[BatchOffsets], aborted: Sequence[tuple[int, int]]
    ) -> list[_InFlight]:
        """Archive what is Available and is no record for anybody: compacted away, or aborted."""
        holes = list(aborted)
        after = self.next_offset
        for first, last in batches:
            if first > after:
                holes.append((after, first - 1))
            after = max(after, last + 1)
        gone: list[_InFlight] = []
        for first, last in sorted(holes):
            stretches = [
                (max(run.first, first), min(run.last, last))
                for run in self._from(first)
                if run.first <= last and run.state is _S.AVAILABLE and run.before is None
            ]
            for stretch in stretches:
                for run in self._split(*stretch):
                    if run.before is None:
                        self._change(run, _T.DISCARD)
                        gone.append(run)
        return gone

    def _take_again(
        self, member: str, last: int, limits: ShareLimits, now_ms: int, most: int, strict: bool
    ) -> list[_InFlight]:
        """Lock what is Available up to an offset. Unless ``strict``, what was acquired together first comes
        together where ``most`` is reached in it.
        """
        taken: list[_InFlight] = []
        left, batch = most, None
        waiting = [
            run
            for run in self._from(self.next_offset)
            if run.first <= last and run.state is _S.AVAILABLE and run.before is None
        ]
        for run in waiting:
            if left <= 0 and (strict or run.batch is not batch):
                break
            batch = run.batch
            part = _part_size(run, limits)
            is_part = part < len(run) or run.delivery_count + 1 >= limits.delivery_count > 2
            if taken and is_part and run.delivery_count + 1 >= limits.delivery_count:
                break  # a last delivery is alone in its answer
            size = min(part, last - run.first + 1, left if strict else part)
            for each in self._split(run.first, run.first + size - 1):
                self._lock(each, member, limits, now_ms)
                taken.append(each)
            left -= size
            if is_part:
                break
        return taken

    def _take_new(
        self, batches: Sequence[BatchOffsets], limits: ShareLimits, left: int, strict: bool, batch_size: int
    ) -> list[_InFlight]:
        """Add runs of records that were never acquired, which are Available still."""
        runs: list[_InFlight] = []
        for batch in batches:
            if left <= 0 or not self._has_room(limits):
                break
            end = self.end_offset
            last = min(batch.last, end + left - 1) if strict else batch.last
            left -= last - max(batch.first, end) + 1
            if runs and not (batch_size and batch.first - runs[-1].first >= batch_size):
                runs[-1].last = last
                runs[-1].batch.size = len(runs[-1])
            else:
                runs.append(_InFlight(end, last, _AcquiredTogether(last - end + 1), _S.AVAILABLE, 0))
                self._runs.append(runs[-1])
        return runs

    def _without(
        self, runs: Sequence[_InFlight], aborted: Sequence[tuple[int, int]], discarded: list[_InFlight]
    ) -> Iterator[_InFlight]:
        """Yield what is left of new runs without aborted records, which are archived."""
        for run in runs:
            first, last = run.first, run.last
            for low, high in aborted:
                if low <= last and high >= first:
                    for each in self._split(max(low, first), min(high, last)):
                        self._change(each, _T.DISCARD)
                        discarded.append(each)
            for each in self._split(first, last):
                if each.state is _S.AVAILABLE:
                    yield each


def _add_batch(batches: list[StateBatch], run: _InFlight) -> None:
    """Add a run to what has to be stored; neighbours with equal state and count are one batch."""
    stored = _STORED[run.state]
    if batches and batches[-1][1:] == (run.first - 1, stored, run.delivery_count):
        batches[-1] = batches[-1]._replace(last=run.last)
    else:
        batches.append(StateBatch(run.first, run.last, stored, run.delivery_count))


def _refusal(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, message)


def _not_held(run: _InFlight) -> KafkaError:
    """Return why a member that does not have a run can say nothing of it."""
    not_acquired, not_owner = _WHOLE if len(run) == run.batch.size else _PART
    if run.before is not None:
        return _refusal(
            "The record state is invalid. The acknowledgement of delivery could not be completed."
        )
    return _refusal(not_acquired if run.state is not _S.ACQUIRED else not_owner)


def _trigger(kind: AcknowledgeType, run: _InFlight, limits: ShareLimits) -> ShareRecordTrigger:
    if kind is AcknowledgeType.RELEASE and run.delivery_count >= limits.delivery_count:
        return _T.EXHAUST
    return _TRIGGERS[kind]


def _part_size(run: _InFlight, limits: ShareLimits) -> int:
    """Return how many records of a run are given at once.

    A batch that keeps failing is given in ever smaller parts, in the end record by record, so that one bad
    record does not take the others with it (KAFKA-17541).
    """
    count, limit = run.delivery_count, limits.delivery_count
    if limit > 2 and count + 1 >= limit:
        return 1
    few = max(2, (limit + 1) // 2)
    if count < few:
        return len(run)
    return min(len(run), max(1, run.batch.size >> (count - few + 1)))


def _is_last_delivery(runs: Sequence[_InFlight], limits: ShareLimits) -> bool:
    return bool(runs) and limits.delivery_count > 2 and runs[-1].delivery_count >= limits.delivery_count


def _ranges(runs: Iterable[_InFlight]) -> list[AcquiredRange]:
    """Return what was acquired; neighbours that were delivered before are one range if as often."""
    ranges: list[AcquiredRange] = []
    for run in runs:
        last = ranges[-1] if ranges else None
        if (
            last is not None
            and last.last + 1 == run.first
            and last.delivery_count == run.delivery_count
            and run.delivery_count > 1
        ):
            ranges[-1] = last._replace(last=run.last)
        else:
            ranges.append(AcquiredRange(run.first, run.last, run.delivery_count))
    return ranges
