"""Time index: by which offset a segment had seen which time.

An entry is 12 bytes: int64 largest timestamp so far, in milliseconds, int32 last offset of the batch that has
it less the segment's base offset. Timestamps rise from entry to entry. One is made with each entry of the
offset index, and one at the roll and at the close, so that the last one tells the segment's newest time.
"""

from __future__ import annotations

import struct
from bisect import bisect_right

from ._files import File
from ._index import EntryFile

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
        super().open()
        self._last_timestamp_ms = self.last()[0]

    def append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry, unless it would not rise."""
        if timestamp_ms > self._last_timestamp_ms:
            self.add(timestamp_ms, offset - self._base)
            self._last_timestamp_ms = timestamp_ms

    def reset(self) -> None:
        super().reset()
        self._last_timestamp_ms = NO_TIMESTAMP

    def truncate(self, count: int) -> None:
        super().truncate(count)
        self._last_timestamp_ms = self.last()[0]

    def last(self) -> tuple[int, int]:
        """Newest timestamp and the offset that has it; (NO_TIMESTAMP, base offset) when empty."""
        return self._at(self.count - 1)

    def offset_before(self, timestamp_ms: int) -> int:
        """The largest offset known to lie before every record of ``timestamp_ms`` or later, or to be one."""
        found = bisect_right(range(self.count), timestamp_ms, key=lambda i: self.entry(i)[0])
        return self._at(found - 1)[1]

    def fits(self, next_offset: int) -> bool:
        """Whether the entries can belong to a segment that ends before ``next_offset``."""
        if self.file.size() % self.ENTRY.size:
            return False
        return self._base <= self.last()[1] <= max(next_offset - 1, self._base)

    def _at(self, number: int) -> tuple[int, int]:
        if number < 0:
            return NO_TIMESTAMP, self._base
        timestamp_ms, relative = self.entry(number)
        return timestamp_ms, self._base + relative
