"""Transaction index: the aborted transactions whose marker lies in a segment.

An entry is 34 bytes: int16 version 0, int64 producer id, int64 first offset, int64 last offset (the marker),
int64 last stable offset once the marker was written.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ._files import File

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction of a producer. Offsets are inclusive."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    """The aborted transactions of one segment, in the order of their markers; kept in memory: they are few.

    The file is made with the first entry.
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
        """Go on with the file under another name."""
        self._file = file

    def open(self) -> bool:
        """Read the entries; False if the file is not made of them, or they cannot be those of a log."""
        size = self._file.size()
        data = self._file.read(0, size) if size else b""
        if len(data) % _ENTRY.size:
            return False
        raw = list(_ENTRY.iter_unpack(data))
        self.entries = [AbortedTransaction(*fields) for version, *fields in raw if version == _VERSION]
        return len(self.entries) == len(raw) and all(_fits(entry) for entry in self.entries)

    def append(self, aborted: AbortedTransaction) -> None:
        self._file.write(len(self.entries) * _ENTRY.size, _ENTRY.pack(_VERSION, *aborted))
        self.entries.append(aborted)

    def truncate(self, count: int) -> None:
        """Keep the first ``count`` entries."""
        del self.entries[count:]
        self._file.truncate(count * _ENTRY.size)


def _fits(entry: AbortedTransaction) -> bool:
    return 0 <= entry.first_offset <= entry.last_offset and entry.last_stable_offset <= entry.last_offset + 1
