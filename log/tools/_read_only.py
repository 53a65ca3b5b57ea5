"""A file system that changes nothing, for ``verify_folder`` and ``dump_file``."""

from __future__ import annotations

import errno
import os
from typing import NoReturn

from .._files import File, Lock, OsFileSystem


def _refuse(path: str) -> NoReturn:
    raise OSError(errno.EROFS, "this is opened for reading alone", path)


class _ReadOnlyFile:
    """A file as long as it was at the first look: what is appended later is not seen."""

    __slots__ = ("_descriptor", "_size", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = -1
        self._size = -1

    def size(self) -> int:
        if self._size < 0:
            try:
                self._size = os.stat(self.path).st_size
            except FileNotFoundError:
                self._size = 0
        return self._size

    def read(self, position: int, size: int) -> bytes:
        if self._descriptor < 0:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._descriptor, max(min(size, self.size() - position), 0), position)

    def write(self, _position: int, _data: bytes | bytearray | memoryview) -> None:
        _refuse(self.path)

    def truncate(self, _size: int) -> None:
        _refuse(self.path)

    def sync(self) -> None:
        _refuse(self.path)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


class ReadOnlyFiles(OsFileSystem):
    """The operating system's, without a way to change anything."""

    __slots__ = ()

    def file(self, path: str) -> File:
        return _ReadOnlyFile(path)

    def make_dirs(self, path: str) -> None:
        _refuse(path)

    def rename(self, old: str, new: str) -> None:  # noqa: ARG002
        _refuse(old)

    def remove(self, path: str) -> None:
        _refuse(path)

    def remove_tree(self, path: str) -> None:
        _refuse(path)

    def sync_dir(self, path: str) -> None:
        _refuse(path)

    def lock(self, path: str) -> Lock | None:
        _refuse(path)


READ_ONLY = ReadOnlyFiles()


def is_locked(path: str) -> bool:
    """Return whether some process holds a lock on a file, as far as the kernel's list tells (Linux).

    Trying to take the lock would give up the one that this very process may have.
    """
    try:
        inode = os.stat(path).st_ino
        with open("/proc/locks", encoding="ascii", errors="replace") as locks:
            return any(line.split()[5].rpartition(":")[2] == str(inode) for line in locks if "->" not in line)
    except (OSError, IndexError):
        return False
