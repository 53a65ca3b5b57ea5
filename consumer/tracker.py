"""What is delivered, what is done, and what may be committed of it. No I/O.

Per partition the committable offset is the first one that is delivered and not done; with nothing open it is
where delivery goes on, so that control batches and holes of compaction are passed. Records may be done in any
order; what is done beyond the first gap goes along in the commit's metadata (``done_ahead``).
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from ..protocol import TopicPartition
from . import done_ahead
from .done_ahead import Range
from .errors import StaleRecordError
from .offset_requests import CommittedOffset
from .record import Record

_offset_of = itemgetter(Record._fields.index("offset"))
_session_id_of = itemgetter(Record._fields.index("session_id"))
#: Bounds of ranges that are passed are removed once they are so many, and half of the list.
_TRIM = 64
#: Whoever has been given records so often without marking one done is not waited for, unless it is to commit.
NEVER_MARKED = 10


@dataclass(slots=True, eq=False)
class PartitionSession:
    """The time of a partition with this consumer, from its assignment (or a seek) to its release.

    ``session_id`` is one that no other session of any consumer has; ``assignment`` that of the first session
    since the partition was assigned, which those after a seek or a reset share. ``committed`` is what this session has
    committed itself, or what it started from when that was committed. ``leader_epoch`` is the highest one
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
    #: Offsets marked done in other threads, which append to it; they count once ``Tracker.done_marked`` is called.
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


class Tracker:
    """The sessions of all partitions that this consumer has now, or is giving up.

    ``with_metadata``: whether commits say what is done beyond the first gap. ``commits``: whether what is done
    is committed at intervals, so that whoever reads must mark records done.
    """

    def __init__(self, *, commits: bool = True) -> None:
        self.with_metadata = True
        #: How often records were given out.
        self.given_out = 0
        #: How many wait for records to be done, partitions whose window is full included.
        self.awaited = 0
        self._marking = commits
        self._by_partition: dict[TopicPartition, PartitionSession] = {}
        self._by_id: dict[int, PartitionSession] = {}

    def __repr__(self) -> str:
        return f"Tracker({len(self._by_partition)} partitions, {self.undone()} records undone)"

    def begin(
        self,
        partition: TopicPartition,
        position: int,
        *,
        committed: CommittedOffset | None = None,
        leader_epoch: int = -1,
    ) -> PartitionSession:
        """A new session; one that was there ends, and its records can no longer be marked done.

        With ``committed``, which must be at ``position``, what its metadata says is done is not done again.
        """
        before = self.end(partition)
        if committed is not None and committed.offset != position:
            committed = None
        # random, so that no record of another consumer in this process, or in one it was forked from, fits
        session = PartitionSession(partition, secrets.randbits(62) + 1, position, committed, leader_epoch)
        session.assignment = session.session_id if before is None else before.assignment
        if committed is not None:
            for start, end in done_ahead.decode(position, committed.metadata):
                session._close(start, end)
        self._by_partition[partition] = self._by_id[session.session_id] = session
        return session

    def end(self, partition: TopicPartition) -> PartitionSession | None:
        """The partition is given up."""
        session = self._by_partition.pop(partition, None)
        if session is not None:
            self._marking = self._marking or session.any_done
            del self._by_id[session.session_id]
        return session

    @property
    def sessions(self) -> Mapping[int, PartitionSession]:
        """The sessions that go on, by their ids; always up to date."""
        return self._by_id

    def get(self, partition: TopicPartition) -> PartitionSession | None:
        return self._by_partition.get(partition)

    def session_of(self, record: Record) -> PartitionSession:
        """The session in which the record was delivered; StaleRecordError if it is over, or not one of ours."""
        session = self._by_id.get(record.session_id)
        if session is None or session.partition != record[:2]:
            raise StaleRecordError(
                f"{record.topic}-{record.partition} offset {record.offset} was delivered in generation "
                f"{record.generation}, and its partition has been given up (or sought elsewhere) since, or "
                "another consumer delivered it: whoever has it now delivers the record again"
            )
        return session

    def done(self, record: Record) -> PartitionSession:
        """The record has been dealt with; its session. StaleRecordError if that is over."""
        session = self.session_of(record)
        session.done(record.offset)
        return session

    def done_all(self, records: Sequence[Record]) -> Record | None:
        """``done`` for each whose session goes on; the first one of the others."""
        stale: Record | None = None
        ids = set(map(_session_id_of, records))
        if len(ids) == 1:
            groups: Mapping[int, list[int]] = {ids.pop(): list(map(_offset_of, records))}
        else:
            groups = defaultdict(list)
            for record in records:
                groups[record.session_id].append(record.offset)
        for session_id, offsets in groups.items():
            if (session := self._by_id.get(session_id)) is not None:
                session.done_all(offsets)
            elif stale is None:
                stale = next(record for record in records if record.session_id == session_id)
        return stale

    def done_marked(self) -> None:
        """What other threads have marked done is done."""
        for session in self._by_id.values():
            if session.marked:
                # one step each, whatever is appended between the two
                offsets = session.marked[:]
                del session.marked[: len(offsets)]
                session.done_all(offsets)

    def done_batch(self, session_id: int, start: int, end: int) -> PartitionSession:
        """What was delivered as one is done as one. StaleRecordError if the session is over."""
        session = self._by_id.get(session_id)
        if session is None:
            raise StaleRecordError(
                f"the batch from offset {start} is of a partition that has been given up (or sought "
                "elsewhere) since, or of another consumer: whoever has it now delivers its records again"
            )
        session.done_range(start, end)
        return session

    def undone(self, partitions: Iterable[TopicPartition] | None = None) -> int:
        """Records delivered and not done, of these partitions or all."""
        return sum(session.undone for session in self._of(partitions))

    def undone_by_partition(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The partitions that have undone records, and how many."""
        return {session.partition: session.undone for session in self._of(partitions) if session.undone}

    def _is_marking(self) -> bool:
        """Whether records that are out can be expected to be marked done. Who keeps offsets elsewhere never
        does.
        """
        self._marking = self._marking or any(session.any_done for session in self._of(None))
        return self._marking or self.given_out < NEVER_MARKED

    def first_undone(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The partitions with undone records to wait for, and the first offset of them.

        There are none to wait for in a consumer that does not commit at intervals, and has been given records
        NEVER_MARKED times without marking one done.
        """
        if not self._is_marking():
            return {}
        return {s.partition: s.first_undone for s in self._of(partitions) if s.first_undone is not None}

    def committable(
        self, partitions: Iterable[TopicPartition] | None = None, *, again: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """What is worth committing, of these partitions or all: only what differs from the last commit.

        With ``again``, what was committed last where nothing does.
        """
        found = {}
        for session in self._of(partitions):
            offset = self.news(session) or (session.committed if again else None)
            if offset is not None:
                found[session.partition] = offset
        return found

    def news(self, session: PartitionSession) -> CommittedOffset | None:
        """What is worth committing of this session, which may be over; None if nothing differs."""
        offset = session.to_commit()
        if not self.with_metadata:
            offset = CommittedOffset(offset.offset, offset.leader_epoch)
        return offset if _is_news(offset, session.committed) else None

    def committed(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """These offsets are committed."""
        for partition, offset in offsets.items():
            if (session := self._by_partition.get(partition)) is not None:
                session.committed = offset

    def _of(self, partitions: Iterable[TopicPartition] | None) -> list[PartitionSession]:
        if partitions is None:
            return list(self._by_partition.values())
        return [s for partition in partitions if (s := self._by_partition.get(partition)) is not None]


def _is_news(offset: CommittedOffset, before: CommittedOffset | None) -> bool:
    """A commit never goes back, and metadata of the user's own stays for as long as its offset."""
    if before is None or offset.offset != before.offset:
        return before is None or offset.offset > before.offset
    return offset.metadata != before.metadata and done_ahead.is_ours(before.metadata)
