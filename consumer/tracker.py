"""What is delivered, what is done, and what may be committed of it. No I/O.

Per partition the committable offset is the first one delivered and not done; with nothing open it is where
delivery goes on, so that control batches and holes of compaction are passed. Records may be done in any
order; what is done beyond the first gap goes along in the commit's metadata (``done_ahead``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter

from ..protocol import TopicPartition
from . import done_ahead
from .done_ahead import Range
from .errors import StaleRecordError
from .offset_requests import CommittedOffset
from .record import Record

_offset_of = itemgetter(Record._fields.index("offset"))


@dataclass(slots=True, eq=False)
class Stay:
    """One stay of a partition with this consumer, from assignment (or seek) to release. ``epoch`` numbers it.

    ``committed`` is what this stay has committed itself, or what it started from when that was committed.
    ``done_before_us`` are ranges an earlier stay had done beyond its commit: they are not delivered again.
    ``leader_epoch`` is the one of the last record batch delivered (-1: unknown), for KIP-320.
    """

    partition: TopicPartition
    epoch: int
    position: int
    committed: CommittedOffset | None
    done_before_us: list[Range] = field(default_factory=list)
    leader_epoch: int = -1
    #: What is delivered and not at the head done: offsets ``first`` to, not including, ``end``, and further
    #: such runs where compaction or transactions left holes. Nothing is, when the two are equal.
    first: int = -1
    end: int = -1
    #: No more than that one run is delivered, and nothing of it done but from its head on.
    in_line: bool = True
    _later: deque[list[int]] = field(default_factory=deque)
    _in_later: int = 0
    _done_early: set[int] = field(default_factory=set)
    #: Runs of records delivered as one, by their first offset: where they end, and how many they are.
    _blocks: dict[int, tuple[int, int]] = field(default_factory=dict)
    _in_blocks: int = 0

    @property
    def undone(self) -> int:
        """Records delivered and not done."""
        return self.end - self.first + self._in_later - len(self._done_early) + self._in_blocks

    @property
    def committable(self) -> int:
        """Everything before this offset is done."""
        return self.first if self.first < self.end else self.position

    @property
    def first_undone(self) -> int | None:
        return self.first if self.first < self.end else None

    def to_commit(self) -> CommittedOffset:
        """What a commit says now."""
        offset = self.committable
        metadata = done_ahead.encode(offset, self._done_beyond(offset))
        return CommittedOffset(offset, self.leader_epoch, metadata)

    def delivered(self, offset: int) -> None:
        """A record goes to the user. Offsets rise."""
        self._deliver(offset, offset + 1)

    def delivered_all(self, offsets: Sequence[int]) -> None:
        """Some records go to the user together; at least one."""
        first, end = offsets[0], offsets[-1] + 1
        if end - first == len(offsets):
            self._deliver(first, end)
        else:
            for offset in offsets:
                self.delivered(offset)

    def delivered_block(self, first: int, end: int, records: int) -> None:
        """Some records go to the user as one thing, which is done by ``done(first)``; at least one."""
        self._deliver(first, first + 1)
        self._blocks[first] = end, records
        self.in_line = False
        self._in_blocks += records - 1
        self.position = end

    def _deliver(self, first: int, end: int) -> None:
        self.position = end
        if self.first == self.end:
            self.first, self.end = first, end
            return
        if not self._later:
            if first == self.end:
                self.end = end
                return
            self._later.append([first, end])
            self.in_line = False
        elif first == self._later[-1][1]:
            self._later[-1][1] = end
        else:
            self._later.append([first, end])
        self._in_later += end - first

    def taken_back(self, offset: int) -> None:
        """What was delivered from this offset on did not get to the user; nothing of it is done."""
        self.position = offset
        while self._later and self._later[-1][0] >= offset:
            first, end = self._later.pop()
            self._in_later -= end - first
        if self._later:
            self._in_later -= max(0, self._later[-1][1] - offset)
            self._later[-1][1] = min(self._later[-1][1], offset)
        else:
            self.end = max(self.first, min(self.end, offset))

    def passed(self, position: int) -> None:
        """There is nothing (more) to deliver before this offset."""
        self.position = max(self.position, position)

    def done(self, offset: int) -> bool:
        """Whether this was news. Offsets that were never delivered, or are done already, are none."""
        if self.first == self.end or not self.first <= offset < self.position or offset in self._done_early:
            return False
        self._block_done(offset)
        if offset == self.first:
            self._close_first()
            self._close_what_is_done()
            self.in_line = not (self._later or self._done_early or self._blocks)
        else:
            self._done_early.add(offset)
            self.in_line = False
        return True

    def done_all(self, offsets: Sequence[int]) -> None:
        """``done`` for each, in the order of delivery."""
        first, end = offsets[0], offsets[-1] + 1
        if self.in_line and first == self.first and end <= self.end and _in_a_row(offsets):
            self.first = end
        else:
            for offset in offsets:
                self.done(offset)

    def done_before(self, offset: int) -> None:
        """Everything delivered before this offset is done."""
        while self.first < self.end and self._end_of(self.first) <= offset:
            self._block_done(self.first)
            self._done_early.discard(self._close_first())
        self._close_what_is_done()

    def fresh(self, offsets: Sequence[int]) -> Sequence[int]:
        """The places in these ascending offsets of those that no earlier stay had done."""
        ranges = self.done_before_us
        if not ranges or not offsets or offsets[-1] < ranges[0][0]:
            return range(len(offsets))
        starts = [start for start, _ in ranges]
        # of the range that starts last before a record: whether it has ended there
        ends = [-1, *(end for _, end in ranges)]
        return [at for at, offset in enumerate(offsets) if offset >= ends[bisect_right(starts, offset)]]

    def _close_first(self) -> int:
        offset = self.first
        self._blocks.pop(offset, None)
        self.first = offset + 1
        if self.first == self.end and self._later:
            self.first, self.end = self._later.popleft()
            self._in_later -= self.end - self.first
        return offset

    def _close_what_is_done(self) -> None:
        early = self._done_early
        while early and self.first < self.end and self.first in early:
            early.remove(self._close_first())

    def _end_of(self, offset: int) -> int:
        return self._blocks[offset][0] if offset in self._blocks else offset + 1

    def _block_done(self, offset: int) -> None:
        if offset in self._blocks and offset not in self._done_early:
            self._in_blocks -= self._blocks[offset][1] - 1

    def _done_beyond(self, committable: int) -> list[Range]:
        self.done_before_us = [r for r in self.done_before_us if r[1] > committable]
        if not self._done_early:
            return self.done_before_us
        runs: list[Range] = []
        start = end = -1
        for offset in chain(range(self.first, self.end), *(range(*run) for run in self._later)):
            if offset in self._done_early:
                start = offset if start < 0 else start
                end = self._end_of(offset)
            elif start >= 0:
                runs.append((start, end))
                start = -1
        if start >= 0:
            runs.append((start, end))
        return runs + self.done_before_us


def _in_a_row(offsets: Sequence[int]) -> bool:
    row = range(offsets[0], offsets[-1] + 1)
    return offsets == (row if isinstance(offsets, range) else list(row))


class Tracker:
    """The stays of all partitions that this consumer has now, or is giving up.

    ``with_metadata``: whether commits say what is done beyond the first gap.
    """

    def __init__(self) -> None:
        self.with_metadata = True
        #: How many wait for records to be done, partitions whose window is full included.
        self.awaited = 0
        self._stays: dict[TopicPartition, Stay] = {}
        self._by_epoch: dict[int, Stay] = {}
        self._epochs = 0

    def __repr__(self) -> str:
        return f"Tracker({len(self._stays)} partitions, {self.undone()} records undone)"

    def begin(
        self,
        partition: TopicPartition,
        position: int,
        *,
        committed: CommittedOffset | None = None,
        leader_epoch: int = -1,
    ) -> Stay:
        """A new stay; one that was there ends, and its records can no longer be marked done.

        With ``committed``, which must be at ``position``, what its metadata says is done is not done again.
        """
        self.end(partition)
        self._epochs += 1
        done = done_ahead.decode(position, committed.metadata) if committed is not None else []
        stay = Stay(partition, self._epochs, position, committed, done, leader_epoch)
        self._stays[partition] = self._by_epoch[stay.epoch] = stay
        return stay

    def end(self, partition: TopicPartition) -> Stay | None:
        """The partition is given up."""
        stay = self._stays.pop(partition, None)
        if stay is not None:
            del self._by_epoch[stay.epoch]
        return stay

    @property
    def epochs(self) -> Mapping[int, Stay]:
        """The stays that go on, by their numbers; always up to date."""
        return self._by_epoch

    def get(self, partition: TopicPartition) -> Stay | None:
        return self._stays.get(partition)

    def stay_of(self, record: Record) -> Stay:
        """The stay in which the record was delivered; StaleRecordError if it is over."""
        stay = self._by_epoch.get(record.epoch)
        if stay is None:
            raise StaleRecordError(
                f"{record.topic}-{record.partition} offset {record.offset} was delivered in generation "
                f"{record.generation}, and its partition has been given up (or sought elsewhere) since: "
                "whoever has it now delivers the record again"
            )
        return stay

    def done_at(self, epoch: int, offset: int) -> Stay:
        """As ``done``, for what was delivered as a block that begins at ``offset``."""
        stay = self._by_epoch.get(epoch)
        if stay is None:
            raise StaleRecordError(
                f"the batch from offset {offset} is of a partition that has been given up (or sought "
                "elsewhere) since: whoever has it now delivers its records again"
            )
        stay.done(offset)
        return stay

    def done(self, record: Record) -> Stay:
        """The record has been dealt with; its stay. StaleRecordError if that is over."""
        stay = self.stay_of(record)
        stay.done(record.offset)
        return stay

    def done_run(self, records: list[Record]) -> Stay:
        """``done`` for records of one stay, in the order of their delivery: mostly the first ones undone."""
        stay = self._by_epoch.get(records[0].epoch) or self.stay_of(records[0])
        stay.done_all(list(map(_offset_of, records)))
        return stay

    def undone(self, partitions: Iterable[TopicPartition] | None = None) -> int:
        """Records delivered and not done, of these partitions or all."""
        return sum(stay.undone for stay in self._of(partitions))

    def undone_by_partition(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The partitions that have undone records, and how many."""
        return {stay.partition: stay.undone for stay in self._of(partitions) if stay.undone}

    def first_undone(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The partitions that have undone records, and the first offset of them."""
        return {s.partition: s.first_undone for s in self._of(partitions) if s.first_undone is not None}

    def committable(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """What is worth committing, of these partitions or all: only what differs from the last commit."""
        found = {}
        for stay in self._of(partitions):
            offset = stay.to_commit()
            if not self.with_metadata:
                offset = CommittedOffset(offset.offset, offset.leader_epoch)
            before = stay.committed
            if before is None or (offset.offset, offset.metadata) != (before.offset, before.metadata):
                found[stay.partition] = offset
        return found

    def committed(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """These offsets are committed."""
        for partition, offset in offsets.items():
            if (stay := self._stays.get(partition)) is not None:
                stay.committed = offset

    def _of(self, partitions: Iterable[TopicPartition] | None) -> list[Stay]:
        if partitions is None:
            return list(self._stays.values())
        return [stay for partition in partitions if (stay := self._stays.get(partition)) is not None]
