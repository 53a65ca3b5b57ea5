"""What is delivered, what is done, and what may be committed of it. No I/O.

Per partition the committable offset is the first one delivered and not done; with nothing open it is where
delivery goes on, so that control batches and holes of compaction are passed. Records may be done in any
order; what is done beyond the first gap goes along in the commit's metadata (``done_ahead``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from ..protocol import TopicPartition
from . import done_ahead
from .done_ahead import Range
from .errors import StaleRecordError
from .offset_requests import CommittedOffset
from .record import Record


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
    _open: deque[int] = field(default_factory=deque)
    _done_early: set[int] = field(default_factory=set)
    #: Runs of records delivered as one, by their first offset: where they end, and how many they are.
    _blocks: dict[int, tuple[int, int]] = field(default_factory=dict)
    _in_blocks: int = 0

    @property
    def undone(self) -> int:
        """Records delivered and not done."""
        return len(self._open) - len(self._done_early) + self._in_blocks

    @property
    def committable(self) -> int:
        """Everything before this offset is done."""
        return self._open[0] if self._open else self.position

    @property
    def first_undone(self) -> int | None:
        return self._open[0] if self._open else None

    def to_commit(self) -> CommittedOffset:
        """What a commit says now."""
        offset = self.committable
        metadata = done_ahead.encode(offset, self._done_beyond(offset))
        return CommittedOffset(offset, self.leader_epoch, metadata)

    def delivered(self, offset: int) -> None:
        """A record goes to the user. Offsets rise."""
        self._open.append(offset)
        self.position = offset + 1

    def delivered_all(self, offsets: list[int]) -> None:
        """Some records go to the user together; at least one."""
        self._open.extend(offsets)
        self.position = offsets[-1] + 1

    def delivered_block(self, first: int, end: int, records: int) -> None:
        """Some records go to the user as one thing, which is done by ``done(first)``; at least one."""
        self._open.append(first)
        self._blocks[first] = end, records
        self._in_blocks += records - 1
        self.position = end

    def passed(self, position: int) -> None:
        """There is nothing (more) to deliver before this offset."""
        self.position = max(self.position, position)

    def done(self, offset: int) -> bool:
        """Whether this was news. Offsets that were never delivered, or are done already, are none."""
        open_ = self._open
        if open_ and open_[0] == offset and not self._done_early and not self._blocks:
            open_.popleft()
            return True
        if not open_ or offset < open_[0] or offset >= self.position or offset in self._done_early:
            return False
        if self._blocks:
            self._block_done(offset)
        if offset != open_[0]:
            self._done_early.add(offset)
            return True
        self._close_first()
        self._close_what_is_done()
        return True

    def done_all(self, offsets: list[int]) -> None:
        """``done`` for each."""
        open_ = self._open
        if self._done_early or self._blocks or list(islice(open_, len(offsets))) != offsets:
            for offset in offsets:
                self.done(offset)
        elif len(offsets) == len(open_):
            open_.clear()
        else:
            for _ in offsets:
                open_.popleft()

    def done_before(self, offset: int) -> None:
        """Everything delivered before this offset is done."""
        while self._open and self._end_of(self._open[0]) <= offset:
            self._block_done(self._open[0])
            self._done_early.discard(self._close_first())
        self._close_what_is_done()

    def fresh(self, records: list[Record]) -> list[Record]:
        """Those of these records (ascending offsets) that no earlier stay had done."""
        ranges = self.done_before_us
        if not ranges or not records or records[-1].offset < ranges[0][0]:
            return records
        starts = [start for start, _ in ranges]
        # of the range that starts last before a record: whether it has ended there
        ends = [-1, *(end for _, end in ranges)]
        return [r for r in records if r.offset >= ends[bisect_right(starts, r.offset)]]

    def _close_first(self) -> int:
        offset = self._open.popleft()
        if self._blocks:
            self._blocks.pop(offset, None)
        return offset

    def _close_what_is_done(self) -> None:
        early, open_ = self._done_early, self._open
        while early and open_ and open_[0] in early:
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
        for offset in self._open:
            if offset in self._done_early:
                start = offset if start < 0 else start
                end = self._end_of(offset)
            elif start >= 0:
                runs.append((start, end))
                start = -1
        if start >= 0:
            runs.append((start, end))
        return runs + self.done_before_us


class Tracker:
    """The stays of all partitions that this consumer has now, or is giving up.

    ``with_metadata``: whether commits say what is done beyond the first gap.
    """

    def __init__(self) -> None:
        self.with_metadata = True
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

    def get(self, partition: TopicPartition) -> Stay | None:
        return self._stays.get(partition)

    def has(self, record: Record) -> bool:
        """Whether the record's partition is still here, in the same stay."""
        return record.epoch in self._by_epoch

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

    def has_epoch(self, epoch: int) -> bool:
        """Whether the stay with this number goes on."""
        return epoch in self._by_epoch

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
        stay = self._by_epoch.get(record.epoch) or self.stay_of(record)
        stay.done(record.offset)
        return stay

    def done_run(self, records: list[Record]) -> Stay:
        """``done`` for records of one stay, in the order of their delivery: mostly the first ones undone."""
        stay = self._by_epoch.get(records[0].epoch) or self.stay_of(records[0])
        stay.done_all([record.offset for record in records])
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
