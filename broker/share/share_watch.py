"""What is told of share partitions: a look at each, some seconds apart, finds what happened since the last.

The counters are in ``share_partitions``; here they become events, and standing still is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ...coordinator import CoordinatorEvent
from ...coordinator.groups.events import quote_text
from ...coordinator.groups.history import History, KeptEvent
from ...share_partitions import ShareLimits, SharePartition, ShareTallies, Tally
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

    __slots__ = ("_at", "_group", "_is_stalled", "_number", "_since_ms", "_told", "_topic")

    def __init__(self, group: str, topic: str, number: int) -> None:
        self._group, self._topic, self._number = group, topic, number
        #: By tale, the number of records that were told of.
        self._told = [0] * len(_TALES)
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
        for at, tale in enumerate(_TALES):
            count, first, last, member, delivery_count = tale.tally_of(tallies).read()
            new, self._told[at] = count - self._told[at], count
            if new:
                which = f"offset {last}" if first == last else f"offsets {first} to {last}"
                who = f"{which}, delivery {delivery_count}, member {quote_text(member)}"
                one, many = (
                    f"1 record of {self._name} {tale.one}",
                    f"{new} records of {self._name} {tale.many}",
                )
                yield tale.kind(
                    self._group,
                    topic=self._topic,
                    partition=self._number,
                    member=member,
                    cause=f"{one}; {who}" if new == 1 else f"{many}; the last: {who}",
                    records=new,
                    first_offset=first,
                    last_offset=last,
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
