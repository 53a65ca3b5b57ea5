"""Intent records: metadata of a commit by which the next driver can repeat a batch exactly.

Before the sink of batch 3 runs, the driver commits the *start* of each partition again, with the metadata
``{"b":3,"e":4000,"k":"9f86d081884c7d65"}``: batch number, planned end, and a random token. After the sink it
commits the end with ``{"b":3}``. If a driver dies between the two, the next one finds the intent and reads
the same range under the same number and token. When an operator resets the offsets, the metadata and with it
the intent are gone. Batch numbers may then repeat, but tokens never do, so a sink can skip a batch by its
token. Other metadata is ignored.

One partition's commit also carries the log of batches, as ``"l"`` (``_batch_log.py``). It does not belong to
the mark: commits are compared without it.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from ..protocol import TopicPartition
from ..settings import MAX_LONG
from ._offsets import Commits, Committed, OffsetRange, Plan

#: Key of the log of batches.
_LOG = "l"
_BEFORE_LOG = f'"{_LOG}":"'
_LOG_TEXT = re.compile(r"[A-Za-z0-9+/=]*")

#: Tokens become parts of keys, of which users make names of folders. Anybody may write to a group.
_TOKEN = re.compile(r"[A-Za-z0-9_-]{0,64}")


@dataclass(frozen=True, slots=True)
class Mark:
    """Content of a commit's metadata: batch number and, in an intent, planned end and token."""

    batch: int
    end: int | None = None
    token: str = ""


def new_token() -> str:
    """Return a random token for a batch that is announced for the first time."""
    return secrets.token_hex(8)


def format_mark(mark: Mark) -> str:
    """Encode the metadata of a commit. It is far shorter than the broker's limit of 4,096 bytes."""
    if mark.end is None:
        return f'{{"b":{mark.batch}}}'
    return _format_intent(mark.batch, mark.end, json.dumps(mark.token))


def _format_intent(batch: int, end: int, token: str) -> str:
    """Encode the metadata of an intent; ``token`` is JSON already, as it is the same for all partitions."""
    return f'{{"b":{batch},"e":{end},"k":{token}}}'


def parse_mark(metadata: str | None) -> Mark | None:
    """Decode the mark in a commit's metadata; None if it is other metadata."""
    try:
        document = json.loads(metadata or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.keys() - {_LOG} not in ({"b"}, {"b", "e", "k"}):
        return None
    batch, end, token = document["b"], document.get("e"), document.get("k", "")
    if not (_is_count(batch) and (end is None or _is_count(end))):
        return None
    if not (isinstance(token, str) and _TOKEN.fullmatch(token)):
        return None
    return Mark(batch, end, token)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_LONG


def add_log(metadata: str, log: str) -> str:
    """Return metadata of kohort, or "", with a log's text beside the mark."""
    start = f"{metadata[:-1]}," if metadata else "{"
    return f'{start}{_BEFORE_LOG}{log}"}}'


def find_log(metadata: str | None) -> str | None:
    """Return the text of the log in a commit's metadata; None if it has none."""
    if metadata is None or _BEFORE_LOG not in metadata:
        return None
    try:
        document = json.loads(metadata)
    except (ValueError, RecursionError):
        return None
    log = document.get(_LOG) if isinstance(document, dict) else None
    # it is written into other commits as it is
    return log if isinstance(log, str) and _LOG_TEXT.fullmatch(log) else None


def remove_log(commit: Committed) -> Committed:
    """Return the commit as it would be if it carried no log."""
    if find_log(commit.metadata) is None:
        return commit
    mark = parse_mark(commit.metadata)
    return Committed(commit.offset, "" if mark is None else format_mark(mark))


def intents_of(plan: Plan) -> Commits:
    """Return the commits that announce a batch."""
    token = json.dumps(plan.token)
    return {
        span.topic_partition: Committed(span.start, _format_intent(plan.number, span.end, token))
        for span in plan.ranges
    }


def outcomes_of(number: int, ranges: Iterable[OffsetRange]) -> Commits:
    """Return the commits that end a batch."""
    metadata = format_mark(Mark(number))
    return {span.topic_partition: Committed(span.end, metadata) for span in ranges}


def positions_of(plan: Plan) -> Commits:
    """Return the commits for partitions that have no range in the batch.

    If the batch has no ranges at all, they have the number of the previous batch.
    """
    number = plan.number if plan.ranges else plan.number - 1
    metadata = format_mark(Mark(number)) if number >= 0 else ""
    return {partition: Committed(offset, metadata) for partition, offset in plan.moves.items()}


@dataclass(frozen=True, slots=True)
class Announced:
    """A batch that was announced and has not ended."""

    number: int
    token: str
    ranges: tuple[OffsetRange, ...]


def pending_batch(committed: Commits) -> Announced | None:
    """Return the batch that was announced and has not ended, if there is one.

    All intents of a batch are in one commit. So an intent with an older number comes from a driver that went
    on without this partition: it is ignored, and its records are read again. The same holds for an intent
    with another token, which a second driver wrote.
    """
    marks = read_marks(committed)
    newest = max((mark.batch for mark in marks.values()), default=-1)
    found: dict[str, list[OffsetRange]] = {}
    for partition, mark in marks.items():
        offset = committed[partition].offset
        if mark.batch == newest and mark.end is not None and mark.end > offset >= 0:
            found.setdefault(mark.token, []).append(OffsetRange(*partition, offset, mark.end))
    if not found:
        return None
    token, ranges = min(found.items(), key=lambda intent: min(intent[1]))
    return Announced(newest, token, tuple(sorted(ranges)))


def next_number(committed: Commits) -> int:
    """Return the highest batch number in any commit plus one; 0 if there is none."""
    return max((mark.batch + 1 for mark in read_marks(committed).values()), default=0)


def read_marks(committed: Commits) -> dict[TopicPartition, Mark]:
    """Return the marks of the commits that have one."""
    # most partitions have the same: that of the last batch
    read: dict[str, Mark | None] = {}
    found = {}
    for partition, commit in committed.items():
        metadata = commit.metadata
        if metadata not in read:
            read[metadata] = parse_mark(metadata)
        if (mark := read[metadata]) is not None:
            found[partition] = mark
    return found
