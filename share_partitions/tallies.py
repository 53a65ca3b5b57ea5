"""What happened to records of a share partition: how many, and the newest of them with their members."""

from __future__ import annotations

from typing import Final

from ..protocol.named_tuples import NamedTuple

#: Most ranges that a tally keeps until somebody takes them.
MOST_RANGES: Final = 100


class Happened(NamedTuple):
    """Offsets from ``first`` to ``last``, both included, that a member had for the ``delivery_count``-th
    time.
    """

    first: int
    last: int
    member: str
    delivery_count: int


class Tally:
    """Counts records, and keeps the newest ranges of them until they are taken."""

    __slots__ = ("_ranges", "_taken", "records")

    def __init__(self) -> None:
        #: The number of records so far.
        self.records = 0
        self._taken = 0
        self._ranges: list[Happened] = []

    def __repr__(self) -> str:
        return f"<Tally: {self.records}, {self._ranges[-1:]}>"

    def add(self, first: int, last: int, member: str, delivery_count: int) -> None:
        """Count records; those that continue the last range of the same member are one range with it."""
        self.records += last - first + 1
        ranges = self._ranges
        if ranges and ranges[-1][1:] == (first - 1, member, delivery_count):
            ranges[-1] = ranges[-1]._replace(last=last)
            return
        ranges.append(Happened(first, last, member, delivery_count))
        if len(ranges) > MOST_RANGES:
            del ranges[0]

    def take(self) -> tuple[int, list[Happened]]:
        """Return how many records there were since this was called last, and the newest ranges of them."""
        count, self._taken = self.records - self._taken, self.records
        ranges, self._ranges = self._ranges, []
        return count, ranges


class ShareTallies:
    """The tallies of one share partition, since this leader has it in memory.

    ``rejected``: a member said that it cannot work on them. ``exhausted``: given back on their last delivery.
    Both are Archived, counted when that is stored. ``lost_locks``: a member had them for too long.
    ``last_deliveries``: given out for the last time.
    """

    __slots__ = ("exhausted", "last_deliveries", "lost_locks", "rejected")

    def __init__(self) -> None:
        self.rejected = Tally()
        self.exhausted = Tally()
        self.lost_locks = Tally()
        self.last_deliveries = Tally()


class ShareSummary(NamedTuple):
    """Records in flight now: those that members have, by member; those that wait to be given again; those
    that are done, which lie above one that is not; and those that are not done by the number of times that
    they were given out. ``first`` says who has the record at the start offset, and its delivery count.
    """

    held: dict[str, int]
    available: int
    done: int
    deliveries: dict[int, int]
    first: tuple[str, int]
