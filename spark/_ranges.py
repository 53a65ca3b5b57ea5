"""The nouns of a plan: ranges of offsets, what a group has committed, where a log begins and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..protocol import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """Offsets ``start <= offset < end`` of one partition. Not each of them need be a record."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def offsets(self) -> int:
        """How many offsets: an upper bound of the records."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset and its metadata."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a log begins and where a reader of its isolation level must stop."""

    earliest: int
    latest: int


@dataclass(frozen=True, slots=True)
class Plan:
    """One batch. ``lag`` is how many offsets are left after it; ``lost`` is what the log no longer has.

    ``token`` tells it apart from all others, and is that of the first announcement in a replay.
    ``moves`` are positions to commit for partitions that have no range in it: the first one of a partition
    that is empty yet (so that a fallback of "latest" is decided once), or the one behind a loss.
    """

    number: int
    ranges: tuple[OffsetRange, ...]
    token: str = ""
    replayed: bool = False
    lag: int = 0
    lost: tuple[OffsetRange, ...] = ()
    moves: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def offsets(self) -> int:
        """An upper bound of the batch's rows."""
        return sum(span.offsets for span in self.ranges)
