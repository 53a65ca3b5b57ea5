"""Ranges of a log's files, for those who pass records on without reading them."""

from __future__ import annotations

import errno
import os


class FileRange:
    """``len`` bytes of a file from ``position`` on.

    It has a descriptor of its own, given back when it is no longer used: the bytes stay as they are however
    the log goes on, since what a log has shown is never written again, and a file that is removed or replaced
    lives as long as somebody has it open.
    """

    __slots__ = ("_descriptor", "_size", "position")

    def __init__(self, descriptor: int, position: int, size: int) -> None:
        """A range of the file behind ``descriptor``, which remains the caller's. Raises OSError."""
        self._descriptor = -1
        self._descriptor = os.dup(descriptor)
        self._size = size
        self.position = position

    def __repr__(self) -> str:
        return f"FileRange({self.position}, {self._size} bytes)"

    def __len__(self) -> int:
        return self._size

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def read(self, start: int = 0) -> bytes:
        """The bytes from ``start`` on. Raises OSError."""
        data = os.pread(self._descriptor, self._size - start, self.position + start)
        while len(data) < self._size - start:
            at = self.position + start + len(data)
            more = os.pread(self._descriptor, self._size - start - len(data), at)
            if not more:
                raise OSError(errno.EIO, f"the file ends before {self.position + self._size}")
            data += more
        return data
