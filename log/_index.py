"""Offset index: where in its .log a segment's batches lie, an entry every ``index.interval.bytes``.

An entry is 8 bytes: int32 last offset of a batch less the segment's base offset, int32 position of that
batch. Both rise from entry to entry. Look-ups search the file itself, so an index takes no memory.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right

from ._files import File


class EntryFile:
    """A file of fixed-size entries, appended one at a time; what offset and time index have in common.

    A Kafka that was killed leaves the file preallocated and filled with zeros: an entry of zeros is no entry.
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
        first, second = self.ENTRY.unpack(self.file.read(number * self.ENTRY.size, self.ENTRY.size))
        return first, second

    def add(self, first: int, second: int) -> None:
        self.file.write(self.count * self.ENTRY.size, self.ENTRY.pack(first, second))
        self.count += 1

    def reset(self) -> None:
        """Begin again; the entries in the file are overwritten, and ``trim`` removes what is left of them."""
        self.count = 0

    def trim(self) -> None:
        """Let the file end with the last entry. Cutting a file is slow: one that ends there is left alone."""
        size = self.count * self.ENTRY.size
        if not size or self.file.size() != size:
            self.file.truncate(size)

    def truncate(self, count: int) -> None:
        """Keep the first ``count`` entries, and no zeros behind them."""
        self.count = count
        self.file.truncate(count * self.ENTRY.size)

    def is_full(self, max_bytes: int) -> bool:
        """Whether ``segment.index.bytes`` leaves no room for one more entry and the last one at the close."""
        return self.count >= max_bytes // self.ENTRY.size - 1


class OffsetIndex(EntryFile):
    """Maps the last offset of a batch to the batch's position. Offsets are absolute here."""

    __slots__ = ("_base",)
    ENTRY = struct.Struct(">ii")

    def __init__(self, file: File, base_offset: int) -> None:
        super().__init__(file)
        self._base = base_offset

    def append(self, last_offset: int, position: int) -> None:
        self.add(last_offset - self._base, position)

    def last(self) -> tuple[int, int] | None:
        """Offset and position of the last entry."""
        return self._absolute(self.count - 1)

    def entry_for(self, offset: int) -> tuple[int, int] | None:
        """Offset and position of the last entry at or before ``offset``: its batch is at most an interval
        before the one that holds it.
        """
        relative = offset - self._base
        return self._absolute(bisect_right(range(self.count), relative, key=lambda i: self.entry(i)[0]) - 1)

    def entry_before(self, position: int) -> tuple[int, int] | None:
        """Offset and position of the last entry whose batch starts at or before ``position``."""
        return self._absolute(bisect_right(range(self.count), position, key=lambda i: self.entry(i)[1]) - 1)

    def fits(self, log_size: int) -> bool:
        """Whether the entries can belong to a log of that size: the last one is looked at."""
        if self.file.size() % self.ENTRY.size:
            return False
        last = self.last()
        return last is None or (last[0] >= self._base and 0 < last[1] < log_size)

    def _absolute(self, number: int) -> tuple[int, int] | None:
        if number < 0:
            return None
        relative, position = self.entry(number)
        return self._base + relative, position
