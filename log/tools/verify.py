"""A check of a data folder against the format and for consistency, without changing a byte of it.

The folder may be in use, and Apache Kafka may have written it. Unfinished writes of a running broker are not
damage.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from ...protocol import BatchHeader, CorruptBatchError, TopicPartition, parse_batch_header
from .._checkpoints import read_epochs, read_offsets, read_properties, read_topic_id
from .._errors import DataFolderError
from .._folder import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOCK_FILE,
    LOG_STARTS,
    META_PROPERTIES,
    RECOVERY_POINTS,
)
from .._indexes import NO_TIMESTAMP, AbortedTransaction, OffsetIndex, TimeIndex
from .._names import (
    CLEANED,
    DELETED,
    LEADER_EPOCHS,
    LOG,
    PARTITION_METADATA,
    SNAPSHOT,
    SWAP,
    TXN_INDEX,
    file_name,
    is_deleted_folder,
    offset_of,
    offsets_of,
    parse_partition_folder,
)
from .._producers import read_snapshot
from .._records import decode_records, parse_marker
from .._scan import Damage, Salvaged, batch_follows, salvage_segments
from .._segment import Segment
from ._read_only import READ_ONLY, is_locked

#: The severity: a person must act (damage); the next start repairs it (mended); for information (note).
Level = Literal["damage", "mended", "note"]

#: Marks a place of an index where no batch was found.
NO_OFFSET: Final = -1

_TXN_ENTRY_BYTES: Final = 34
_MADE_ANEW: Final = "Remove the file while the broker is stopped: the next start rebuilds it from the log."
_NO_ABORT: Final = (
    "Read-committed consumers get records of an aborted transaction. Stop the broker and append a byte to "
    "the file (printf x >> FILE, which creates it if necessary): the next start rebuilds it from the log."
)
_MISSING: Final = "The next start rebuilds it from the log."
_RESTORE: Final = (
    "Restore the file from a copy; or stop the broker and cut the file there by hand, and lose the rest."
)
_LEFT_OUT: Final = (
    "Consumers get CORRUPT_MESSAGE or a wrong checksum here. Records before and after it are served; in the "
    "offsets topic it is skipped. " + _RESTORE
)
_TORN: Final = (
    "The end of a write that a stop interrupted: the next start cuts it off. No acknowledged record that had "
    "reached the disk is lost."
)
_GROWING: Final = "The folder is in use: this may be a write under way. Look again."


class Finding(NamedTuple):
    """One finding: the file, the byte position (-1: the whole file), what is wrong, and what to do."""

    level: Level
    file: str
    position: int
    what: str
    advice: str


@dataclass(slots=True)
class VerifiedPartition:
    """Figures of a partition that was read, offsets ``start_offset`` to ``end_offset`` - 1."""

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

    def note(self, level: Level, path: str, position: int, what: str, advice: str) -> None:
        """Add a finding, with what to do about it."""
        self.findings.append(Finding(level, path, position, what, advice))


class _Times:
    """Checks a time index while its segment is read: no batch up to an entry may be newer than the entry."""

    def __init__(self, entries: list[tuple[int, int]], base_offset: int) -> None:
        self._entries = iter(entries)
        self._entry = next(self._entries, None)
        self._base_offset = base_offset
        self._newest_ms = NO_TIMESTAMP

    def take(self, header: BatchHeader) -> Iterator[str]:
        """Yield what is wrong with the entries up to a batch."""
        while self._entry is not None and self._base_offset + self._entry[1] <= header.last_offset:
            if self._entry[0] < self._newest_ms:
                yield f"an entry says {self._entry[0]} where a batch before it is of {self._newest_ms}"
            self._entry = next(self._entries, None)
        self._newest_ms = max(self._newest_ms, header.max_timestamp_ms)

    def end(self, end_offset: int) -> Iterator[str]:
        """Yield what is wrong with the entries after the last batch."""
        if self._entry is not None and self._entry[1] > max(end_offset - self._base_offset - 1, 0):
            offset = self._base_offset + self._entry[1]
            yield f"an entry is for offset {offset}, the segment ends at {end_offset}"


class _SegmentWalk:
    """Reads one whole segment; its findings go to its partition, ``done``. ``last``: it is the active one."""

    def __init__(self, done: VerifiedPartition, base_offset: int, *, last: bool, in_use: bool) -> None:
        self.done = done
        self.base_offset = base_offset
        self.last = last
        self.in_use = in_use
        #: After the last whole batch.
        self.end_offset = max(base_offset, done.end_offset)
        #: By offset of a marker: the producer, and whether its transaction was committed.
        self.markers: dict[int, tuple[int, bool]] = {}
        #: Producers with an open transaction in this segment, and those that aborted one, by marker offset.
        self.open: set[int] = set()
        self.aborted: dict[int, int] = {}

    def run(self) -> None:
        # indexes first: while the folder is in use, the log is written before them
        indexes = Segment(READ_ONLY, self.done.path, self.base_offset, created_ms=0)
        entries = self._entries(indexes.index)
        times = _Times(self._entries(indexes.time_index), self.base_offset)
        txn_index_fits = indexes.txn_index.open()
        indexes.close()
        segment = Segment(READ_ONLY, self.done.path, self.base_offset, created_ms=0)
        self.done.segments += 1
        self.done.bytes += segment.size
        places = dict.fromkeys((position for _, position in entries), NO_OFFSET)
        for piece in salvage_segments([segment], self.base_offset):
            if piece.damage:
                self._on_damage(segment, piece.position, piece.damage)
                continue
            header = parse_batch_header(piece.records)
            self._take(piece, header)
            if piece.position in places:
                places[piece.position] = header.last_offset
            for what in times.take(header):
                self._on_mendable(indexes.time_index.file.path, -1, what)
        segment.close()
        for what in times.end(self.end_offset):
            self._on_mendable(indexes.time_index.file.path, -1, what)
        self._check_offsets(entries, places, indexes.index)
        self._check_transactions(indexes.txn_index.entries, fits=txn_index_fits)

    def _on_mendable(self, path: str, position: int, what: str) -> None:
        self.done.note("mended", path, position, what, _MADE_ANEW)

    def _take(self, piece: Salvaged, header: BatchHeader) -> None:
        self.done.batches += 1
        self.done.records += max(header.record_count, 0)
        if header.base_offset < self.end_offset:
            what = (
                f"a batch begins at offset {header.base_offset}, the one before it ended at {self.end_offset}"
            )
            self.done.note("damage", piece.file, piece.position, what, _RESTORE)
        self.end_offset = max(self.end_offset, header.next_offset)
        try:
            offsets = [record[0] for record in decode_records(piece.records, header)]
            marker = parse_marker(piece.records, header) if header.control else None
        except CorruptBatchError as error:
            what = (
                f"{error.args[0] if error.args else error}, though the checksum is right: it was written so"
            )
            self.done.note("damage", piece.file, piece.position, what, _LEFT_OUT)
            return
        if any(not header.base_offset <= offset <= header.last_offset for offset in offsets) or any(
            later <= earlier for earlier, later in pairwise(offsets)
        ):
            what = f"offsets of the records do not rise within {header.base_offset}..{header.last_offset}"
            self.done.note("damage", piece.file, piece.position, what, _LEFT_OUT)
        if header.transactional and not header.control and header.record_count:
            self.open.add(header.producer_id)
        if header.control:
            if marker is not None and not marker.committed and header.producer_id in self.open:
                self.aborted[header.last_offset] = header.producer_id
            self.open.discard(header.producer_id)
            # a marker that compaction has emptied no longer tells how the transaction ended
            self.markers[header.last_offset] = (header.producer_id, marker is not None and marker.committed)

    def _on_damage(self, segment: Segment, position: int, reason: str) -> None:
        following = batch_follows(segment, Damage(position, reason), self.end_offset)
        level: Level = "damage"
        advice = _LEFT_OUT
        if following is not None:
            what = f"{reason}; whole batches follow from byte {following} on"
        else:
            what = f"{reason}; {segment.size - position} bytes to the end of the file are no whole batch"
            if self.last:
                level, advice = ("note", _GROWING) if self.in_use else ("mended", _TORN)
        self.done.note(level, segment.file.path, position, what, advice)

    def _entries(self, index: OffsetIndex | TimeIndex) -> list[tuple[int, int]]:
        """The well-formed entries of an index; the others become findings."""
        path, entry_size = index.file.path, index.ENTRY.size
        if not os.path.exists(path):
            self.done.note("mended", path, -1, "it is missing", _MISSING)
            return []
        size = index.file.size()
        if size % entry_size:
            what = f"{size} bytes are no whole number of entries of {entry_size}"
            self._on_mendable(path, size - size % entry_size, what)
        raw = index.file.read(0, size - size % entry_size).rstrip(b"\x00")
        whole = -(-len(raw) // entry_size) * entry_size
        entries = list(index.ENTRY.iter_unpack(raw.ljust(whole, b"\x00")))
        for number, (before, after) in enumerate(pairwise(entries), 1):
            if after[0] <= before[0] or after[1] < before[1]:
                self._on_mendable(path, number * entry_size, f"entry {after} does not rise from {before}")
                return entries[:number]
        return entries

    def _check_offsets(
        self, entries: list[tuple[int, int]], places: dict[int, int], index: OffsetIndex
    ) -> None:
        for number, (relative, position) in enumerate(entries):
            offset, found = self.base_offset + relative, places[position]
            if found != offset:
                there = (
                    "no batch begins there" if found == NO_OFFSET else f"that batch ends at offset {found}"
                )
                what = f"an entry puts offset {offset} at byte {position}: {there}"
                self._on_mendable(index.file.path, number * index.ENTRY.size, what)
                break

    def _check_transactions(self, entries: list[AbortedTransaction], *, fits: bool) -> None:
        path = os.path.join(self.done.path, file_name(self.base_offset, TXN_INDEX))
        if not fits:
            self._on_mendable(path, -1, "its entries are not those of aborted transactions")
        for number, entry in enumerate(entries):
            if self.markers.get(entry.last_offset) != (entry.producer_id, False):
                what = f"no abort marker of producer {entry.producer_id} at offset {entry.last_offset}"
                self._on_mendable(path, number * _TXN_ENTRY_BYTES, what)
                break
        known = {entry.last_offset for entry in entries}
        for offset, producer_id in self.aborted.items():
            if fits and offset not in known:
                what = f"no entry for what producer {producer_id} aborted at offset {offset}"
                self.done.note("damage", path, -1, what, _NO_ABORT)


_LEFTOVERS: Final = {
    DELETED: "waits for its removal",
    CLEANED: "compaction was writing it: the next start removes it",
    SWAP: "compaction has finished it: the next start puts it in the place of its sources",
}
_LOST: Final = (
    "Records that were on the disk are gone: restore the partition from a copy, or continue without them; "
    "committed offsets may then be beyond the end."
)
_REPLAYED: Final = "Remove the file while the broker is stopped: the log is read whole instead."


@dataclass(slots=True)
class VerifiedFolder:
    """A folder and its partitions; ``findings`` are those of the folder's own files."""

    path: str
    in_use: bool
    clean_stop: bool
    partitions: list[VerifiedPartition] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def all_findings(self) -> Iterator[Finding]:
        """Yield the folder's findings, then those of each partition."""
        yield from self.findings
        for partition in self.partitions:
            yield from partition.findings


def verify_folder(path: str | os.PathLike[str]) -> VerifiedFolder:
    """Read everything in a data folder. Raises DataFolderError for another kind of folder, and OSError."""
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
        # logs grow meanwhile, and checkpoints must not be ahead of them: read the checkpoints first
        partition = VerifiedPartition(topic, number, os.path.join(folder, name))
        points = _checkpoints(folder, TopicPartition(topic, number))
        _verify_partition(partition, points, in_use=in_use)
        done.partitions.append(partition)
    _verify_own_files(done, names)
    return done


def _verify_own_files(done: VerifiedFolder, names: list[str]) -> None:
    for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS):
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
    """Return a partition's offsets in the folder's checkpoints; an unreadable checkpoint has none."""
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
    for base in bases:
        walk = _SegmentWalk(done, base, last=base == bases[-1], in_use=in_use)
        if base < done.end_offset:
            what = f"it begins at offset {base}, the segment before it ends at {done.end_offset}"
            path = os.path.join(done.path, file_name(base, LOG))
            advice = "Two segments hold the same offsets: restore the partition from a copy."
            done.note("damage", path, 0, what, advice)
        walk.run()
        done.end_offset = max(done.end_offset, walk.end_offset)
    for name, offset in points.items():
        if bases and offset > done.end_offset:
            what = f"{name} says {offset}, the log ends at {done.end_offset}"
            done.note("damage", done.path, -1, what, _LOST)


def _verify_small_files(done: VerifiedPartition, names: list[str]) -> None:
    def path(name: str) -> str:
        return os.path.join(done.path, name)

    try:
        if read_topic_id(READ_ONLY, done.path) is None:
            what = "partition.metadata is missing, which has the topic id"
            done.note("note", done.path, -1, what, "A broker that knows the topic creates it again.")
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
            what = "the producers in it cannot be read: " + str(error)
            done.note("mended", name, -1, what, _REPLAYED)
    for name in names:
        for suffix, says in _LEFTOVERS.items():
            if name.endswith(suffix) and offset_of(name) is not None:
                done.note("note", path(name), -1, says, "Nothing needs to be done.")


def _unreadable(path: str, error: DataFolderError) -> Finding:
    # a line of the file may be quoted in what is wrong, so the advice is the last sentence
    what, _, advice = str(error).removeprefix(f"{path} ").rpartition(". ")
    return Finding("damage", path, -1, what, advice + ".")
