"""Intent records, which a driver leaves in a commit's metadata so that a batch can be repeated exactly.

Before the sink runs, each partition of batch 3 has its *start* committed again with
``{"b":3,"e":4000,"k":"9f86d081884c7d65"}``: the number, the planned end, and a token that was drawn for this
batch. After the sink its end is committed with ``{"b":3}``. A driver that dies between the two leaves the
intent behind, and the next one reads the same range under the same number and token. An operator's reset of
the offsets removes the metadata, and with it the intent; where it takes the numbers back, too, no token comes
again, so that a sink may skip a batch whose token it has applied. Metadata of anyone else is no intent.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from ._offsets import Commits, Committed, OffsetRange, Plan


@dataclass(frozen=True, slots=True)
class Mark:
    """Content of a commit's metadata: the batch's number and, in an intent, planned end and token."""

    batch: int
    end: int | None = None
    token: str = ""


def new_token() -> str:
    """Token of a batch that is announced for the first time; no other has it."""
    return secrets.token_hex(8)


def format_mark(mark: Mark) -> str:
    """The metadata of a commit; far below the broker's limit of 4,096 bytes."""
    document: dict[str, int | str] = {"b": mark.batch}
    if mark.end is not None:
        document |= {"e": mark.end, "k": mark.token}
    return json.dumps(document, separators=(",", ":"))


def parse_mark(metadata: str | None) -> Mark | None:
    """The mark in a commit's metadata, or None where someone else wrote it."""
    try:
        document = json.loads(metadata or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.keys() not in ({"b"}, {"b", "e", "k"}):
        return None
    batch, end, token = document["b"], document.get("e"), document.get("k", "")
    if type(batch) is not int or batch < 0 or not isinstance(token, str):
        return None
    if not (end is None or (type(end) is int and end >= 0)):
        return None
    return Mark(batch, end, token)


def intents(plan: Plan) -> Commits:
    """The commits that announce a batch."""
    return {
        span.topic_partition: Committed(span.start, format_mark(Mark(plan.number, span.end, plan.token)))
        for span in plan.ranges
    }


def outcomes(number: int, ranges: Iterable[OffsetRange]) -> Commits:
    """The commits that end a batch."""
    return {span.topic_partition: Committed(span.end, format_mark(Mark(number))) for span in ranges}


def positions(plan: Plan) -> Commits:
    """The commits for partitions that have no range in the batch.

    Without a batch they carry the number of the last one, so that the count goes on.
    """
    number = plan.number if plan.ranges else plan.number - 1
    metadata = format_mark(Mark(number)) if number >= 0 else ""
    return {partition: Committed(offset, metadata) for partition, offset in plan.moves.items()}


@dataclass(frozen=True, slots=True)
class Announced:
    """A batch that was announced and not ended."""

    number: int
    token: str
    ranges: tuple[OffsetRange, ...]


def pending(committed: Commits) -> Announced | None:
    """The batch that was announced and not ended, if there is one.

    All intents of a batch are one commit, so an intent below the newest number was left behind by a driver
    that went on without its partition: it no longer stands for a batch, and its records are read again. So
    are those of another token, which a second driver has left.
    """
    newest = next_number(committed) - 1
    found: dict[str, list[OffsetRange]] = {}
    for partition, commit in sorted(committed.items()):
        mark = parse_mark(commit.metadata)
        if mark and mark.batch == newest and mark.end is not None and mark.end > commit.offset >= 0:
            found.setdefault(mark.token, []).append(OffsetRange(*partition, commit.offset, mark.end))
    for token, ranges in found.items():
        return Announced(newest, token, tuple(ranges))
    return None


def next_number(committed: Commits) -> int:
    """One above the highest number in any commit; 0 where there is none."""
    marks = (parse_mark(commit.metadata) for commit in committed.values())
    return max((mark.batch + 1 for mark in marks if mark), default=0)
