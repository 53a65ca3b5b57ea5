"""A file system that fails when told to, over the real one."""

from __future__ import annotations

import errno
import os

from kohort.log import OS_FILES, File, FileSystem, Lock


class FaultyFiles:
    """Counts the operations that change the disk and lets the one with the number ``fail_at`` raise.

    ``sticky``: every later one fails too. A failing write leaves half of its bytes behind.
    """

    def __init__(self, error: int = errno.ENOSPC) -> None:
        self.fail_at: int | None = None
        self.sticky = False
        self.count = 0
        self.failed: list[str] = []
        self._error = error

    def heal(self) -> None:
        self.fail_at = None
        self.sticky = False

    def arm(self, number: int, *, sticky: bool = False) -> None:
        """Let the ``number``-th operation from now on fail, counted from 1."""
        self.count = 0
        self.fail_at = number
        self.sticky = sticky

    def due(self, what: str) -> bool:
        self.count += 1
        if self.fail_at is None:
            return False
        hit = self.count == self.fail_at or (self.sticky and self.count > self.fail_at)
        if hit:
            self.failed.append(what)
        return hit

    def check(self, what: str) -> None:
        if self.due(what):
            raise self.error(what)

    def error(self, what: str) -> OSError:
        return OSError(self._error, os.strerror(self._error), what)

    def file(self, path: str) -> File:
        return _FaultyFile(self, OS_FILES.file(path))

    def exists(self, path: str) -> bool:
        return OS_FILES.exists(path)

    def list(self, path: str) -> list[str]:
        return OS_FILES.list(path)

    def make_dirs(self, path: str) -> None:
        self.check(f"make {path}")
        OS_FILES.make_dirs(path)

    def rename(self, old: str, new: str) -> None:
        self.check(f"rename {old}")
        OS_FILES.rename(old, new)

    def remove(self, path: str) -> None:
        OS_FILES.remove(path)

    def remove_tree(self, path: str) -> None:
        OS_FILES.remove_tree(path)

    def sync_dir(self, path: str) -> None:
        if self._error != errno.ENOSPC:  # the room for a name was taken when it was made
            self.check(f"sync {path}")
        OS_FILES.sync_dir(path)

    def lock(self, path: str) -> Lock | None:
        return OS_FILES.lock(path)


class _FaultyFile:
    def __init__(self, fs: FaultyFiles, file: File) -> None:
        self._fs = fs
        self._file = file
        self.path = file.path

    def size(self) -> int:
        return self._file.size()

    def read(self, position: int, size: int) -> bytes:
        return self._file.read(position, size)

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        what = f"write {self.path}"
        if self._fs.due(what):
            self._file.write(position, bytes(data[: len(data) // 2]))
            raise self._fs.error(what)
        self._file.write(position, data)

    def truncate(self, size: int) -> None:
        if size >= self._file.size():  # making a file takes space, cutting one does not
            self._fs.check(f"truncate {self.path}")
        elif self._fs.sticky:
            self._fs.check(f"cut {self.path}")
        self._file.truncate(size)

    def sync(self) -> None:
        self._fs.check(f"sync {self.path}")
        self._file.sync()

    def close(self) -> None:
        self._file.close()


def _is_a_file_system(files: FaultyFiles) -> FileSystem:
    return files
