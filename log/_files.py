"""The only interface between the log and the operating system: every file access goes through it.

``OsFileSystem`` is the real one. Tests replace it to lose writes, run out of space or stop in the middle of a
write.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from typing import Protocol

from ._descriptors import OPEN_FILES, Descriptor, is_reserved
from ._disk_calls import DISK_CALLS
from ._errors import SyncError


class FileRange:
    """``len`` bytes of a file from ``position`` on.

    It keeps the file open while in use: its bytes never change, since a log never overwrites what readers
    have seen, and a removed or replaced file exists as long as it is open.
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
        """The file's descriptor, for sendfile."""
        return self._descriptor.number

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """Read the bytes from ``start`` up to ``end``, by default to the end of the range. Raises OSError."""
        size = (self._size if end is None else end) - start
        data = os.pread(self.fileno(), size, self.position + start)
        while len(data) < size:
            more = os.pread(self.fileno(), size - len(data), self.position + start + len(data))
            if not more:
                raise OSError(errno.EIO, f"the file ends before {self.position + start + size}")
            data += more
        return data


#: Mode of created files and folders: for the owner only.
FILE_MODE = 0o600
FOLDER_MODE = 0o700


class File(Protocol):
    """One file, addressed by position. Every method raises OSError when the disk fails."""

    path: str

    def size(self) -> int:
        """Return the file's size in bytes; 0 if it does not exist."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Read ``size`` bytes; fewer only at the end of the file. FileNotFoundError if there is no file."""
        ...

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of ``data``, creating the file if necessary. When it raises, any part may be written."""
        ...

    def truncate(self, size: int) -> None:
        """Give the file this size, creating it if necessary."""
        ...

    def sync(self) -> None:
        """Sync everything written to disk."""
        ...

    def close(self) -> None:
        """Close the descriptor; the next use opens the file again."""
        ...


class Lock(Protocol):
    """A lock that is held until it is released or the process ends."""

    def release(self) -> None:
        """Give the lock up. Safe to call again."""


class FileSystem(Protocol):
    """Folders and whole files. Every method raises OSError when the disk fails."""

    def file(self, path: str) -> File:
        """Return a handle for a file, which is opened at its first use."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder."""

    def list(self, path: str) -> list[str]:
        """Return the names in a folder, in any order."""
        ...

    def make_dirs(self, path: str) -> None:
        """Make a folder and those above it, unless it exists."""

    def rename(self, old: str, new: str) -> None:
        """Rename, replacing a file of the new name."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all in it; of a link, the link."""

    def sync_dir(self, path: str) -> None:
        """Make renames, creations and removals in a folder durable."""
        ...

    def lock(self, path: str) -> Lock | None:
        """Take the lock on a file; None if somebody else holds it."""
        ...


class OsFile:
    """A file of the operating system, opened when it is used and has no descriptor."""

    __slots__ = ("__weakref__", "descriptor", "path", "used")

    def __init__(self, path: str) -> None:
        self.path = path
        self.used = False
        self.descriptor: Descriptor | None = None

    def __repr__(self) -> str:
        return f"OsFile({self.path!r}, {'closed' if self.descriptor is None else 'open'})"

    def size(self) -> int:
        """See File."""
        opened = self.descriptor
        if opened is not None:
            return os.fstat(opened.number).st_size
        try:
            return os.stat(self.path).st_size
        except FileNotFoundError:
            return 0

    def read(self, position: int, size: int) -> bytes:
        """See File."""
        # holding the descriptor keeps it open: another thread may need one meanwhile
        opened = self._open_descriptor()
        data = os.pread(opened.number, size, position)
        # Linux reads at most 2 GiB at a time, and a signal may interrupt any read
        while 0 < len(data) < size:
            more = os.pread(opened.number, size - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        """See File."""
        opened = self._open_descriptor(os.O_CREAT)
        DISK_CALLS.begin("write", self.path)
        try:
            written = os.pwrite(opened.number, data, position)
            while written < len(data):
                more = os.pwrite(opened.number, memoryview(data)[written:], position + written)
                if more == 0:
                    raise OSError(errno.EIO, "nothing could be written", self.path)
                written += more
        finally:
            DISK_CALLS.end()

    def truncate(self, size: int) -> None:
        """See File."""
        opened = self._open_descriptor(os.O_CREAT)
        os.ftruncate(opened.number, size)

    def range(self, position: int, size: int) -> FileRange | None:
        """Return a range of the file that is read later, if possible by the operating system (sendfile).

        A slow client keeps its descriptor open, whoever else may need one; so None if only one of those is
        free that connections leave to files.
        """
        opened = self._open_descriptor()
        if is_reserved(opened.number):
            del opened
            self.close()
            opened = self._open_descriptor()  # with the lowest free number
            if is_reserved(opened.number):
                return None
        return FileRange(opened, position, size)

    def sync(self) -> None:
        """See File."""
        opened = self._open_descriptor()
        DISK_CALLS.begin("flush", self.path)
        try:
            os.fsync(opened.number)
        finally:
            DISK_CALLS.end()

    def close(self) -> None:
        """See File."""
        if self.descriptor is not None:
            OPEN_FILES.close(self)

    def _open_descriptor(self, create: int = 0) -> Descriptor:
        opened = self.descriptor
        if opened is None:
            return OPEN_FILES.open(self, self.path, os.O_RDWR | os.O_CLOEXEC | create, FILE_MODE)
        self.used = True
        return opened


class OsLock:
    """A POSIX record lock, the kind that Java's FileChannel takes, so that each sees the other's.

    Such a lock does not exclude two openers in one process, so the locked inodes are remembered.
    """

    __slots__ = ("_descriptor", "_inode")
    _held: set[tuple[int, int]] = set()

    def __init__(self, descriptor: int, inode: tuple[int, int]) -> None:
        self._descriptor = descriptor
        self._inode = inode

    @classmethod
    def take(cls, path: str) -> OsLock | None:
        """Take the lock; None if this process or another one holds it."""
        try:
            stat = os.stat(path)
            # closing any descriptor of the file would give up the lock that this process has on it
            if (stat.st_dev, stat.st_ino) in cls._held:
                return None
        except FileNotFoundError:
            pass
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return None
            raise
        stat = os.fstat(descriptor)
        inode = (stat.st_dev, stat.st_ino)
        cls._held.add(inode)
        return cls(descriptor, inode)

    def release(self) -> None:
        """See Lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._held.discard(self._inode)
            self._descriptor = -1


class OsFileSystem:
    """The operating system's file system."""

    __slots__ = ()

    def file(self, path: str) -> File:
        """See FileSystem."""
        return OsFile(path)

    def exists(self, path: str) -> bool:
        """See FileSystem."""
        return os.path.exists(path)

    def list(self, path: str) -> list[str]:
        """See FileSystem."""
        return os.listdir(path)

    def make_dirs(self, path: str) -> None:
        """See FileSystem."""
        os.makedirs(path, FOLDER_MODE, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        """See FileSystem."""
        os.replace(old, new)

    def remove(self, path: str) -> None:
        """See FileSystem."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)

    def remove_tree(self, path: str) -> None:
        """See FileSystem."""
        # what a link points to is somebody else's
        if os.path.islink(path):
            os.remove(path)
        else:
            shutil.rmtree(path)

    def sync_dir(self, path: str) -> None:
        """See FileSystem."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        DISK_CALLS.begin("flush", path)
        try:
            os.fsync(descriptor)
        finally:
            DISK_CALLS.end()
            os.close(descriptor)

    def lock(self, path: str) -> Lock | None:
        """See FileSystem."""
        return OsLock.take(path)


#: The file system that logs use by default.
OS_FILES: FileSystem = OsFileSystem()


def read_whole(fs: FileSystem, path: str) -> bytes | None:
    """Read a whole small file; None if it does not exist."""
    if not fs.exists(path):
        return None
    file = fs.file(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def write_whole(
    fs: FileSystem, path: str, data: bytes, *, sync: bool = True, sync_folder: bool = True
) -> None:
    """Replace a small file so that a crash leaves either the old content or the new: write a temporary file,
    sync it, rename it.

    Without ``sync`` this holds for a crash of the process only; a power loss may tear the new content.
    """
    aside = path + ".tmp"
    fs.remove(aside)
    file = fs.file(aside)
    try:
        file.write(0, data)
        if sync:
            file.sync()
    finally:
        file.close()
    fs.rename(aside, path)
    if sync_folder:
        sync_names(fs, os.path.dirname(path))


def make_durable_dirs(fs: FileSystem, folder: str) -> None:
    """Create a folder and its parents durably: even synced files are lost if the name of their folder is. A
    folder whose name cannot be synced is removed, so that the next attempt creates it again.
    """
    if fs.exists(folder):
        return
    above = os.path.dirname(folder)
    make_durable_dirs(fs, above)
    fs.make_dirs(folder)
    try:
        fs.sync_dir(above)
    except OSError:
        with contextlib.suppress(OSError):
            fs.remove_tree(folder)
        raise


def sync_names(fs: FileSystem, folder: str) -> None:
    """Make the names in a folder durable. Raises SyncError."""
    try:
        fs.sync_dir(folder)
    except OSError as error:
        raise SyncError(error.errno, error.strerror, folder) from error
