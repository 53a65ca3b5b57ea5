"""Ranges of the delivered and the done records of one partition. No I/O."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...client.offsets import CommittedOffset
from ...protocol import TopicPartition
from . import done_ahead
from .done_ahead import Range

#: Bounds of passed ranges are removed once there are this many, and they are half of the list.
_TRIM = 64


@dataclass(slots=True, eq=False)
class PartitionSession:
    """A partition with this consumer, from its assignment (or a seek) to its revocation.

    ``session_id`` is unique among all consumers. ``assignment`` is the id of the first session since the
    partition was assigned; sessions after a seek or a reset share it. ``committed`` is what this session has
    committed, or started from if that was committed. ``leader_epoch`` is the highest one under which this
    session knows the log was read (-1: unknown), for KIP-320.

    ``first`` is the first offset that is not done, ``position`` the next one to deliver. Between the two and
    beyond there are *closed* ranges of offsets: they are done, in this session or an earlier one, or hold no
    records (compaction, control batches, aborted transactions). Everything else before ``position`` is
    delivered and not done. There is at most one closed range for each undone record, so that memory and the
    work of a commit grow with the gaps, not with the records after them.
    """

    partition: TopicPartition
    session_id: int
    position: int
    committed: CommittedOffset | None = None
    leader_epoch: int = -1
    assignment: int = 0
    #: Everything before this offset is done.
    first: int = field(init=False)
    #: Offsets from ``first`` up to this one can be marked done in order by raising ``first`` alone.
    limit: int = field(init=False)
    #: Offsets marked done by other threads, which append to it; ``Tracker.done_marked`` processes them.
    marked: list[int] = field(default_factory=list)
    #: Starts and ends of the closed ranges in turn, ascending, from ``_head`` on. No two ranges touch.
    _bounds: list[int] = field(default_factory=list)
    _head: int = 0
    #: Starts of the closed ranges that only hold no records: commits do not mention them.
    _holes: set[int] = field(default_factory=set)
    #: Offsets between ``first`` and ``position`` that are closed.
    _skipped: int = 0
    _delivered: int = 0

    def __post_init__(self) -> None:
        self.first = self.limit = self.position

    def __repr__(self) -> str:
        return f"PartitionSession({self.partition}, {self.undone} undone from {self.first} on)"

    @property
    def undone(self) -> int:
        """Records delivered and not done."""
        return self.position - self.first - self._skipped

    @property
    def any_done(self) -> bool:
        """Return whether a record that was delivered has been marked done."""
        return self.undone < self._delivered

    @property
    def committable(self) -> int:
        """Everything before this offset is done."""
        return self.first

    @property
    def first_undone(self) -> int | None:
        """Offset of the oldest record that is delivered and not done; None if there is none."""
        return self.first if self.undone else None

    def to_commit(self) -> CommittedOffset:
        """The offset and metadata of a commit now."""
        return CommittedOffset(
            self.first, self.leader_epoch, done_ahead.encode(self.first, self._done_ranges())
        )

    def epoch_at(self, offset: int) -> int:
        """The leader epoch for a commit of this offset; -1 where the log was not read that far."""
        return self.leader_epoch if offset <= self.position else -1

    def read_under(self, leader_epoch: int) -> None:
        """The log was read under this leader epoch.

        The highest one counts, for lower offsets as well: what an earlier session had done beyond the commit
        may have been read under it, and up to its end the log is the same.
        """
        self.leader_epoch = max(self.leader_epoch, leader_epoch)

    def done_earlier(self, ranges: Iterable[Range]) -> None:
        """Close ranges that an earlier session has done; they ascend, from ``position`` or later."""
        for start, end in ranges:
            self._close(start, end)

    # delivery

    def delivered_all(self, offsets: Sequence[int]) -> None:
        """Records are delivered together; at least one. Offsets rise, and are ``fresh_indexes``."""
        first, end = offsets[0], offsets[-1] + 1
        if end - first == len(offsets):
            self._deliver_range(first, end)
        else:
            for start, stop in _ranges_of(offsets):
                self._deliver_range(start, stop)

    def _deliver_range(self, start: int, end: int) -> None:
        if start > self.position:
            self.pass_by(start)
        self._delivered += end - start
        self.position = end
        bounds = self._bounds
        self.limit = bounds[self._head] - 1 if bounds and bounds[self._head] <= end else end

    def taken_back(self, offset: int) -> None:
        """Records from this offset on did not reach the user, or nobody has them any more: those that are
        not done will be delivered again.
        """
        undone = self.position - offset - self._closed_in(offset, self.position)
        left = self.undone - undone
        self._delivered -= undone
        self.position = offset
        self._restore_invariants(left)

    def pass_by(self, position: int) -> None:
        """No (more) records are to be delivered before this offset."""
        before, bounds = self.position, self._bounds
        if position <= before:
            return
        self.position = position
        if before == self.first and not bounds:
            self.first = self.limit = position
        elif before != self.first and (not bounds or bounds[-1] < before):
            self.limit = min(self.limit, before - 1)
            self._skipped += position - before
            self._holes.add(before)
            bounds += (before, position)
        else:
            undone = before - self.first - self._skipped
            self._close(before, position, hole=True)
            self._restore_invariants(undone)

    def cut(self, offset: int) -> None:
        """The log was truncated at this offset: forget what earlier sessions had done after it."""
        offset, bounds = max(offset, self.position), self._bounds
        at = bisect_left(bounds, offset, self._head)
        self._holes.difference_update(bounds[at:])
        bounds[at:] = [offset] if at % 2 else []
        self._trim_ranges()
        if self.committed is not None and self.committed.offset > offset:
            self.committed = None
        self._restore_invariants(self.undone)

    def closed_beyond(self, offset: int) -> list[Range]:
        """Closed ranges that end after this offset."""
        at = bisect_right(self._bounds, offset, self._head) // 2 * 2
        return list(zip(self._bounds[at::2], self._bounds[at + 1 :: 2], strict=True))

    def fresh_indexes(self, offsets: Sequence[int]) -> Sequence[int]:
        """Indexes, in these ascending offsets, of the ones that no earlier session has done."""
        bounds = self._bounds
        if not bounds or not offsets or bounds[-1] <= offsets[0]:
            return range(len(offsets))
        return [at for at, offset in enumerate(offsets) if not bisect_right(bounds, offset) % 2]

    # done

    def done(self, offset: int) -> bool:
        """Mark one offset done, in fewer steps than ``done_range``.

        Returns whether that changed anything: False if it is not delivered, holds no record or is done
        already.
        """
        first = self.first
        if not first <= offset < self.position:
            return False
        bounds, head, behind = self._bounds, self._head, offset + 1
        if offset == first:
            self.first = behind
            if bounds and bounds[head] == behind:
                self._pass_closed()
            return True
        at = bisect_right(bounds, offset, head)
        if at % 2:
            return False
        joins = at < len(bounds) and bounds[at] == behind
        if joins and self._holes:
            self._holes.discard(behind)
        if at > head and bounds[at - 1] == offset:
            if self._holes:
                self._holes.discard(bounds[at - 2])
            if joins:
                del bounds[at - 1 : at + 1]
            else:
                bounds[at - 1] = behind
        else:
            if joins:
                bounds[at] = offset
            else:
                bounds[at:at] = (offset, behind)
            if at == head:
                self._set_limit()
        self._skipped += 1
        return True

    def done_all(self, offsets: Sequence[int]) -> None:
        """Mark these offsets done, in any order; at least one."""
        start, end = offsets[0], offsets[-1] + 1
        if end - start == len(offsets) and _in_a_row(offsets):
            self.done_range(start, end)
        else:
            for first, stop in _ranges_of(sorted(offsets)):
                self.done_range(first, stop)

    def done_range(self, start: int, end: int) -> int:
        """Mark the delivered records in this range done; returns how many were not done before."""
        start, end = max(start, self.first), min(end, self.position)
        if start >= end:
            return 0
        if start == self.first and end <= self.limit:
            self.first = end
            return end - start
        undone = self.undone
        news = end - start - self._close(start, end)
        self._restore_invariants(undone - news)
        return news

    def done_before(self, offset: int) -> None:
        """Mark everything delivered before this offset done."""
        self.done_range(self.first, offset)

    # the closed ranges

    def _close(self, start: int, end: int, *, hole: bool = False) -> int:
        """Close a range; returns how many of its offsets were closed before."""
        bounds, holes = self._bounds, self._holes
        # replace what is between the two indexes; an odd one is within a range, or at its end
        low = bisect_left(bounds, start, self._head)
        high = bisect_right(bounds, end, low)
        before = _count_covered(bounds, low, high, start, end)
        starts = bounds[low // 2 * 2 : high : 2]
        hole = hole and holes.issuperset(starts)
        holes.difference_update(starts)
        bounds[low:high] = [*([] if low % 2 else [start]), *([] if high % 2 else [end])]
        if hole:
            holes.add(bounds[low // 2 * 2])
        return before

    def _closed_in(self, start: int, end: int) -> int:
        low = bisect_left(self._bounds, start, self._head)
        return _count_covered(self._bounds, low, bisect_right(self._bounds, end, low), start, end)

    def _restore_invariants(self, undone: int) -> None:
        """Restore the invariants after a change that leaves this many records undone."""
        if self._bounds and self._bounds[self._head] <= self.first:
            self._pass_closed()
        self._skipped = self.position - self.first - undone
        self._set_limit()

    def _pass_closed(self) -> None:
        """Move ``first``, which has reached the first closed range, to its end."""
        bounds, head, position = self._bounds, self._head, self.position
        start, end = bounds[head], bounds[head + 1]
        if self._holes:
            if end > position and start in self._holes:
                self._holes.add(position)
            self._holes.discard(start)
        if end > position:
            # an earlier session has done more of it than is delivered yet
            bounds[head] = end = position
        else:
            self._head = head = head + 2
            if head > _TRIM or head == len(bounds):
                self._trim_ranges()
        self._skipped -= end - self.first
        self.first = end
        self._set_limit()

    def _trim_ranges(self) -> None:
        """Remove passed ranges, now and then, and all once all are passed."""
        head, size = self._head, len(self._bounds)
        if head == size or 2 * head > size:
            del self._bounds[:head]
            self._head = 0

    def _set_limit(self) -> None:
        position, bounds = self.position, self._bounds
        self.limit = bounds[self._head] - 1 if bounds and bounds[self._head] <= position else position

    def _done_ranges(self) -> Iterator[Range]:
        """The closed ranges with records that are done."""
        bounds, holes = self._bounds, self._holes
        for at in range(self._head, len(bounds), 2):
            if bounds[at] not in holes:
                yield bounds[at], bounds[at + 1]


def _count_covered(bounds: list[int], low: int, high: int, start: int, end: int) -> int:
    """The number of closed offsets from ``start`` to ``end``, whose indexes in ``bounds`` are given."""
    inside = [*([start] if low % 2 else []), *bounds[low:high], *([end] if high % 2 else [])]
    return sum(inside[1::2]) - sum(inside[::2])


def _ranges_of(offsets: Iterable[int]) -> Iterator[Range]:
    """Ascending offsets as ranges."""
    start = end = -1
    for offset in offsets:
        if offset != end:
            if end >= 0:
                yield start, end
            start = offset
        end = offset + 1
    yield start, end


def _in_a_row(offsets: Sequence[int]) -> bool:
    return isinstance(offsets, range) or offsets == list(range(offsets[0], offsets[-1] + 1))
