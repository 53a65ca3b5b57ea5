"""What several looks tell: rates, when a group will have caught up, and what stands still."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ..protocol.named_tuples import NamedTuple
from .groups import GroupLag, PartitionLag

#: Rates cover the last one to two windows of this length.
WINDOW_MS: Final = 30_000
#: A group that would read all that is unread within this time keeps up, however much arrives meanwhile.
KEEPS_UP_MS: Final = 10_000


class _Look(NamedTuple):
    at_ms: int
    position: int
    end: int


class Meter:
    """What is remembered of one partition of a group: three looks, and since when it stands still."""

    __slots__ = ("_before", "_last", "_standing_since_ms", "_then")

    def __init__(self) -> None:
        self._before: _Look | None = None
        self._then: _Look | None = None
        self._last: _Look | None = None
        self._standing_since_ms: int | None = None

    def take(self, at_ms: int, row: PartitionLag) -> PartitionLag:
        """Take in a look, and return it with what is known with the earlier ones. A row that says already for
        how long it stands still is believed at the first look.
        """
        if row.committed_offset is None or row.end_offset is None or row.records is None:
            self._before = self._then = self._last = self._standing_since_ms = None
            return row
        look, last = _Look(at_ms, row.committed_offset, row.end_offset), self._last
        if last is not None and (look.position < last.position or look.end < last.end):
            # the group was reset, or the topic made again: what was before tells nothing
            self._before = self._then = last = self._standing_since_ms = None
        self._note_standing(look, last, row)
        self._last = look
        if self._then is None:
            self._then = look
        elif look.at_ms - self._then.at_ms >= WINDOW_MS:
            self._before, self._then = self._then, look
        base = self._before or self._then
        since_ms = self._standing_since_ms
        standing_ms = None if since_ms is None else max(look.at_ms - since_ms, 0)
        if look.at_ms <= base.at_ms:
            return row._replace(standing_ms=standing_ms)
        per_s = 1_000 / (look.at_ms - base.at_ms)
        return row._replace(
            arrival_rate=(look.end - base.end) * per_s,
            work_rate=(look.position - base.position) * per_s,
            standing_ms=standing_ms,
        )

    def _note_standing(self, look: _Look, last: _Look | None, row: PartitionLag) -> None:
        if not row.records:
            self._standing_since_ms = None
        elif self._standing_since_ms is None:
            first = last is None or last.position == look.position
            self._standing_since_ms = look.at_ms - (row.standing_ms or 0 if first else 0)
        elif last is not None and last.position != look.position:
            self._standing_since_ms = look.at_ms


class LagTracker:
    """Remembers looks at groups, each partition in bounded memory.

    A look is a call of ``take`` for each partition, then one of ``end_look``; ``track`` does both. ``worked``
    are the groups that had members, or moved, in a look of ``track``.
    """

    def __init__(self) -> None:
        self.worked: set[str] = set()
        self._meters: dict[str, dict[tuple[str, int], Meter]] = {}
        # of the look that is under way
        self._seen: dict[str, dict[tuple[str, int], Meter]] = {}

    def __repr__(self) -> str:
        return f"LagTracker({len(self._meters)} groups)"

    def track(self, groups: Iterable[GroupLag]) -> list[GroupLag]:
        """Take in a look at all groups, and return it with rates and what stands still. Groups that are not
        in it are forgotten.
        """
        tracked: list[GroupLag] = []
        for group in groups:
            if group.error is not None:
                # it could not be asked now: what was known stays
                self._seen[group.group] = self._meters.get(group.group, {})
                tracked.append(group)
                continue
            rows = tuple(self.take(group.group, group.timestamp_ms, row) for row in group.partitions)
            tracked.append(replace(group, partitions=rows, catch_up_ms=catch_up_ms(rows)))
        self.end_look()
        self.worked = {
            each.group
            for each in tracked
            if each.member_count or (each.work_rate or 0) > 0 or each.group in self.worked
        }
        return tracked

    def take(self, group: str, at_ms: int, row: PartitionLag) -> PartitionLag:
        """Take in a look at one partition of a group, and return it with what is known with earlier ones."""
        place = row.topic, row.partition
        known = self._meters.get(group)
        meter = None if known is None else known.get(place)
        if meter is None:
            meter = Meter()
        self._seen.setdefault(group, {})[place] = meter
        return meter.take(at_ms, row)

    def end_look(self) -> None:
        """Forget what the look did not have."""
        self._meters, self._seen = self._seen, {}


def catch_up_ms(rows: Iterable[PartitionLag]) -> int | None:
    """When a group will have caught up in all its partitions; None if never, or if that is not known."""
    times = [
        time_to_catch_up_ms(row.records, row.arrival_rate, row.work_rate)
        for row in rows
        if row.records is not None
    ]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def time_to_catch_up_ms(records: int, arrival_rate: float | None, work_rate: float | None) -> int | None:
    """When so many records will have been read at these rates; None if never, or if the rates are unknown."""
    if not records:
        return 0
    if arrival_rate is None or work_rate is None or work_rate <= 0:
        return None
    work_ms = records / work_rate * 1_000
    if work_ms <= KEEPS_UP_MS:
        return round(work_ms)
    gain = work_rate - arrival_rate
    return round(records / gain * 1_000) if gain > 0 else None
