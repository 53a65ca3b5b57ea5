"""The lag of groups and their partitions, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from ..protocol.named_tuples import NamedTuple

Number = TypeVar("Number", int, float)


class PartitionLag(NamedTuple):
    """How far a group is in a partition. None stands for what is not known; ``note`` says why.

    ``committed_offset`` is the start offset of a share group. ``records`` are unread, and the first of them
    was written ``age_ms`` ago: 0 if none is unread. ``deleted`` more were deleted before they were read.
    ``members`` have the partition now. The rest is known from several looks: records per second that
    arrived and were read, and for how long the offset has stood still while records were unread.
    """

    topic: str
    partition: int
    committed_offset: int | None
    end_offset: int | None
    records: int | None
    age_ms: int | None
    deleted: int = 0
    members: tuple[str, ...] = ()
    note: str = ""
    arrival_rate: float | None = None
    work_rate: float | None = None
    standing_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How far a group is. ``member_count`` and the partitions' members are None and () where they are not
    known; with an ``error`` nothing else is. ``catch_up_ms``: when it will have read everything at these
    rates, None if never, or if there are none.
    """

    group: str
    group_type: str | None
    state: str | None
    timestamp_ms: int
    partitions: tuple[PartitionLag, ...] = ()
    member_count: int | None = None
    error: str | None = None
    catch_up_ms: int | None = None

    @property
    def records(self) -> int | None:
        """Records that are unread in all partitions of which that is known; None if it is of none."""
        return sum_known(row.records for row in self.partitions)

    @property
    def age_ms(self) -> int | None:
        """For how long the oldest of them has waited; None if that is not known of any partition."""
        return max((row.age_ms for row in self.partitions if row.age_ms is not None), default=None)

    @property
    def arrival_rate(self) -> float | None:
        """Records per second that arrived."""
        return sum_known(row.arrival_rate for row in self.partitions)

    @property
    def work_rate(self) -> float | None:
        """Records per second that were read."""
        return sum_known(row.work_rate for row in self.partitions)

    @property
    def standing_ms(self) -> int | None:
        """The longest time for which a partition has stood still while records were unread."""
        return max((row.standing_ms for row in self.partitions if row.standing_ms is not None), default=None)

    def standing(self, after_ms: int) -> list[PartitionLag]:
        """Partitions that have stood still for as long, the longest first."""
        found = [row for row in self.partitions if (row.standing_ms or 0) >= max(after_ms, 1)]
        return sorted(found, key=lambda row: -(row.standing_ms or 0))


def sum_known(numbers: Iterable[Number | None]) -> Number | None:
    """The sum of the numbers that are known; None if none is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
