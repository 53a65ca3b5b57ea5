"""What is delivered and done of one partition, as ranges of offsets. No I/O."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..client.offsets import CommittedOffset
from ..protocol import TopicPartition
from . import done_ahead
from .done_ahead import Range

#: Bounds of ranges that are passed are removed once they are so many, and half of the list.
_TRIM = 64


@dataclass(slots=True, eq=False)
class PartitionSession:
    """The time of a partition with this consumer, from its assignment (or a seek) to its release.

    No other session of any consumer has its ``session_id``; ``assignment`` is that of the first session since
    the partition was assigned, which those after a seek or a reset share. ``committed`` is what this session
    has committed itself, or what it started from when that was committed. ``leader_epoch`` is the highest one
    under which something of the log was read that this session knows of (-1: unknown), for KIP-320.

    ``first`` is the first offset that is not dealt with, ``position`` where delivery goes on. Between the two
    and beyond, *closed* ranges of offsets ask for nothing any more: they are done, in this session or an
    earlier one, or hold no records (compaction, control batches, aborted transactions). Everything else
    before ``position`` is delivered and not done. There is no more than one closed range for each record that
    is not done, so memory and the work of a commit grow with the gaps, not with the records behind them.
    """

    partition: TopicPartition
    session_id: int
    position: int
    committed: CommittedOffset | None = None
    leader_epoch: int = -1
    assignment: int = 0
    #: Everything before this offset is done.
    first: int = field(init=False)
    #: Offsets from ``first`` on and before this one may be done, in order, by setting ``first`` alone.
    limit: int = field(init=False)
    #: Offsets marked done in other threads, which append to it; they count from ``Tracker.done_marked`` on.
    marked: list[int] = field(default_factory=list)
    #: Where the closed ranges start and end in turn, from ``_head`` on, ascending: no two ranges touch.
    _bounds: list[int] = field(default_factory=list)
    _head: int = 0
    #: Starts of the closed ranges that only are without records: a commit does not speak of them.
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
        """Whether a record that was delivered has been marked done."""
        return self.undone < self._delivered

    @property
    def committable(self) -> int:
        """Everything before this offset is done."""
        return self.first

    @property
    def first_undone(self) -> int | None:
        return self.first if self.undone else None

    def to_commit(self) -> CommittedOffset:
        """What a commit says now."""
        return CommittedOffset(self.first, self.leader_epoch, done_ahead.encode(self.first, self._done()))

    def epoch_at(self, offset: int) -> int:
        """The leader epoch for a commit of this offset; -1 where the log was not read that far."""
        return self.leader_epoch if offset <= self.position else -1

    def read_under(self, leader_epoch: int) -> None:
        """Something of the log was read under this leader epoch.

        The highest one counts, for lower offsets as well: what an earlier session had done beyond the commit
        may have been read under it, and the log has been the same up to its end.
        """
        self.leader_epoch = max(self.leader_epoch, leader_epoch)

    def done_earlier(self, ranges: Iterable[Range]) -> None:
        """An earlier session has done these, which ascend and are not before ``position``."""
        for start, end in ranges:
            self._close(start, end)

    # delivery

    def delivered(self, offset: int) -> None:
        """A record goes to the user. Offsets rise, and are ``fresh``."""
        self._deliver(offset, offset + 1)

    def delivered_all(self, offsets: Sequence[int]) -> None:
        """Some records go to the user together; at least one."""
        first, end = offsets[0], offsets[-1] + 1
        if end - first == len(offsets):
            self._deliver(first, end)
        else:
            for start, stop in _runs(offsets):
                self._deliver(start, stop)

    def _deliver(self, start: int, end: int) -> None:
        if start > self.position:
            self.passed(start)
        self._delivered += end - start
        self.position = end
        bounds = self._bounds
        self.limit = bounds[self._head] - 1 if bounds and bounds[self._head] <= end else end

    def taken_back(self, offset: int) -> None:
        """What was delivered from this offset on did not get to the user; nothing of it is done."""
        undone = self.position - offset - self._closed_in(offset, self.position)
        left = self.undone - undone
        self._delivered -= undone
        self.position = offset
        self._settle(left)

    def passed(self, position: int) -> None:
        """There is nothing (more) to deliver before this offset."""
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
            self._settle(undone)

    def cut(self, offset: int) -> None:
        """The log is no longer the same from this offset on: what was done there, if not delivered in this
        session, was something else.
        """
        offset, bounds = max(offset, self.position), self._bounds
        at = bisect_left(bounds, offset, self._head)
        self._holes.difference_update(bounds[at:])
        bounds[at:] = [offset] if at % 2 else []
        self._trim()
        if self.committed is not None and self.committed.offset > offset:
            self.committed = None
        self._settle(self.undone)

    def closed_beyond(self, offset: int) -> list[Range]:
        """Ranges that end behind this offset and of which nothing is to be delivered."""
        at = bisect_right(self._bounds, offset, self._head) // 2 * 2
        return list(zip(self._bounds[at::2], self._bounds[at + 1 :: 2], strict=True))

    def fresh(self, offsets: Sequence[int]) -> Sequence[int]:
        """The places in these ascending offsets of those that no earlier session had done."""
        bounds = self._bounds
        if not bounds or not offsets or bounds[-1] <= offsets[0]:
            return range(len(offsets))
        return [at for at, offset in enumerate(offsets) if not bisect_right(bounds, offset) % 2]

    # done

    def done(self, offset: int) -> bool:
        """Whether this was news: offsets that are not delivered, hold no record or are done already are none.

        As ``done_range``, in fewer steps.
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
        """``done`` for each, in any order; at least one."""
        start, end = offsets[0], offsets[-1] + 1
        if end - start == len(offsets) and _in_a_row(offsets):
            self.done_range(start, end)
        else:
            for first, stop in _runs(sorted(offsets)):
                self.done_range(first, stop)

    def done_range(self, start: int, end: int) -> int:
        """What was delivered of these offsets is done. How many records of it were not done before."""
        start, end = max(start, self.first), min(end, self.position)
        if start >= end:
            return 0
        if start == self.first and end <= self.limit:
            self.first = end
            return end - start
        undone = self.undone
        news = end - start - self._close(start, end)
        self._settle(undone - news)
        return news

    def done_before(self, offset: int) -> None:
        """Everything delivered before this offset is done."""
        self.done_range(self.first, offset)

    # the closed ranges

    def _close(self, start: int, end: int, *, hole: bool = False) -> int:
        """Close a range, whatever in it was closed before: how many of its offsets were."""
        bounds, holes = self._bounds, self._holes
        # what lies between the two places is replaced; an odd one is within a range, or at its end
        low = bisect_left(bounds, start, self._head)
        high = bisect_right(bounds, end, low)
        before = _covered(bounds, low, high, start, end)
        starts = bounds[low // 2 * 2 : high : 2]
        hole = hole and holes.issuperset(starts)
        holes.difference_update(starts)
        bounds[low:high] = [*([] if low % 2 else [start]), *([] if high % 2 else [end])]
        if hole:
            holes.add(bounds[low // 2 * 2])
        return before

    def _closed_in(self, start: int, end: int) -> int:
        low = bisect_left(self._bounds, start, self._head)
        return _covered(self._bounds, low, bisect_right(self._bounds, end, low), start, end)

    def _settle(self, undone: int) -> None:
        """After a change that leaves so many records undone: ``first`` passes what is closed there."""
        if self._bounds and self._bounds[self._head] <= self.first:
            self._pass_closed()
        self._skipped = self.position - self.first - undone
        self._set_limit()

    def _pass_closed(self) -> None:
        """``first`` has come to the first closed range, and moves to its end."""
        bounds, head, position = self._bounds, self._head, self.position
        start, end = bounds[head], bounds[head + 1]
        if self._holes:
            if end > position and start in self._holes:
                self._holes.add(position)
            self._holes.discard(start)
        if end > position:
            # more of it was done before than is passed yet
            bounds[head] = end = position
        else:
            self._head = head = head + 2
            if head > _TRIM or head == len(bounds):
                self._trim()
        self._skipped -= end - self.first
        self.first = end
        self._set_limit()

    def _trim(self) -> None:
        """Remove what is passed, now and then; nothing is left when all is."""
        head, size = self._head, len(self._bounds)
        if head == size or 2 * head > size:
            del self._bounds[:head]
            self._head = 0

    def _set_limit(self) -> None:
        position, bounds = self.position, self._bounds
        self.limit = bounds[self._head] - 1 if bounds and bounds[self._head] <= position else position

    def _done(self) -> Iterator[Range]:
        """Closed ranges in which something is done."""
        bounds, holes = self._bounds, self._holes
        for at in range(self._head, len(bounds), 2):
            if bounds[at] not in holes:
                yield bounds[at], bounds[at + 1]


def _covered(bounds: list[int], low: int, high: int, start: int, end: int) -> int:
    """How many offsets from ``start`` to ``end`` are closed, these being their places among the bounds."""
    inside = [*([start] if low % 2 else []), *bounds[low:high], *([end] if high % 2 else [])]
    return sum(inside[1::2]) - sum(inside[::2])


def _runs(offsets: Iterable[int]) -> Iterator[Range]:
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
