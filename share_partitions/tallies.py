"""What happened to records of a share partition: how many, and the last of them with their member."""

from __future__ import annotations

from typing import Final, NamedTuple

_NONE: Final = -1


class Happened(NamedTuple):
    """What a tally has: the number of records so far, and offsets, member and delivery count of the last."""

    records: int
    first: int
    last: int
    member: str
    delivery_count: int


class Tally:
    """Counts records, and keeps the last range of them."""

    __slots__ = ("_delivery_count", "_first", "_last", "_member", "_records")

    def __init__(self) -> None:
        self._records = 0
        self._first = self._last = self._delivery_count = _NONE
        self._member = ""

    def __repr__(self) -> str:
        return f"<Tally: {self.read()}>"

    @property
    def records(self) -> int:
        """The number of records so far."""
        return self._records

    def add(self, first: int, last: int, member: str, delivery_count: int) -> None:
        """Count records; those that continue the last range of the same member are one range with it."""
        self._records += last - first + 1
        if first != self._last + 1 or member != self._member or delivery_count != self._delivery_count:
            self._first, self._member, self._delivery_count = first, member, delivery_count
        self._last = last

    def read(self) -> Happened:
        """What there is so far."""
        return Happened(self._records, self._first, self._last, self._member, self._delivery_count)


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
