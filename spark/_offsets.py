"""Offsets as Spark's Kafka source writes them: nested JSON, ``{"orders": {"0": 23, "1": -2}}``.

-2 stands for the earliest offset of a partition and -1 for the latest, where a start or an end is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..protocol import KohortError, TopicPartition

#: An offset in the JSON that means the end of the log.
LATEST = -1

#: An offset in the JSON that means the first record that is still there.
EARLIEST = -2

#: Of a partition number.
_MOST_DIGITS = 10

_EXAMPLE = '{"orders": {"0": 23, "1": -2}}'


class OffsetsFormatError(KohortError, ValueError):
    """Text that is not offsets; says which part of it."""


def parse_offsets(text: str) -> dict[TopicPartition, int]:
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


def format_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """The same offsets as JSON, sorted by topic and partition number: equal offsets give equal text."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics, separators=(",", ":"))


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
