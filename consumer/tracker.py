"""What is delivered, what is done, and what may be committed of it. No I/O.

Per partition the committable offset is the first one delivered and not done; with nothing open it is where
delivery goes on, so that control batches and holes of compaction are passed. Records may be done in any
order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..protocol import TopicPartition
from .errors import StaleRecordError
from .record import Record


@dataclass(slots=True, eq=False)
class Stay:
    """One stay of a partition with this consumer, from assignment (or seek) to release. ``epoch`` numbers it.

    ``committed`` is what this stay has committed itself, or what it started from when that was committed.
    """

    partition: TopicPartition
    epoch: int
    position: int
    committed: int | None
    _open: deque[int] = field(default_factory=deque)
    _done_early: set[int] = field(default_factory=set)

    @property
    def undone(self) -> int:
        """Records delivered and not done."""
        return len(self._open) - len(self._done_early)

    @property
    def committable(self) -> int:
        """Everything before this offset is done."""
        return self._open[0] if self._open else self.position

    @property
    def first_undone(self) -> int | None:
        return self._open[0] if self._open else None

    @property
    def dirty(self) -> bool:
        """Whether a commit would change anything."""
        return self.committable != self.committed

    def delivered(self, offset: int) -> None:
        """A record goes to the user. Offsets rise."""
        self._open.append(offset)
        self.position = offset + 1

    def delivered_all(self, offsets: list[int]) -> None:
        """Some records go to the user together; at least one."""
        self._open.extend(offsets)
        self.position = offsets[-1] + 1

    def passed(self, position: int) -> None:
        """There is nothing (more) to deliver before this offset."""
        self.position = max(self.position, position)

    def done(self, offset: int) -> bool:
        """Whether this was news. Offsets that were never delivered, or are done already, are none."""
        open_ = self._open
        if not open_ or offset < open_[0] or offset >= self.position or offset in self._done_early:
            return False
        if offset != open_[0]:
            self._done_early.add(offset)
            return True
        open_.popleft()
        early = self._done_early
        while early and open_ and open_[0] in early:
            early.remove(open_.popleft())
        return True

    def done_before(self, offset: int) -> None:
        """Everything delivered before this offset is done."""
        while self._open and self._open[0] < offset:
            self._done_early.discard(self._open.popleft())
        while self._open and self._open[0] in self._done_early:
            self._done_early.remove(self._open.popleft())


class Tracker:
    """The stays of all partitions that this consumer has now, or is giving up."""

    def __init__(self) -> None:
        self._stays: dict[TopicPartition, Stay] = {}
        self._by_epoch: dict[int, Stay] = {}
        self._epochs = 0

    def __repr__(self) -> str:
        return f"Tracker({len(self._stays)} partitions, {self.undone()} records undone)"

    def begin(self, partition: TopicPartition, position: int, *, committed: int | None = None) -> Stay:
        """A new stay; one that was there ends, and its records can no longer be marked done."""
        self.end(partition)
        self._epochs += 1
        stay = self._stays[partition] = Stay(partition, self._epochs, position, committed)
        self._by_epoch[stay.epoch] = stay
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

    def done(self, record: Record) -> Stay:
        """The record has been dealt with; its stay. StaleRecordError if that is over."""
        stay = self.stay_of(record)
        stay.done(record.offset)
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

    def committable(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """What is worth committing, of these partitions or all: only what differs from the last commit."""
        return {stay.partition: stay.committable for stay in self._of(partitions) if stay.dirty}

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """These offsets are committed."""
        for partition, offset in offsets.items():
            if (stay := self._stays.get(partition)) is not None:
                stay.committed = offset

    def _of(self, partitions: Iterable[TopicPartition] | None) -> list[Stay]:
        if partitions is None:
            return list(self._stays.values())
        return [stay for partition in partitions if (stay := self._stays.get(partition)) is not None]
