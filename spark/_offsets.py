"""Ranges of offsets, plans of batches, and offsets in the JSON of Spark's Kafka source.

The JSON is ``{"orders": {"0": 23, "1": -2}}``. In options, -2 stands for the earliest offset of a partition
and -1 for the latest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ..protocol import JsonObject, KohortError, TopicPartition

#: Stands for the end of the log in the JSON.
LATEST = -1

#: Stands for the first record of the log in the JSON.
EARLIEST = -2

#: Most digits of a partition number.
_MOST_DIGITS = 10

#: Offsets by partition.
Offsets = dict[TopicPartition, int]

_EXAMPLE = '{"orders": {"0": 23, "1": -2}}'


class OffsetsFormatError(KohortError, ValueError):
    """A text is not valid offsets. The message names the wrong part."""


def parse_offsets(text: str) -> Offsets:
    """Parse offsets by partition; values are offsets, LATEST or EARLIEST. Raises OffsetsFormatError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OffsetsFormatError(f"offsets are no JSON: {error}; write them as {_EXAMPLE}") from error
    if not isinstance(document, dict):
        raise OffsetsFormatError(f"offsets must be an object of topics, like {_EXAMPLE}")
    return {
        _require_partition(topic, number): _require_offset(topic, number, offset)
        for topic, partitions in document.items()
        for number, offset in _require_partitions(topic, partitions).items()
    }


def format_offsets(offsets: Offsets) -> str:
    """Format offsets as JSON, sorted by topic and partition number: equal offsets give equal text."""
    return json.dumps(to_document(offsets), separators=(",", ":"))


def to_document(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Convert offsets to the form of Spark's checkpoint: ``{"orders": {"0": 23}}``."""
    document: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(partition)] = offset
    return document


def from_document(document: JsonObject) -> Offsets:
    """The reverse of ``to_document``."""
    return {
        TopicPartition(topic, int(number)): int(offset)
        for topic, partitions in document.items()
        for number, offset in partitions.items()
    }


def _require_partitions(topic: str, partitions: object) -> dict[str, object]:
    if not isinstance(partitions, dict):
        raise OffsetsFormatError(
            f"offsets of topic {topic!r} must be an object of partitions, like {_EXAMPLE}"
        )
    return partitions


def _require_partition(topic: str, number: str) -> TopicPartition:
    if not (number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS):
        raise OffsetsFormatError(f"{number!r} of topic {topic!r} is no partition number")
    return TopicPartition(topic, int(number))


def _require_offset(topic: str, number: str, offset: object) -> int:
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < EARLIEST:
        raise OffsetsFormatError(
            f"{offset!r} of {topic}-{number} is no offset: write a number, -1 for latest or -2 for earliest"
        )
    return offset


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """Offsets ``start <= offset < end`` of one partition. Not every offset has a record."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} [{self.start}, {self.end})"

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
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
    """First offset of a log, and its end for the reader's isolation level. ``log_end`` is that of the log,
    where an offset of the group is behind ``latest``: records of open transactions are before it.
    """

    earliest: int
    latest: int
    log_end: int = -1

    def has(self, offset: int) -> bool:
        """Return whether the log goes up to an offset."""
        return offset <= max(self.latest, self.log_end)


#: Bounds of the logs to read, and all commits of a group, by partition.
Logs = dict[TopicPartition, Bounds]
Commits = dict[TopicPartition, Committed]


@dataclass(frozen=True, slots=True)
class Plan:
    """One batch. ``lag``: number of offsets left after it. ``lost``: ranges that the logs no longer have.

    ``token`` identifies the batch; a replay has the token of the first announcement. ``moves``: positions to
    commit for partitions without a range in it, such as an empty partition (so that a start at "latest" is
    chosen only once) or one that continues after a loss.
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
        """Number of offsets: an upper bound of the batch's rows."""
        return sum(span.offsets for span in self.ranges)
