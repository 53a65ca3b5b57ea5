"""What is counted of share partitions, by the names of Apache Kafka's metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...protocol import AcknowledgeType
from ...share_partitions import AcknowledgedRange
from ._sensors import Histogram
from ._snapshot import SharePartitionFigures, TallyFigures

#: Apache Kafka's words for the types of acknowledgements.
_WORDS = {int(kind): kind.name.capitalize() for kind in AcknowledgeType}

#: Most groups that are counted by name; the rest share one, which no group that joins can have.
MAX_GROUPS: Final = 1_000
OTHER_GROUPS: Final = ""


@dataclass(slots=True, eq=False)
class ValueCounter:
    """How many values there were, and their sum."""

    count: int = 0
    total: float = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.count += 1
        self.total += value

    def figures(self) -> TallyFigures:
        """Return both as they are now."""
        return TallyFigures(self.count, self.total)


class SharePartitionCounters:
    """Counters of one share partition. ``lock_timeouts``: records that members had for too long;
    ``batch_sizes``: records in each range that a member was given.

    A share partition gives to one member at a time. The time in which it does is Apache Kafka's fetch lock:
    ``lock_times_ms``, and as percent of the time since the last one ended, ``lock_percents``.
    """

    __slots__ = ("_free_since_s", "batch_sizes", "lock_percents", "lock_timeouts", "lock_times_ms")

    def __init__(self, now_s: float) -> None:
        self.lock_timeouts = 0
        self.batch_sizes = ValueCounter()
        self.lock_times_ms = ValueCounter()
        self.lock_percents = ValueCounter()
        self._free_since_s = now_s

    def count_lock(self, begun_s: float, now_s: float) -> None:
        """Count that a member was given something, or nothing, in this time, in seconds."""
        held_s, whole_s = now_s - begun_s, now_s - self._free_since_s
        self.lock_times_ms.add(held_s * 1_000)
        self.lock_percents.add(100 * held_s / whole_s if whole_s > 0 else 100)
        self._free_since_s = now_s

    def figures(
        self, group: str, topic: str, partition: int, *, ranges: int, records: int
    ) -> SharePartitionFigures:
        """Return the figures of the share partition, with what is in flight."""
        return SharePartitionFigures(
            group,
            topic,
            partition,
            ranges,
            records,
            self.lock_timeouts,
            self.batch_sizes.figures(),
            self.lock_times_ms.figures(),
            self.lock_percents.figures(),
        )


class ShareCounters:
    """Counters of all share partitions of a broker."""

    def __init__(self) -> None:
        #: Records by what members said of them.
        self.acknowledged: Counter[str] = Counter()
        #: How long it takes to load a share partition, and how long a fetch of all partitions of a session.
        self.load_times = Histogram()
        self.acquire_times = Histogram()
        #: Sessions that ended with their connection.
        self.ended_sessions = 0
        #: Fetches that waited for MaxWaitMs.
        self.expired_fetches = 0
        #: Records that were given out for the last time, by group.
        self.last_deliveries: Counter[str] = Counter()
        self._fetched: dict[str, ValueCounter] = {}

    def rotate(self) -> None:
        """End a window."""
        self.load_times.rotate()
        self.acquire_times.rotate()

    def count_acknowledged(self, ranges: Iterable[AcknowledgedRange]) -> None:
        for first, last, types in ranges:
            if len(types) == 1:
                self.acknowledged[_WORDS[types[0]]] += last - first + 1
            else:
                for kind, count in Counter(types).items():
                    self.acknowledged[_WORDS[kind]] += count

    def count_last_deliveries(self, group: str, records: int) -> None:
        """Count records that are given to nobody again if they fail once more."""
        if group not in self.last_deliveries and len(self.last_deliveries) >= MAX_GROUPS:
            group = OTHER_GROUPS
        self.last_deliveries[group] += records

    def count_fetch(self, group: str, given: int, asked: int) -> None:
        """Count a fetch that asked for records of some partitions and was given some of so many."""
        if group not in self._fetched and len(self._fetched) >= MAX_GROUPS:
            group = OTHER_GROUPS
        self._fetched.setdefault(group, ValueCounter()).add(100 * given / asked)

    def fetch_percents(self) -> Mapping[str, TallyFigures]:
        """Return, by group, in how many percent of the partitions asked for there were records."""
        return {group: tally.figures() for group, tally in self._fetched.items()}
