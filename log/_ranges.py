"""Ranges of a log's files, for those who pass records on without reading them."""

from __future__ import annotations

import errno
import os

from ._descriptors import Descriptor


class FileRange:
    """``len`` bytes of a file from ``position`` on.

    It keeps the file open while it is used: the bytes stay as they are however the log goes on, since what a
    log has shown is never written again, and a file that is removed or replaced lives as long as somebody has
    it open.
    """

    __slots__ = ("_descriptor", "_size", "position")

    def __init__(self, descriptor: Descriptor, position: int, size: int) -> None:
        self._descriptor = descriptor
        self._size = size
        self.position = position

    def __repr__(self) -> str:
        return f"FileRange({self.position}, {self._size} bytes)"

    def __len__(self) -> int:
        return self._size

    def fileno(self) -> int:
        return self._descriptor.number

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from ``start`` up to ``end``, which is that of the range unless told. Raises OSError."""
        size = (self._size if end is None else end) - start
        data = os.pread(self.fileno(), size, self.position + start)
        while len(data) < size:
            more = os.pread(self.fileno(), size - len(data), self.position + start + len(data))
            if not more:
                raise OSError(errno.EIO, f"the file ends before {self.position + start + size}")
            data += more
        return data
