"""A data folder held against the format and against itself, without changing a byte of it.

It may be in use, and Apache Kafka may have written it. What a running broker has not finished is no damage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from ...protocol import BatchHeader, CorruptBatchError, TopicPartition, parse_batch_header
from .._checkpoints import read_epochs, read_offsets, read_properties, read_topic_id
from .._errors import DataFolderError
from .._folder import CLEAN_SHUTDOWN, HIGH_WATERMARKS, LOCK_FILE, LOG_STARTS, META_PROPERTIES, RECOVERY_POINTS
from .._indexes import NO_TIMESTAMP, AbortedTransaction, OffsetIndex, TimeIndex
from .._names import (
    CLEANED,
    DELETED,
    INDEX,
    LEADER_EPOCHS,
    LOG,
    PARTITION_METADATA,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    is_deleted_folder,
    offset_of,
    offsets_of,
    parse_partition_folder,
)
from .._producers import read_snapshot
from .._records import decode_records, parse_marker
from .._scan import Damage, batch_follows, salvage
from .._segment import Segment
from ._read_only import READ_ONLY, is_locked

#: The severity: a person must act; the next start mends it; good to know.
Level = Literal["damage", "mended", "note"]

#: Marks a place of an index where no batch was found.
NO_OFFSET: Final = -1

#: By offset: the producer, and whether its transaction was committed.
_Markers: TypeAlias = dict[int, tuple[int, bool]]

_TXN_ENTRY_BYTES: Final = 34
_MADE_ANEW: Final = "Remove the file while the broker is stopped: the next start makes it anew from the log."
_MISSING: Final = "The next start makes it anew from the log."
_RESTORE: Final = (
    "Restore the file from a copy; or stop the broker and cut the file there by hand, and lose what follows."
)
_LEFT_OUT: Final = (
    "Readers get CORRUPT_MESSAGE here, or meet a wrong checksum; what is before and behind it is served, and "
    "of the offsets topic it is left out. " + _RESTORE
)
_TORN: Final = (
    "The end of a write that a stop interrupted: the next start cuts it off; nothing that was acknowledged "
    "and is on the disk lies there."
)
_GROWING: Final = "The folder is in use: this may be a write under way. Look again."


class Finding(NamedTuple):
    """One thing that is wrong: in which file, at which byte (-1: as a whole), and what to do."""

    level: Level
    file: str
    position: int
    what: str
    advice: str


@dataclass(slots=True)
class WalkedSegment:
    """The result of a walk over a segment; ``end_offset`` is behind its last whole batch."""

    base_offset: int
    end_offset: int
    bytes: int = 0
    batches: int = 0
    records: int = 0
    findings: list[Finding] = field(default_factory=list)


class _Times:
    """The time index while its segment is walked: no batch before an entry's offset may be newer than it."""

    def __init__(self, entries: list[tuple[int, int]], base_offset: int, path: str) -> None:
        self._entries = iter(entries)
        self._entry = next(self._entries, None)
        self._base_offset = base_offset
        self._newest_ms = NO_TIMESTAMP
        self._path = path

    def take(self, header: BatchHeader) -> Iterator[Finding]:
        while self._entry is not None and self._base_offset + self._entry[1] <= header.last_offset:
            if self._entry[0] < self._newest_ms:
                what = f"an entry says {self._entry[0]} where a batch before it is of {self._newest_ms}"
                yield Finding("mended", self._path, -1, what, _MADE_ANEW)
            self._entry = next(self._entries, None)
        self._newest_ms = max(self._newest_ms, header.max_timestamp_ms)

    def end(self, end_offset: int) -> Iterator[Finding]:
        if self._entry is not None and self._entry[1] > max(end_offset - self._base_offset - 1, 0):
            beyond = self._base_offset + self._entry[1]
            what = f"an entry is for offset {beyond}, the segment ends at {end_offset}"
            yield Finding("mended", self._path, -1, what, _MADE_ANEW)


def walk_segment(folder: str, base_offset: int, due: int, *, last: bool, in_use: bool) -> WalkedSegment:
    """Read a segment whole. ``due`` is the least offset it may begin with; ``last``: it is the active one."""
    walked = WalkedSegment(base_offset, max(base_offset, due))
    # indexes first: while the folder is in use, the log is written before them
    indexes = Segment(READ_ONLY, folder, base_offset, created_ms=0)
    entries = _entries(indexes.index, walked, folder, INDEX)
    times = _Times(
        _entries(indexes.time_index, walked, folder, TIME_INDEX), base_offset, indexes.time_index.file.path
    )
    txn_index_fits = indexes.txn_index.open()
    indexes.close()
    segment = Segment(READ_ONLY, folder, base_offset, created_ms=0)
    walked.bytes = segment.size
    places = dict.fromkeys((position for _, position in entries), NO_OFFSET)
    markers: _Markers = {}
    for piece in salvage([segment], base_offset):
        if piece.damage:
            where = (segment, piece.position, piece.damage)
            walked.findings.append(_damage(*where, walked.end_offset, last=last, in_use=in_use))
            continue
        header = parse_batch_header(piece.records)
        _take(walked, markers, piece.records, header, piece.position, segment.file.path)
        if piece.position in places:
            places[piece.position] = header.last_offset
        walked.findings += times.take(header)
    segment.close()
    walked.findings += times.end(walked.end_offset)
    _check_offsets(walked, entries, places, indexes.index)
    txn_path = os.path.join(folder, file_name(base_offset, TXN_INDEX))
    _check_transactions(walked, markers, indexes.txn_index.entries, txn_path, fits=txn_index_fits)
    return walked


def _take(
    walked: WalkedSegment, markers: _Markers, data: bytes, header: BatchHeader, position: int, path: str
) -> None:
    walked.batches += 1
    walked.records += max(header.record_count, 0)
    if header.base_offset < walked.end_offset:
        what = (
            f"a batch begins at offset {header.base_offset}, the one before it ended at {walked.end_offset}"
        )
        walked.findings.append(Finding("damage", path, position, what, _RESTORE))
    walked.end_offset = max(walked.end_offset, header.next_offset)
    try:
        records = decode_records(data, header)
        marker = parse_marker(data, header) if header.control else None
    except CorruptBatchError as error:
        what = f"{error.args[0] if error.args else error}, though the checksum is right: it was written so"
        walked.findings.append(Finding("damage", path, position, what, _LEFT_OUT))
        return
    offsets = [record[0] for record in records]
    if any(not header.base_offset <= offset <= header.last_offset for offset in offsets) or any(
        later <= earlier for earlier, later in pairwise(offsets)
    ):
        what = f"offsets of the records do not rise within {header.base_offset}..{header.last_offset}"
        walked.findings.append(Finding("damage", path, position, what, _LEFT_OUT))
    if header.control:
        # of one that compaction has emptied it is not known any more how the transaction ended
        markers[header.last_offset] = (header.producer_id, marker is not None and marker.committed)


def _damage(
    segment: Segment, position: int, reason: str, end_offset: int, *, last: bool, in_use: bool
) -> Finding:
    behind = segment.size - position
    following = batch_follows(segment, Damage(position, reason), end_offset)
    if following is not None:
        what = f"{reason}; whole batches follow from byte {following} on"
        return Finding("damage", segment.file.path, position, what, _LEFT_OUT)
    what = f"{reason}; {behind} bytes to the end of the file are no whole batch"
    if not last:
        return Finding("damage", segment.file.path, position, what, _LEFT_OUT)
    return Finding(
        "note" if in_use else "mended", segment.file.path, position, what, _GROWING if in_use else _TORN
    )


def _entries(
    index: OffsetIndex | TimeIndex, walked: WalkedSegment, folder: str, suffix: str
) -> list[tuple[int, int]]:
    """The entries of an index as far as they are well formed; what is not is told."""
    path = os.path.join(folder, file_name(walked.base_offset, suffix))
    entry_size = index.ENTRY.size
    if not os.path.exists(path):
        walked.findings.append(Finding("mended", path, -1, "it is missing", _MISSING))
        return []
    size = index.file.size()
    if size % entry_size:
        what = f"{size} bytes are no whole number of entries of {entry_size}"
        walked.findings.append(Finding("mended", path, size - size % entry_size, what, _MADE_ANEW))
    raw = index.file.read(0, size - size % entry_size).rstrip(b"\x00")
    whole = -(-len(raw) // entry_size) * entry_size
    entries = list(index.ENTRY.iter_unpack(raw.ljust(whole, b"\x00")))
    for number, (before, after) in enumerate(pairwise(entries), 1):
        if after[0] <= before[0] or after[1] < before[1]:
            what = f"entry {after} does not rise from {before}"
            walked.findings.append(Finding("mended", path, number * entry_size, what, _MADE_ANEW))
            return entries[:number]
    return entries


def _check_offsets(
    walked: WalkedSegment, entries: list[tuple[int, int]], places: dict[int, int], index: OffsetIndex
) -> None:
    for number, (relative, position) in enumerate(entries):
        found = places[position]
        if found == walked.base_offset + relative:
            continue
        there = "no batch begins there" if found == NO_OFFSET else f"that batch ends at offset {found}"
        what = f"an entry puts offset {walked.base_offset + relative} at byte {position}: {there}"
        walked.findings.append(
            Finding("mended", index.file.path, number * index.ENTRY.size, what, _MADE_ANEW)
        )
        return


def _check_transactions(
    walked: WalkedSegment, markers: _Markers, entries: list[AbortedTransaction], path: str, *, fits: bool
) -> None:
    if not fits:
        what = "its entries are not those of aborted transactions"
        walked.findings.append(Finding("mended", path, -1, what, _MADE_ANEW))
    for number, entry in enumerate(entries):
        if markers.get(entry.last_offset) != (entry.producer_id, False):
            what = f"no abort marker of producer {entry.producer_id} at offset {entry.last_offset}"
            walked.findings.append(Finding("mended", path, number * _TXN_ENTRY_BYTES, what, _MADE_ANEW))
            return


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
    """A partition as it was read: offsets from ``start_offset`` up to before ``end_offset``."""

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
    names = sorted(READ_ONLY.list(folder))
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
            read_offsets(READ_ONLY, path)
        except DataFolderError as error:
            done.findings.append(_unreadable(path, error))
    path = os.path.join(done.path, META_PROPERTIES)
    if META_PROPERTIES not in names:
        advice = "The next start makes one, with a new cluster id."
        done.findings.append(Finding("note", path, -1, "it is missing", advice))
    elif not (read_properties(READ_ONLY, path) or {}).get("cluster.id"):
        advice = "Put it back, or remove the file: the next start makes one with a new cluster id."
        done.findings.append(Finding("damage", path, -1, "there is no cluster.id in it", advice))
    for name in names:
        if is_deleted_folder(name):
            path = os.path.join(done.path, name)
            what = "a partition that is being deleted"
            done.findings.append(Finding("note", path, -1, what, "The next start removes it."))


def _checkpoints(folder: str, key: TopicPartition) -> dict[str, int]:
    """Return the offsets that the folder's checkpoints have for a partition; an unreadable one has none."""
    said = {}
    for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS):
        try:
            offset = read_offsets(READ_ONLY, os.path.join(folder, name)).get(key)
        except DataFolderError:
            offset = None
        if offset is not None:
            said[name] = offset
    return said


def _verify_partition(done: VerifiedPartition, points: dict[str, int], *, in_use: bool) -> None:
    names = sorted(READ_ONLY.list(done.path))
    bases = offsets_of(names, LOG)
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
        if read_topic_id(READ_ONLY, done.path) is None:
            what = "partition.metadata is missing: which topic's partition it is, is not known"
            done.findings.append(
                Finding("note", done.path, -1, what, "A broker that knows the topic makes it again.")
            )
    except DataFolderError as error:
        done.findings.append(_unreadable(path(PARTITION_METADATA), error))
    try:
        read_epochs(READ_ONLY, path(LEADER_EPOCHS))
    except DataFolderError as error:
        done.findings.append(_unreadable(path(LEADER_EPOCHS), error))
    for offset in offsets_of(names, SNAPSHOT):
        try:
            read_snapshot(READ_ONLY, done.path, offset)
        except CorruptBatchError as error:
            name = path(file_name(offset, SNAPSHOT))
            what = "what it says of producers cannot be read: " + str(error)
            done.findings.append(Finding("mended", name, -1, what, _REPLAYED))
    for name in names:
        for suffix, says in _LEFTOVERS.items():
            if name.endswith(suffix) and offset_of(name) is not None:
                done.findings.append(Finding("note", path(name), -1, says, "Nothing is to be done."))


def _unreadable(path: str, error: DataFolderError) -> Finding:
    # a line of the file may be quoted in what is wrong, so the advice is the last sentence
    what, _, advice = str(error).removeprefix(f"{path} ").rpartition(". ")
    return Finding("damage", path, -1, what, advice + ".")
