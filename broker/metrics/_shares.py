"""What is counted of share partitions, by the names of Apache Kafka's metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...share_partitions import AcknowledgedRange, AcknowledgeType
from ._sensors import Histogram

#: Apache Kafka's words for the types of acknowledgements.
_WORDS = {kind: kind.name.capitalize() for kind in AcknowledgeType}


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

    def rotate(self) -> None:
        """End a window."""
        self.load_times.rotate()
        self.acquire_times.rotate()

    def count_acknowledged(self, ranges: Iterable[AcknowledgedRange]) -> None:
        for each in ranges:
            for first, last, kind in each.pieces():
                self.acknowledged[_WORDS[kind]] += last - first + 1
