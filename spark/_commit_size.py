"""What fits into one commit: brokers write it as one batch of records, of 1 MiB at most by default.

Intents of a batch must be in one commit, so a batch has no more partitions than fit. Other commits are split.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol import TopicPartition
from ._intent import read_marks
from ._offsets import Commits, OffsetRange

#: Largest commit, in bytes as the broker writes it.
MAX_COMMIT_BYTES = 1_000_000

#: Largest record of a commit, without its names and metadata.
_RECORD_BYTES = 80

#: An intent's metadata without its two numbers.
_INTENT_BYTES = len('{"b":,"e":,"k":"0123456789abcdef"}')


def fit_commit(
    group: str, number: int, spans: Sequence[OffsetRange], committed: Commits
) -> Sequence[OffsetRange]:
    """Return the ranges whose intents fit into one commit: those first that were read longest ago."""
    fixed = _record_bytes(group, "") + _INTENT_BYTES + len(str(number))
    sizes = [fixed + len(span.topic.encode()) + len(str(span.end)) for span in spans]
    if sum(sizes) <= MAX_COMMIT_BYTES:
        return spans
    marks = read_marks(committed)
    last = [mark.batch if (mark := marks.get(span.topic_partition)) else -1 for span in spans]
    room, chosen = MAX_COMMIT_BYTES, []
    for nth in sorted(range(len(spans)), key=lambda n: (last[n], -spans[n].offsets, n)):
        room -= sizes[nth]
        if room < 0:
            break
        chosen.append(nth)
    return [spans[nth] for nth in sorted(chosen)]


def split_commits(group: str, commits: Commits, together: Commits | None = None) -> list[Commits]:
    """Split commits by size. Those that must be ``together`` are in the last one."""
    parts: list[Commits] = [dict(together or {})]
    room = MAX_COMMIT_BYTES - sum(_commit_bytes(group, p, parts[0]) for p in parts[0])
    for partition, commit in commits.items():
        size = _commit_bytes(group, partition, commits)
        if size > room:
            parts.append({})
            room = MAX_COMMIT_BYTES
        room -= size
        parts[-1][partition] = commit
    return parts[1:] + parts[:1]


def _commit_bytes(group: str, partition: TopicPartition, commits: Commits) -> int:
    return _record_bytes(group, partition.topic) + len(commits[partition].metadata.encode())


def _record_bytes(group: str, topic: str) -> int:
    return _RECORD_BYTES + len(group.encode()) + len(topic.encode())
