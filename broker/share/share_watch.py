"""What is told of share partitions: a look at each, some seconds apart, finds what happened since the last.

The counters are in ``share_partitions``; here they become events, and standing still is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ...coordinator import CoordinatorEvent
from ...coordinator.groups.events import MAX_TEXT, quote_text
from ...coordinator.groups.history import History, KeptEvent
from ...protocol.named_tuples import NamedTuple
from ...share_partitions import Happened, ShareLimits, SharePartition, ShareTallies, Tally
from .share_events import (
    ShareEvent,
    ShareLastDelivery,
    ShareLocksLost,
    SharePartitionResumed,
    SharePartitionStalled,
    ShareRecordsEvent,
    ShareRecordsExhausted,
    ShareRecordsRejected,
)

#: A share partition stalls if its start offset stands still for so many durations of a lock.
_STALLED_LOCKS: Final = 2
#: Most events of one kind that a look makes: more members than that are counted, and not named.
_MOST_TOLD: Final = 5


class _Tale(NamedTuple):
    """One tally and the event that tells of it. ``one``, ``many``: what happened to a record, to several."""

    tally_of: Callable[[ShareTallies], Tally]
    kind: type[ShareRecordsEvent]
    one: str
    many: str


_TALES: Final = (
    _Tale(
        lambda tallies: tallies.lost_locks,
        ShareLocksLost,
        "was held for longer than its lock",
        "were held for longer than their locks",
    ),
    _Tale(
        lambda tallies: tallies.last_deliveries,
        ShareLastDelivery,
        "was given out for the last time",
        "were given out for the last time",
    ),
    _Tale(
        lambda tallies: tallies.rejected,
        ShareRecordsRejected,
        "was rejected: nobody is given it again",
        "were rejected: nobody is given them again",
    ),
    _Tale(
        lambda tallies: tallies.exhausted,
        ShareRecordsExhausted,
        "came back from the last delivery: nobody is given it again",
        "came back from the last delivery: nobody is given them again",
    ),
)


class ShareWatch:
    """Looks at one share partition."""

    __slots__ = ("_at", "_group", "_is_stalled", "_number", "_since_ms", "_topic")

    def __init__(self, group: str, topic: str, number: int) -> None:
        self._group, self._topic, self._number = group, topic, number
        #: The start offset while something is in flight, and the time since which it is there.
        self._at: int | None = None
        self._since_ms = 0
        self._is_stalled = False

    def stalled_ms(self, now_ms: int) -> int | None:
        """Return for how long it has stood still; None if it does not stall."""
        return now_ms - self._since_ms if self._is_stalled else None

    def look(self, records: SharePartition, limits: ShareLimits, now_ms: int) -> Iterator[ShareEvent]:
        """Return what happened since the last look. Times are of any clock that does not jump."""
        yield from self._look_at_tallies(records.tallies)
        start = records.start_offset
        if self._at is not None and start != self._at and self._is_stalled:
            stalled_ms = now_ms - self._since_ms
            yield SharePartitionResumed(
                self._group,
                topic=self._topic,
                partition=self._number,
                cause=f"{self._name} goes on at offset {start} after {stalled_ms / 1_000:.0f} s",
                start_offset=start,
                stalled_ms=stalled_ms,
            )
        in_flight = records.end_offset > start
        if not in_flight or start != self._at:
            self._at, self._since_ms, self._is_stalled = (start if in_flight else None), now_ms, False
        elif not self._is_stalled and now_ms - self._since_ms >= _STALLED_LOCKS * limits.lock_ms:
            self._is_stalled = True
            yield self._tell_stalled(records, now_ms - self._since_ms)

    @property
    def _name(self) -> str:
        return f"{self._topic}-{self._number}"

    def _look_at_tallies(self, tallies: ShareTallies) -> Iterator[ShareRecordsEvent]:
        for tale in _TALES:
            new, ranges = tale.tally_of(tallies).take()
            told = _by_member(ranges)
            # what no event names counts with the first
            unnamed = new - sum(map(_size_of, (each for part in told for each in part)))
            for part in told:
                yield self._tell_records(tale, part, sum(map(_size_of, part)) + unnamed)
                unnamed = 0

    def _tell_records(self, tale: _Tale, ranges: list[Happened], count: int) -> ShareRecordsEvent:
        first, last, member, delivery_count = ranges[-1]
        which = f"offset {last}" if first == last else f"offsets {first} to {last}"
        who = f"{which}, delivery {delivery_count}, member {quote_text(member)}"
        one, many = f"1 record of {self._name} {tale.one}", f"{count} records of {self._name} {tale.many}"
        return tale.kind(
            self._group,
            topic=self._topic,
            partition=self._number,
            member=member,
            cause=f"{one}; {who}" if count == 1 else f"{many}; the last: {who}",
            records=count,
            first_offset=first,
            last_offset=last,
            offsets=_offsets_text(ranges),
            delivery_count=delivery_count,
        )

    def _tell_stalled(self, records: SharePartition, stalled_ms: int) -> SharePartitionStalled:
        found = records.summarize()
        member, deliveries = found.first
        count = records.end_offset - records.start_offset
        where = f"{self._name} stands still at offset {records.start_offset} for {stalled_ms / 1_000:.0f} s"
        who = f"member {quote_text(member)} has it, delivery {deliveries}" if member else "no member has it"
        return SharePartitionStalled(
            self._group,
            topic=self._topic,
            partition=self._number,
            member=member,
            cause=f"{where}: {who}; {count} in flight, {found.done} of them done",
            start_offset=records.start_offset,
            records=count,
            done=found.done,
            delivery_count=deliveries,
            stalled_ms=stalled_ms,
        )


def _size_of(one: Happened) -> int:
    return one.last - one.first + 1


def _by_member(ranges: Sequence[Happened]) -> list[list[Happened]]:
    """The ranges of each member and delivery count, in the order of their last ones; the newest parts."""
    parts: dict[tuple[str, int], list[Happened]] = {}
    for one in ranges:
        key = one.member, one.delivery_count
        parts[key] = [*parts.pop(key, ()), one]
    return list(parts.values())[-_MOST_TOLD:]


def _offsets_text(ranges: Sequence[Happened]) -> str:
    """``2 5-7``: the newest of the ranges that an event's text has room for."""
    names: list[str] = []
    left = MAX_TEXT
    for first, last, _, _ in reversed(ranges):
        name = str(first) if first == last else f"{first}-{last}"
        left -= len(name) + 1
        if left < 0:
            break
        names.append(name)
    return " ".join(reversed(names))


class ShareHistory:
    """The newest events of share partitions on this broker, ``size`` at most for each group; ``then`` is
    called with each. ``now_ms`` is the wall clock.
    """

    def __init__(
        self, size: int, now_ms: Callable[[], int], then: Callable[[CoordinatorEvent], None]
    ) -> None:
        self._kept = History(size)
        self._now_ms = now_ms
        self._then = then

    def __repr__(self) -> str:
        return f"<ShareHistory: {self._kept}>"

    def tell(self, event: ShareEvent) -> None:
        """Keep an event, and pass it on."""
        event.timestamp_ms = self._now_ms()
        self._kept.keep(event, lambda _group: True)
        self._then(event)

    def of(self, group: str) -> list[KeptEvent]:
        """Return the events of a group, oldest first."""
        return self._kept.of(group)
