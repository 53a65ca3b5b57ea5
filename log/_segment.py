"""One segment of a log: the .log file with its batches, and the indexes that find them."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from ..protocol import BATCH_OVERHEAD, BatchHeader, CorruptBatchError, parse_batch_header
from ..protocol.named_tuples import NamedTuple
from ._errors import CorruptLogError, UndoError
from ._files import FileRange, FileSystem, OsFile
from ._indexes import NO_TIMESTAMP, AbortedTransaction, OffsetIndex, TimeIndex, TxnIndex
from ._names import DELETED, INDEX, LOG, SEGMENT_SUFFIXES, TIME_INDEX, TXN_INDEX, file_name

T = TypeVar("T")


class DamagedRange(NamedTuple):
    """Damaged bytes up to the next whole batch, or to the segment's end, and the offsets missing there."""

    position: int
    resume: int
    first_offset: int
    next_offset: int
    reason: str


def intact_pieces(damage: Sequence[DamagedRange], position: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each undamaged piece from ``position`` to ``end``. ``damage`` is in order."""
    for damaged in damage:
        if position < damaged.position:
            yield position, min(damaged.position, end)
        position = max(position, damaged.resume)
    if position < end:
        yield position, end


#: Bytes read at a time when batches are walked; an index interval and its batches mostly fit.
WALK_BYTES = 16 * 1024

#: Largest difference of an offset to its segment's base: an int32 in the indexes.
MAX_RELATIVE_OFFSET = 2**31 - 1

#: Base offset, length, leader epoch .. attributes skipped, last offset delta.
_STEP = struct.Struct(">qi11xi")
_PREFIX = 12


class Step(NamedTuple):
    """Position, size and offsets of a batch, which is all that a look-up needs."""

    position: int
    size: int
    base_offset: int
    last_offset: int


class Segment:
    """Batches from ``base_offset`` up to the next segment's. Methods raise OSError when the disk fails."""

    __slots__ = (
        "_bytes_since_entry",
        "_first_timestamp_ms",
        "_fs",
        "_max_timestamp",
        "_read_up_to",
        "_stem",
        "_tail",
        "base_offset",
        "created_ms",
        "damage",
        "file",
        "index",
        "size",
        "time_index",
        "txn_index",
    )

    def __init__(
        self, fs: FileSystem, folder: str, base_offset: int, *, created_ms: int, tail: str = ""
    ) -> None:
        """``tail`` is a suffix of the usual names of the segment's files."""
        self._fs = fs
        self._stem = os.path.join(folder, file_name(base_offset, ""))
        self._tail = tail
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.file = fs.file(self._path_of(LOG))
        self.size = self.file.size()
        self.index = OffsetIndex(fs.file(self._path_of(INDEX)), base_offset)
        self.time_index = TimeIndex(fs.file(self._path_of(TIME_INDEX)), base_offset)
        self.txn_index = TxnIndex(fs.file(self._path_of(TXN_INDEX)))
        #: Known damage, in the order of positions: walks step over it.
        self.damage: list[DamagedRange] = []
        self._bytes_since_entry = 0
        self._max_timestamp: tuple[int, int] | None = None
        self._first_timestamp_ms: int | None = None
        # offset and position behind the batches that were read last
        self._read_up_to = -1, 0

    def __repr__(self) -> str:
        return f"Segment({self.file.path!r}, {self.size} bytes)"

    @classmethod
    def create(
        cls, fs: FileSystem, folder: str, base_offset: int, *, created_ms: int, tail: str = ""
    ) -> Segment:
        """Create a segment with its three empty files. After an OSError none of them is left, except after
        UndoError.
        """
        segment = cls(fs, folder, base_offset, created_ms=created_ms, tail=tail)
        try:
            segment.truncate(0)
            segment.begin_indexes()
            segment.end_indexes()
        except OSError as error:
            segment._remove_files(error)
            raise
        return segment

    # -- what is in it ---------------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """Newest timestamp, in milliseconds, and the last offset of its batch; or NO_TIMESTAMP."""
        if self._max_timestamp is None:
            self._max_timestamp = self.time_index.last()
        return self._max_timestamp

    @property
    def first_timestamp_ms(self) -> int:
        """Largest timestamp of the first batch, where a segment's age begins; NO_TIMESTAMP if none is."""
        if self._first_timestamp_ms is None:
            try:
                first = next(self.headers(), None)
            except CorruptLogError:
                first = None
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp_ms = first[1].max_timestamp_ms
        return self._first_timestamp_ms

    def next_offset(self) -> int:
        """The offset after the last batch; the base offset if there is none."""
        end = self.base_offset
        for step in self.steps(self._indexed_position(self.index.last())):
            end = step.last_offset + 1
        return end

    # -- reading ---------------------------------------------------------------------------------------------

    def steps(self, position: int = 0, end: int | None = None) -> Iterator[Step]:
        """Walk batches from the one at ``position`` on, without records. Raises CorruptLogError."""
        return self._around_damage(self._walk_steps, position, self.size if end is None else end)

    def _walk_steps(self, position: int, end: int) -> Iterator[Step]:
        while position < end:
            data = self.file.read(position, min(WALK_BYTES, self.size - position))
            at = 0
            while at + _STEP.size <= len(data) and position + at < end:
                base, length, delta = _STEP.unpack_from(data, at)
                size = length + _PREFIX
                if size < BATCH_OVERHEAD or position + at + size > self.size or delta < 0:
                    raise CorruptLogError(self.file.path, position + at, f"no batch: it claims {size} bytes")
                yield Step(position + at, size, base, base + delta)
                at += size
            if not at:
                raise CorruptLogError(self.file.path, position, f"{len(data)} bytes are no batch")
            position += at

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of the batches from ``position`` on. Raises CorruptLogError for new damage."""
        return self._around_damage(self._walk_headers, position, self.size)

    def _around_damage(self, walk: Callable[[int, int], Iterator[T]], position: int, end: int) -> Iterator[T]:
        if not self.damage:
            return walk(position, end)
        return chain.from_iterable(walk(*piece) for piece in intact_pieces(self.damage, position, end))

    def _walk_headers(self, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
        while position < end:
            data = self.file.read(position, min(WALK_BYTES, end - position))
            at = 0
            while at + BATCH_OVERHEAD <= len(data):
                header = self._header_at(data, at, position)
                yield position + at, header
                at += header.size
            if not at:
                raise CorruptLogError(self.file.path, position, f"{len(data)} bytes are no batch")
            position += at

    def damage_from(self, position: int) -> DamagedRange | None:
        """The first damage at ``position`` or after it."""
        return next((damage for damage in self.damage if damage.position >= position), None)

    def require_intact(self, offset: int) -> None:
        """Raise CorruptLogError for an offset that is missing because of damage."""
        for damage in self.damage:
            if damage.first_offset <= offset < damage.next_offset:
                missing = f"offsets {damage.first_offset} to {damage.next_offset - 1}"
                reason = f"{missing} cannot be read: {damage.reason}"
                raise CorruptLogError(self.file.path, damage.position, reason)

    def seek(self, offset: int) -> Step | None:
        """The first batch that ends at or after ``offset``; None if all end before it."""
        behind, position = self._read_up_to
        known = self._step_at(position) if offset == behind else None
        if known is not None and known.base_offset == offset:
            return known
        for step in self.steps(self.start_for(offset)):
            if step.last_offset >= offset:
                return step
        return None

    def note_read(self, next_offset: int, position: int) -> None:
        """Remember where batches were read up to: whoever reads next most often goes on there."""
        self._read_up_to = next_offset, position

    def _step_at(self, position: int) -> Step | None:
        """The batch at a position; None if no whole one is there."""
        data = self.file.read(position, _STEP.size)
        if len(data) < _STEP.size:
            return None
        base, length, delta = _STEP.unpack(data)
        size = length + _PREFIX
        if size < BATCH_OVERHEAD or position + size > self.size or delta < 0:
            return None
        return Step(position, size, base, base + delta)

    def start_for(self, offset: int) -> int:
        """Position of a batch at or before the one that holds ``offset``: at most an index interval before
        it, or the segment's start if the index is wrong.
        """
        return self._indexed_position(self.index.entry_for(offset))

    def start_before(self, position: int) -> int:
        """Position of a batch before ``position``: the last one that the index knows."""
        return self._indexed_position(self.index.entry_before(max(position - 1, 0)))

    def _indexed_position(self, entry: tuple[int, int] | None) -> int:
        """The position of an index entry, 0 if no whole batch there ends at its offset."""
        if entry is None or not 0 < entry[1] <= self.size - BATCH_OVERHEAD:
            return 0
        offset, position = entry
        try:
            header = parse_batch_header(self.file.read(position, BATCH_OVERHEAD))
        except CorruptBatchError:
            return 0
        whole = position + header.size <= self.size
        return position if whole and header.last_offset == offset else 0

    def run_end(self, first: Step, end: int, max_bytes: int) -> tuple[int, int | None]:
        """Return where a run of whole batches from ``first`` has to stop, and the offset at which the next
        one begins.

        The run ends at ``end``, or before the batch that would make it longer than ``max_bytes``; it holds
        ``first`` in any case. The offset is None at ``end``.
        """
        limit = first.position + max(max_bytes, first.size)
        if limit >= end:
            return end, None
        known = max(self._indexed_position(self.index.entry_before(limit)), first.position)
        for step in self.steps(known, end):
            if step.position + step.size > limit:
                return step.position, step.base_offset
        return end, None

    def range(self, position: int, end: int) -> FileRange | None:
        """Return the bytes of ``read`` as a range, unread; None if the file is not the operating system's, or
        no descriptor may be kept open for it.
        """
        if not isinstance(self.file, OsFile):
            return None
        if (size := self.file.size()) < end:
            raise CorruptLogError(self.file.path, position, f"{end - size} bytes are missing")
        return self.file.range(position, end - position)

    def read(self, position: int, end: int) -> bytes:
        """Read bytes of the log file. Raises CorruptLogError if it is shorter than it was."""
        data = self.file.read(position, end - position)
        if len(data) < end - position:
            raise CorruptLogError(self.file.path, position, f"{end - position - len(data)} bytes are missing")
        return data

    # -- writing ---------------------------------------------------------------------------------------------

    def append(
        self,
        data: bytes | bytearray,
        headers: Sequence[BatchHeader],
        *,
        interval_bytes: int,
        aborted: AbortedTransaction | None = None,
    ) -> None:
        """Write batches and their index entries: all of them or, when it raises, none.

        ``aborted`` is the transaction that an abort marker in ``data`` ends. Raises OSError, and UndoError
        if a part was written and could not be undone.
        """
        before = (self.size, self.index.count, self.time_index.count, self._bytes_since_entry)
        newest = self.max_timestamp
        try:
            self.file.write(self.size, data)
            for header in headers:
                self.note_batch(header, self.size, interval_bytes)
                self.size += header.length + _PREFIX
            if aborted is not None:
                self.txn_index.append(aborted)
        except OSError as error:
            self._max_timestamp = newest
            self._undo_append(before, len(self.txn_index.entries) if aborted is not None else None, error)
            raise

    def note_batch(self, header: BatchHeader, position: int, interval_bytes: int) -> None:
        """Update the indexes and the newest timestamp for a batch at ``position``."""
        newest_ms, _ = self._max_timestamp or self.max_timestamp
        if header.max_timestamp_ms > newest_ms:
            self._max_timestamp = (header.max_timestamp_ms, header.last_offset)
        if self._bytes_since_entry > interval_bytes:
            self.index.append(header.last_offset, position)
            self.time_index.append(*self.max_timestamp)
            self._bytes_since_entry = 0
        self._bytes_since_entry += header.length + _PREFIX

    def seal(self) -> None:
        """End the time index with the segment's newest time."""
        self.time_index.append(*self.max_timestamp)

    def sync(self) -> None:
        """Return once the segment is on the disk."""
        self.file.sync()
        self.index.file.sync()
        self.time_index.file.sync()
        if self.txn_index.file is not None:
            self.txn_index.file.sync()

    def truncate(self, size: int) -> None:
        """Cut the .log; the indexes are the caller's to rebuild."""
        self.file.truncate(size)
        self.size = size
        self._read_up_to = -1, 0

    def cut(self, position: int, next_offset: int) -> None:
        """Drop the batches from ``position`` on, whose offsets are ``next_offset`` and more, and what the
        indexes have of them.
        """
        self.truncate(position)
        self.index.truncate(self.index.count_below(position))
        self.time_index.truncate(self.time_index.count_below(next_offset))
        if self.txn_index.entries and self.txn_index.entries[-1].last_offset >= next_offset:
            self.txn_index.truncate(sum(each.last_offset < next_offset for each in self.txn_index.entries))
        start = self._indexed_position(self.index.last())
        self._bytes_since_entry = position - start
        if not position:
            self._first_timestamp_ms = None
        self._max_timestamp = self.time_index.last()
        for _, header in self.headers(start):
            if header.max_timestamp_ms > self._max_timestamp[0]:
                self._max_timestamp = (header.max_timestamp_ms, header.last_offset)

    def begin_indexes(self) -> None:
        """Empty the indexes; ``note_batch`` fills them again and ``end_indexes`` finishes them."""
        self.damage = []
        self.index.reset()
        self.time_index.reset()
        self._bytes_since_entry = 0
        self._max_timestamp = self.time_index.last()
        self._first_timestamp_ms = None

    def end_indexes(self) -> None:
        """Complete the indexes and cut off what was reserved, as no batch follows."""
        self.seal()
        self.index.trim()
        self.time_index.trim()

    # -- files -----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the files; the next use opens them again."""
        for file in (self.file, self.index.file, self.time_index.file, self.txn_index.file):
            if file is not None:
                file.close()

    def mark_deleted(self) -> list[str]:
        """Close the files and rename them to ``.deleted``, the .log first; return the new paths."""
        self.close()
        return self.rename_files(DELETED, SEGMENT_SUFFIXES)

    def rename_files(self, tail: str, suffixes: Sequence[str]) -> list[str]:
        """Rename the existing files to another tail, in the order of ``suffixes``; return the new paths.

        This object keeps the old names.
        """
        renamed = []
        for suffix in suffixes:
            if self._fs.exists(self._path_of(suffix)):
                renamed.append(self._stem + suffix + tail)
                self._fs.rename(self._path_of(suffix), renamed[-1])
        return renamed

    def use_tail(self, tail: str) -> None:
        """Continue with the files of that tail, to which these were renamed."""
        self.close()
        self._tail = tail
        self.file = self._fs.file(self._path_of(LOG))
        self.index.file = self._fs.file(self._path_of(INDEX))
        self.time_index.file = self._fs.file(self._path_of(TIME_INDEX))
        self.txn_index.use(self._fs.file(self._path_of(TXN_INDEX)))

    # -- inside ----------------------------------------------------------------------------------------------

    def _path_of(self, suffix: str) -> str:
        return self._stem + suffix + self._tail

    def _header_at(self, data: bytes, at: int, position: int) -> BatchHeader:
        try:
            header = parse_batch_header(data, at)
        except CorruptBatchError as error:
            raise CorruptLogError(self.file.path, position + at, str(error)) from error
        if position + at + header.size > self.size:
            raise CorruptLogError(self.file.path, position + at, f"batch of {header.size} bytes is cut short")
        return header

    def _remove_files(self, cause: OSError) -> None:
        self.close()
        try:
            for file in (self.file, self.index.file, self.time_index.file):
                self._fs.remove(file.path)
        except OSError as error:
            raise self._undo_error(error, cause) from cause

    def _undo_error(self, error: OSError, cause: OSError) -> UndoError:
        return UndoError(error.errno, f"{error.strerror}, while undoing: {cause}", self.file.path)

    def _undo_append(
        self, before: tuple[int, int, int, int], aborted_count: int | None, cause: OSError
    ) -> None:
        size, index_count, time_count, self._bytes_since_entry = before
        try:
            self.truncate(size)
            self.index.truncate(index_count)
            self.time_index.truncate(time_count)
            if aborted_count is not None:
                self.txn_index.truncate(aborted_count)
        except OSError as error:
            self.size = size
            raise self._undo_error(error, cause) from cause
