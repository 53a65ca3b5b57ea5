"""Intent records: what a driver leaves in a commit's metadata so that a batch can be repeated exactly.

Before the sink runs, each partition of batch 3 has its *start* committed again with ``{"b":3,"e":4000}``: the
number and the planned end. After the sink its end is committed with ``{"b":3}``. A driver that dies between
the two leaves the intent behind, and the next one reads the same range under the same number, so that a sink
may skip a number that it has applied. An operator's reset of the offsets removes the metadata, and with it
the intent. Metadata of anyone else is no intent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..protocol import TopicPartition
from ._ranges import Committed, OffsetRange, Plan


@dataclass(frozen=True, slots=True)
class Mark:
    """What we left in a commit's metadata: the batch's number and, in an intent, its planned end."""

    batch: int
    end: int | None = None


def format_mark(mark: Mark) -> str:
    """The metadata of a commit; far below the broker's limit of 4,096 bytes."""
    document = {"b": mark.batch} if mark.end is None else {"b": mark.batch, "e": mark.end}
    return json.dumps(document, separators=(",", ":"))


def parse_mark(metadata: str | None) -> Mark | None:
    """The mark in a commit's metadata, or None where someone else wrote it."""
    try:
        document = json.loads(metadata or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not document.keys() <= {"b", "e"}:
        return None
    batch, end = document.get("b"), document.get("e")
    if type(batch) is not int or batch < 0 or not (end is None or (type(end) is int and end >= 0)):
        return None
    return Mark(batch, end)


def intents(number: int, ranges: Iterable[OffsetRange]) -> dict[TopicPartition, Committed]:
    """The commits that announce a batch."""
    return {
        span.topic_partition: Committed(span.start, format_mark(Mark(number, span.end))) for span in ranges
    }


def outcomes(number: int, ranges: Iterable[OffsetRange]) -> dict[TopicPartition, Committed]:
    """The commits that end a batch."""
    return {span.topic_partition: Committed(span.end, format_mark(Mark(number))) for span in ranges}


def positions(plan: Plan) -> dict[TopicPartition, Committed]:
    """The commits for partitions that have no range in the batch.

    Without a batch they carry the number of the last one, so that the count goes on.
    """
    number = plan.number if plan.ranges else plan.number - 1
    metadata = format_mark(Mark(number)) if number >= 0 else ""
    return {partition: Committed(offset, metadata) for partition, offset in plan.moves.items()}


def pending(committed: Mapping[TopicPartition, Committed]) -> tuple[int, tuple[OffsetRange, ...]] | None:
    """Number and ranges of the batch that was announced and not ended, if there is one.

    All intents of a batch are one commit, so an intent below the newest number was left behind by a driver
    that went on without its partition: it no longer stands for a batch, and its records are read anew.
    """
    newest = next_number(committed) - 1
    ranges = [
        OffsetRange(partition.topic, partition.partition, commit.offset, mark.end)
        for partition, commit in sorted(committed.items())
        if (mark := parse_mark(commit.metadata))
        and mark.batch == newest
        and mark.end is not None
        and mark.end > commit.offset >= 0
    ]
    return (newest, tuple(ranges)) if ranges else None


def next_number(committed: Mapping[TopicPartition, Committed]) -> int:
    """One above the highest number in any commit; 0 where there is none."""
    marks = (parse_mark(commit.metadata) for commit in committed.values())
    return max((mark.batch + 1 for mark in marks if mark), default=0)
