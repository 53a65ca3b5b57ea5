"""A data folder held against the format and against itself, without changing a byte of it.

It may be in use, and Apache Kafka may have written it. What a running broker has not finished is no damage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ..protocol import CorruptBatchError, TopicPartition
from ._checkpoints import read_epochs, read_offsets, read_properties, read_topic_id
from ._errors import DataFolderError
from ._folder import CLEAN_SHUTDOWN, HIGH_WATERMARKS, LOCK_FILE, LOG_STARTS, META_PROPERTIES, RECOVERY_POINTS
from ._look import LOOKED_AT, is_locked
from ._names import (
    CLEANED,
    DELETED,
    LEADER_EPOCHS,
    LOG,
    SNAPSHOT,
    SWAP,
    file_name,
    is_deleted_folder,
    offset_of,
    parse_partition_folder,
)
from ._snapshot import read_snapshot, snapshot_offsets
from ._verify_segment import Finding, walk_segment

_CLEANER_CHECKPOINT: Final = "cleaner-offset-checkpoint"
_LEFTOVERS: Final = {
    DELETED: "waits for its removal",
    CLEANED: "compaction was writing it: the next start removes it",
    SWAP: "compaction has finished it: the next start puts it in the place of its sources",
}
_LOST: Final = (
    "Records that were on the disk are gone: restore the partition from a copy, or go on without them, and "
    "expect committed offsets behind the end."
)
_REPLAYED: Final = "Remove the file while the broker is stopped: the log is read whole instead."


@dataclass(slots=True)
class VerifiedPartition:
    """What was read of a partition: offsets from ``start_offset`` up to before ``end_offset``."""

    topic: str
    partition: int
    path: str
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    start_offset: int = 0
    end_offset: int = 0
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class VerifiedFolder:
    """A folder and its partitions; ``findings`` are those of the folder's own files."""

    path: str
    in_use: bool
    clean_stop: bool
    partitions: list[VerifiedPartition] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def all_findings(self) -> Iterator[Finding]:
        yield from self.findings
        for partition in self.partitions:
            yield from partition.findings


def verify_folder(
    path: str | os.PathLike[str], told: Callable[[VerifiedPartition], None] | None = None
) -> VerifiedFolder:
    """Read everything in a data folder; each partition is ``told`` when it is done.

    Raises DataFolderError for a folder that is no data folder, and OSError for one that cannot be read.
    """
    folder = os.path.abspath(os.fspath(path))
    names = sorted(LOOKED_AT.list(folder))
    found = [(key, name) for name in names if (key := parse_partition_folder(name)) is not None]
    found = [(key, name) for key, name in found if os.path.isdir(os.path.join(folder, name))]
    if not found and META_PROPERTIES not in names:
        raise DataFolderError(
            f"{folder} is no data folder: there is neither {META_PROPERTIES} nor a partition in it"
        )
    in_use = is_locked(os.path.join(folder, LOCK_FILE))
    done = VerifiedFolder(folder, in_use, CLEAN_SHUTDOWN in names)
    for (topic, number), name in sorted(found):
        # checkpoints say less than the logs while these grow: they are read before each
        partition = VerifiedPartition(topic, number, os.path.join(folder, name))
        points = _checkpoints(folder, TopicPartition(topic, number))
        _verify_partition(partition, points, in_use=in_use)
        done.partitions.append(partition)
        if told is not None:
            told(partition)
    _verify_own_files(done, names)
    return done


def _verify_own_files(done: VerifiedFolder, names: list[str]) -> None:
    for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, _CLEANER_CHECKPOINT):
        path = os.path.join(done.path, name)
        try:
            read_offsets(LOOKED_AT, path)
        except DataFolderError as error:
            done.findings.append(_unreadable(path, error))
    path = os.path.join(done.path, META_PROPERTIES)
    if META_PROPERTIES not in names:
        advice = "The next start makes one, with a new cluster id."
        done.findings.append(Finding("note", path, -1, "it is missing", advice))
    elif not (read_properties(LOOKED_AT, path) or {}).get("cluster.id"):
        advice = "Put it back, or remove the file: the next start makes one with a new cluster id."
        done.findings.append(Finding("damage", path, -1, "there is no cluster.id in it", advice))
    for name in names:
        if is_deleted_folder(name):
            path = os.path.join(done.path, name)
            what = "a partition that is being deleted"
            done.findings.append(Finding("note", path, -1, what, "The next start removes it."))


def _checkpoints(folder: str, key: TopicPartition) -> dict[str, int]:
    """What the folder's checkpoints say of a partition; an unreadable one says nothing here."""
    said = {}
    for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS):
        try:
            offset = read_offsets(LOOKED_AT, os.path.join(folder, name)).get(key)
        except DataFolderError:
            offset = None
        if offset is not None:
            said[name] = offset
    return said


def _verify_partition(done: VerifiedPartition, points: dict[str, int], *, in_use: bool) -> None:
    names = sorted(LOOKED_AT.list(done.path))
    bases = sorted(base for name in names if name.endswith(LOG) and (base := offset_of(name)) is not None)
    _verify_small_files(done, names)
    if bases:
        done.start_offset = max(bases[0], points.get(LOG_STARTS, 0))
    due = 0
    for number, base in enumerate(bases):
        walked = walk_segment(done.path, base, due, last=number == len(bases) - 1, in_use=in_use)
        if base < due:
            what = f"it begins at offset {base}, the segment before it ends at {due}"
            path = os.path.join(done.path, file_name(base, LOG))
            advice = "Two segments hold the same offsets: restore the partition from a copy."
            done.findings.append(Finding("damage", path, 0, what, advice))
        done.findings += walked.findings
        done.segments += 1
        done.batches += walked.batches
        done.records += walked.records
        done.bytes += walked.bytes
        due = done.end_offset = max(due, walked.end_offset)
    for name, offset in points.items():
        if bases and offset > done.end_offset:
            what = f"{name} says {offset}, the log ends at {done.end_offset}"
            done.findings.append(Finding("damage", done.path, -1, what, _LOST))


def _verify_small_files(done: VerifiedPartition, names: list[str]) -> None:
    def path(name: str) -> str:
        return os.path.join(done.path, name)

    try:
        if read_topic_id(LOOKED_AT, done.path) is None:
            what = "partition.metadata is missing: which topic's partition it is, is not known"
            done.findings.append(
                Finding("note", done.path, -1, what, "A broker that knows the topic makes it again.")
            )
    except DataFolderError as error:
        done.findings.append(_unreadable(done.path, error))
    try:
        read_epochs(LOOKED_AT, path(LEADER_EPOCHS))
    except DataFolderError as error:
        done.findings.append(_unreadable(path(LEADER_EPOCHS), error))
    for offset in snapshot_offsets(names):
        try:
            read_snapshot(LOOKED_AT, done.path, offset)
        except CorruptBatchError as error:
            name = path(file_name(offset, SNAPSHOT))
            what = "what it says of producers cannot be read: " + str(error)
            done.findings.append(Finding("mended", name, -1, what, _REPLAYED))
    for name in names:
        for suffix, says in _LEFTOVERS.items():
            if name.endswith(suffix) and offset_of(name) is not None:
                done.findings.append(Finding("note", path(name), -1, says, "Nothing is to be done."))


def _unreadable(path: str, error: DataFolderError) -> Finding:
    what, _, advice = str(error).removeprefix(path).removeprefix(" ").partition(". ")
    return Finding("damage", path, -1, what, (advice or "Restore it from a copy").rstrip(".") + ".")
