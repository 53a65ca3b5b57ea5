"""A file system that changes nothing, for ``verify_folder`` and ``dump_file``."""

from __future__ import annotations

import errno
import os
from typing import NoReturn

from .._files import File, OsFileSystem


def _refuse_change(changed: _ReadOnlyFile | ReadOnlyFiles, *arguments: object, **_: object) -> NoReturn:
    path = changed.path if isinstance(changed, _ReadOnlyFile) else arguments[0]
    raise OSError(errno.EROFS, "this is opened for reading only", path)


class _ReadOnlyFile:
    """A file of the size that it had at first use: later appends are not seen."""

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

    write = truncate = sync = _refuse_change

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


class ReadOnlyFiles(OsFileSystem):
    """The operating system's files, without a way to change them."""

    __slots__ = ()

    def file(self, path: str) -> File:
        """Return a file that cannot be written."""
        return _ReadOnlyFile(path)

    make_dirs = rename = remove = remove_tree = sync_dir = lock = _refuse_change


READ_ONLY = ReadOnlyFiles()


def is_locked(path: str) -> bool:
    """Return whether a process holds a lock on a file, according to the kernel's list of locks (Linux only).

    Trying to take the lock would release a lock that this process may hold.
    """
    try:
        inode = os.stat(path).st_ino
        with open("/proc/locks", encoding="ascii", errors="replace") as locks:
            return any(line.split()[5].rpartition(":")[2] == str(inode) for line in locks if "->" not in line)
    except (OSError, IndexError):
        return False
