"""Ranges of offsets and plans of batches; and offsets as Spark's Kafka source writes them.

That is nested JSON, ``{"orders": {"0": 23, "1": -2}}``: -2 stands for the earliest offset of a partition and
-1 for the latest, where a start or an end is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..protocol import KohortError, TopicPartition

#: An offset in the JSON that means the end of the log.
LATEST = -1

#: An offset in the JSON that means the first record that is still there.
EARLIEST = -2

#: Of a partition number.
_MOST_DIGITS = 10

#: Offsets by partition.
Offsets = dict[TopicPartition, int]

_EXAMPLE = '{"orders": {"0": 23, "1": -2}}'


class OffsetsFormatError(KohortError, ValueError):
    """Text that is not offsets; says which part of it."""


def parse_offsets(text: str) -> Offsets:
    """Offsets by partition; values are offsets, LATEST or EARLIEST. Raises OffsetsFormatError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OffsetsFormatError(f"offsets are no JSON: {error}; write them as {_EXAMPLE}") from error
    if not isinstance(document, dict):
        raise OffsetsFormatError(f"offsets must be an object of topics, like {_EXAMPLE}")
    return {
        _partition(topic, number): _offset(topic, number, offset)
        for topic, partitions in document.items()
        for number, offset in _partitions(topic, partitions).items()
    }


def format_offsets(offsets: Offsets) -> str:
    """Format offsets as JSON, sorted by topic and partition number: equal offsets give equal text."""
    return json.dumps(to_document(offsets), separators=(",", ":"))


def to_document(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Offsets as Spark's checkpoint keeps them: ``{"orders": {"0": 23}}``."""
    document: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(partition)] = offset
    return document


def from_document(document: Mapping[str, Any]) -> Offsets:
    """The reverse of ``to_document``."""
    return {
        TopicPartition(topic, int(number)): int(offset)
        for topic, partitions in document.items()
        for number, offset in partitions.items()
    }


def _partitions(topic: str, partitions: object) -> dict[str, object]:
    if not isinstance(partitions, dict):
        raise OffsetsFormatError(
            f"offsets of topic {topic!r} must be an object of partitions, like {_EXAMPLE}"
        )
    return partitions


def _partition(topic: str, number: str) -> TopicPartition:
    if not (number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS):
        raise OffsetsFormatError(f"{number!r} of topic {topic!r} is no partition number")
    return TopicPartition(topic, int(number))


def _offset(topic: str, number: str, offset: object) -> int:
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < EARLIEST:
        raise OffsetsFormatError(
            f"{offset!r} of {topic}-{number} is no offset: write a number, -1 for latest or -2 for earliest"
        )
    return offset


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
        """Number of offsets: an upper bound of the records."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset and its metadata."""

    offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Begin of a log, and the end for a reader of its isolation level."""

    earliest: int
    latest: int


#: The logs that are to be read, and all that a group has committed.
Logs = dict[TopicPartition, Bounds]
Commits = dict[TopicPartition, Committed]


@dataclass(frozen=True, slots=True)
class Plan:
    """One batch. ``lag`` is how many offsets are left after it; ``lost`` is what the log no longer has.

    ``token`` tells it apart from all others, and is that of the first announcement in a replay. ``moves`` are
    positions to commit for partitions that have no range in it: the first one of a partition that is empty
    yet (so that a fallback of "latest" is decided once), or the one after a loss.
    """

    number: int
    ranges: tuple[OffsetRange, ...]
    token: str = ""
    replayed: bool = False
    lag: int = 0
    lost: tuple[OffsetRange, ...] = ()
    moves: Offsets = field(default_factory=dict)

    @property
    def offsets(self) -> int:
        """An upper bound of the batch's rows."""
        return sum(span.offsets for span in self.ranges)
