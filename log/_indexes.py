"""The indexes of a segment: offset to position, time to offset, aborted transactions.

An index is a file of entries of one size, as Apache Kafka writes it. Numbers are big-endian:

=======  ======  =====  =========================================================
index    offset  type   field
=======  ======  =====  =========================================================
offset   0       int32  last offset of a batch, minus the segment's base offset
         4       int32  position of that batch in the .log
time     0       int64  largest timestamp so far, in milliseconds
         8       int32  last offset of its batch, minus the segment's base offset
aborted  0       int16  version 0
         2       int64  producer id
         10      int64  first offset of the transaction
         18      int64  last offset: the marker, which lies in the segment
         26      int64  last stable offset once the marker was written
=======  ======  =====  =========================================================

The offset index has an entry every ``index.interval.bytes``. The time index has one with each of these, at
the roll and at the close, so that the last one has the segment's newest timestamp. The entries of both are in
rising order. Look-ups search the file itself, so these indexes take no memory.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right

from ..protocol.named_tuples import NamedTuple
from ._files import File


class EntryFile:
    """A file of fixed-size entries, appended one at a time: the common part of offset and time index.

    A killed Apache Kafka leaves the file preallocated and filled with zeros: an entry of zeros does not
    count.
    """

    __slots__ = ("count", "file")
    ENTRY: struct.Struct

    def __init__(self, file: File) -> None:
        self.file = file
        self.count = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.file.path!r}, {self.count} entries)"

    def open(self) -> None:
        """Count the entries: all up to the zeros at the end."""
        size = self.file.size() // self.ENTRY.size
        if size and not any(self.entry(size - 1)):
            size = bisect_left(range(size), True, key=lambda i: not any(self.entry(i)))
        self.count = size

    def entry(self, number: int) -> tuple[int, int]:
        """Read the entry with this number, from 0."""
        first, second = self.ENTRY.unpack(self.file.read(number * self.ENTRY.size, self.ENTRY.size))
        return first, second

    def add(self, first: int, second: int) -> None:
        """Append an entry."""
        self.file.write(self.count * self.ENTRY.size, self.ENTRY.pack(first, second))
        self.count += 1

    def reset(self) -> None:
        """Start over: later entries overwrite those in the file, and ``trim`` removes the remaining ones."""
        self.count = 0

    def trim(self) -> None:
        """Truncate the file after the last entry. Truncating is slow, so a file that ends there is left
        alone.
        """
        size = self.count * self.ENTRY.size
        if not size or self.file.size() != size:
            self.file.truncate(size)

    def truncate(self, count: int) -> None:
        """Keep the first ``count`` entries, and no zeros after them."""
        self.count = count
        self.file.truncate(count * self.ENTRY.size)

    def is_full(self, max_bytes: int) -> bool:
        """Return whether ``max_bytes`` (``segment.index.bytes``) only has room for the entry at the close."""
        return self.count >= max_bytes // self.ENTRY.size - 1


class OffsetIndex(EntryFile):
    """Maps the last offset of a batch to the batch's position. Offsets are absolute here."""

    __slots__ = ("_base",)
    ENTRY = struct.Struct(">ii")

    def __init__(self, file: File, base_offset: int) -> None:
        super().__init__(file)
        self._base = base_offset

    def append(self, last_offset: int, position: int) -> None:
        """Add the position in the segment of the batch that ends at an offset."""
        self.add(last_offset - self._base, position)

    def last(self) -> tuple[int, int] | None:
        """Offset and position of the last entry."""
        return self._absolute_entry(self.count - 1)

    def entry_for(self, offset: int) -> tuple[int, int] | None:
        """Offset and position of the last entry at or before ``offset``, at most an interval away."""
        return self._absolute_entry(self._count_up_to(offset - self._base, 0) - 1)

    def entry_before(self, position: int) -> tuple[int, int] | None:
        """Offset and position of the last entry whose batch starts at or before ``position``."""
        return self._absolute_entry(self._count_up_to(position, 1) - 1)

    def count_below(self, position: int) -> int:
        """Return how many entries are of batches before ``position``."""
        return bisect_left(range(self.count), position, key=lambda i: self.entry(i)[1])

    def fits(self, log_size: int) -> bool:
        """Return whether the entries can belong to a log of that size, judging by the last one."""
        if self.file.size() % self.ENTRY.size:
            return False
        last = self.last()
        return last is None or (last[0] >= self._base and 0 < last[1] < log_size)

    def _count_up_to(self, value: int, column: int) -> int:
        """Return how many entries have at most this value in a column."""
        count = self.count
        # most readers are at the end
        if count and self.entry(count - 1)[column] <= value:
            return count
        return bisect_right(range(count), value, key=lambda i: self.entry(i)[column])

    def _absolute_entry(self, number: int) -> tuple[int, int] | None:
        if number < 0:
            return None
        relative, position = self.entry(number)
        return self._base + relative, position


#: Timestamp of a segment in which no record has one.
NO_TIMESTAMP = -1


class TimeIndex(EntryFile):
    """Maps timestamps to offsets; offsets are absolute here."""

    __slots__ = ("_base", "_last_timestamp_ms")
    ENTRY = struct.Struct(">qi")

    def __init__(self, file: File, base_offset: int) -> None:
        super().__init__(file)
        self._base = base_offset
        self._last_timestamp_ms = NO_TIMESTAMP

    def open(self) -> None:
        """See EntryFile."""
        super().open()
        self._last_timestamp_ms = self.last()[0]

    def append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry, unless its timestamp or offset is not above the last one's."""
        if timestamp_ms > self._last_timestamp_ms:
            self.add(timestamp_ms, offset - self._base)
            self._last_timestamp_ms = timestamp_ms

    def reset(self) -> None:
        """See EntryFile."""
        super().reset()
        self._last_timestamp_ms = NO_TIMESTAMP

    def truncate(self, count: int) -> None:
        """See EntryFile."""
        super().truncate(count)
        self._last_timestamp_ms = self.last()[0]

    def last(self) -> tuple[int, int]:
        """Newest timestamp and the offset that has it; (NO_TIMESTAMP, base offset) when empty."""
        return self._entry_at(self.count - 1)

    def offset_before(self, timestamp_ms: int) -> int:
        """Return the largest offset that is known not to be above the first record at ``timestamp_ms`` or
        later.
        """
        found = bisect_right(range(self.count), timestamp_ms, key=lambda i: self.entry(i)[0])
        return self._entry_at(found - 1)[1]

    def count_below(self, offset: int) -> int:
        """Return how many entries are of batches that end before ``offset``."""
        return bisect_left(range(self.count), offset - self._base, key=lambda i: self.entry(i)[1])

    def fits(self, next_offset: int) -> bool:
        """Return whether the entries can belong to a segment that ends before ``next_offset``."""
        if self.file.size() % self.ENTRY.size:
            return False
        return self._base <= self.last()[1] <= max(next_offset - 1, self._base)

    def _entry_at(self, number: int) -> tuple[int, int]:
        if number < 0:
            return NO_TIMESTAMP, self._base
        timestamp_ms, relative = self.entry(number)
        return timestamp_ms, self._base + relative


_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction of a producer. Offsets are inclusive."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    """The aborted transactions of one segment, in the order of their markers; they are few, so they are kept
    in memory.

    The file is created with the first entry.
    """

    __slots__ = ("_file", "entries")

    def __init__(self, file: File) -> None:
        self._file = file
        self.entries: list[AbortedTransaction] = []

    def __repr__(self) -> str:
        return f"TxnIndex({self._file.path!r}, {len(self.entries)} aborted)"

    @property
    def file(self) -> File | None:
        """The file, if there is one."""
        return self._file if self.entries else None

    def use(self, file: File) -> None:
        """Continue with the file under another name."""
        self._file = file

    def open(self) -> bool:
        """Read the entries; return False if the file is malformed or the entries are impossible."""
        size = self._file.size()
        data = self._file.read(0, size) if size else b""
        if len(data) % _ENTRY.size:
            return False
        raw = list(_ENTRY.iter_unpack(data))
        self.entries = [AbortedTransaction(*fields) for version, *fields in raw if version == _VERSION]
        return len(self.entries) == len(raw) and all(_fits_entry(entry) for entry in self.entries)

    def append(self, aborted: AbortedTransaction) -> None:
        """Add an aborted transaction."""
        self._file.write(len(self.entries) * _ENTRY.size, _ENTRY.pack(_VERSION, *aborted))
        self.entries.append(aborted)

    def truncate(self, count: int) -> None:
        """Keep the first ``count`` entries."""
        del self.entries[count:]
        self._file.truncate(count * _ENTRY.size)


def _fits_entry(entry: AbortedTransaction) -> bool:
    return 0 <= entry.first_offset <= entry.last_offset and entry.last_stable_offset <= entry.last_offset + 1
