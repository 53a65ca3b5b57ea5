"""A disk that fails on command: a file system in memory for tests of crash safety.

``FaultyFileSystem`` has the methods of ``kohort.log.FileSystem``. It can stop the program at any operation or
in the middle of a write, fail any operation with an error, run full, and return the disk as a crash would
leave it. Everything random comes from a seed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from ._disk import DiskTree, FileNode, FolderNode, absolute, error

#: Operations that change the disk, which faults count; ``read`` is the only other one. ``extend`` and ``cut``
#: are both truncate.
CHANGES: frozenset[str] = frozenset(
    ("write", "extend", "cut", "sync", "rename", "remove", "make_dirs", "remove_tree", "sync_dir")
)

#: Operations that need space, and so can fail with ENOSPC.
TAKES_SPACE: frozenset[str] = frozenset(("write", "extend", "sync", "rename", "make_dirs"))


class SimulatedCrash(BaseException):
    """The machine stopped here; the file system refuses everything from now on.

    Not a subclass of Exception, so that no error handling continues after it.
    """


class DiskOperation(NamedTuple):
    """One requested operation; ``size`` is in bytes, 0 if it has none."""

    kind: str
    path: str
    position: int = 0
    size: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.path}"


@dataclass(slots=True)
class _Fault:
    """Hits the ``number``-th operation from now on, and with ``sticky`` every later one."""

    number: int
    error: int | None
    sticky: bool
    kinds: Collection[str]
    path: str
    byte: int | None = None

    def meets(self, operation: DiskOperation) -> bool:
        if operation.kind not in self.kinds or self.path not in operation.path:
            return False
        self.number -= 1
        return self.number == 0 or (self.sticky and self.number < 0)


class FaultyFileSystem:
    """Starts empty and without faults; ``operations`` records all changes, ``failed`` the operations that met
    a fault.

    ``page_bytes`` is the unit in which unsynced data survives a crash. With ``capacity_bytes`` files may hold
    that much together: a write that does not fit writes what fits and raises ENOSPC. Set it to None to free
    the disk.
    """

    def __init__(self, *, page_bytes: int = 4096, capacity_bytes: int | None = None) -> None:
        self.operations: list[DiskOperation] = []
        self.failed: list[DiskOperation] = []
        self.capacity_bytes = capacity_bytes
        self.crashed = False
        self._tree = DiskTree(page_bytes)
        self._faults: list[_Fault] = []
        self._locks: set[str] = set()

    def __repr__(self) -> str:
        state = "crashed, " if self.crashed else ""
        return f"FaultyFileSystem({state}{len(self.operations)} operations, {len(self._faults)} faults)"

    # -- faults ----------------------------------------------------------------------------------------------

    def fail_at(
        self,
        number: int,
        error: int = errno.EIO,
        *,
        sticky: bool = False,
        kinds: Collection[str] | None = None,
        path: str = "",
    ) -> None:
        """Let the ``number``-th operation from now on, counted from 1, raise OSError ``error``.

        Counts operations of these ``kinds`` on paths that contain ``path``; by default all that can raise
        this error. A failed write leaves half of its bytes, a failed sync loses the unsynced bytes, all other
        failed operations change nothing. ``sticky``: every later one fails too, until ``heal``.
        """
        counted = kinds if kinds is not None else TAKES_SPACE if error == errno.ENOSPC else CHANGES
        self._faults.append(_Fault(number, error, sticky, counted, path))

    def crash_at(self, number: int, *, byte: int | None = None, path: str = "") -> None:
        """Stop at the ``number``-th change from now on, counted from 1: raise SimulatedCrash instead of
        carrying it out. ``byte``: if it is a write, its first ``byte`` bytes are written.
        """
        self._faults.append(_Fault(number, None, False, CHANGES, path, byte))

    def heal(self) -> None:
        """Remove all faults."""
        self._faults.clear()

    # -- the disk afterwards ---------------------------------------------------------------------------------

    def after_crash(self, seed: int, *, ordered: bool = True, flips: int = 0) -> FaultyFileSystem:
        """Return the disk as a power failure might leave it now, as another file system.

        Synced data survives. Of unsynced data each page of a file survives in any version that it had, or
        torn, and the file has any size that it had; ``flips`` bits of it are wrong in each file. In an
        unsynced folder the changes of names up to any one survive, as in journaling file systems; if not
        ``ordered``, any of them.
        """
        return self._with(self._tree.survivor(Random(seed), ordered=ordered, flips=flips))

    def after_kill(self) -> FaultyFileSystem:
        """Return the disk as it is if only the program was killed: everything written survives."""
        return self._with(self._tree.copy())

    def only_synced(self) -> FaultyFileSystem:
        """Return the disk after the worst crash: only synced data survives."""
        return self._with(self._tree.copy(durable=True))

    def _with(self, tree: DiskTree) -> FaultyFileSystem:
        made = FaultyFileSystem(page_bytes=tree.page_bytes, capacity_bytes=self.capacity_bytes)
        made._tree = tree
        return made

    # -- from outside: no operation, no fault ----------------------------------------------------------------

    def paths(self) -> list[str]:
        """Every file, sorted."""
        return [path for path, _ in self._tree.walk()]

    def content(self, path: str) -> bytes:
        """Content of a file. Raises FileNotFoundError."""
        return bytes(self._tree.file(path).content)

    def put(self, path: str, content: bytes) -> None:
        """Write a file, durably; its folder has to exist."""
        self._tree.put(path, FileNode(self._tree.page_bytes, content))

    def flip(self, path: str, position: int, bit: int = 0) -> None:
        """Flip one bit of a file."""
        content = bytearray(self.content(path))
        content[position] ^= 1 << bit
        self.put(path, bytes(content))

    @property
    def used_bytes(self) -> int:
        """Bytes in all files."""
        return self._tree.used_bytes

    # -- FileSystem ------------------------------------------------------------------------------------------

    def file(self, path: str) -> FaultyFile:
        return FaultyFile(self, absolute(path))

    def exists(self, path: str) -> bool:
        self._require_power()
        return self._tree.find(path) is not None

    def list(self, path: str) -> list[str]:
        self._require_power()
        return list(self._tree.folder(path).names)

    def make_dirs(self, path: str) -> None:
        path = absolute(path)
        missing = []
        while not self.exists(path):
            missing.append(path)
            path = os.path.dirname(path)
        for folder in reversed(missing):
            self._meet(DiskOperation("make_dirs", folder))
            self._tree.make_folder(folder)

    def rename(self, old: str, new: str) -> None:
        self._meet(DiskOperation("rename", old))
        source, old_name = self._tree.parent(old)
        target, new_name = self._tree.parent(new)
        if old_name not in source.names:
            raise error(errno.ENOENT, old)
        if source is not target:
            raise error(errno.EXDEV, new)
        self._tree.change(source, (old_name, None), (new_name, source.names[old_name]))

    def remove(self, path: str) -> None:
        if self.exists(path):
            self._meet(DiskOperation("remove", path))
            self._tree.file(path)
            parent, name = self._tree.parent(path)
            self._tree.change(parent, (name, None))

    def remove_tree(self, path: str) -> None:
        for name in sorted(self._tree.folder(path).names):
            inner = os.path.join(path, name)
            if isinstance(self._tree.find(inner), FolderNode):
                self.remove_tree(inner)
            else:
                self.remove(inner)
        self._meet(DiskOperation("remove_tree", path))
        parent, name = self._tree.parent(path)
        self._tree.change(parent, (name, None))

    def sync_dir(self, path: str) -> None:
        self._meet(DiskOperation("sync_dir", path))
        self._tree.folder(path).sync()

    def lock(self, path: str) -> _Lock | None:
        self._require_power()
        path = absolute(path)
        if path in self._locks:
            return None
        self._tree.make_file(path)
        self._locks.add(path)
        return _Lock(self._locks, path)

    # -- inside ----------------------------------------------------------------------------------------------

    def _require_power(self) -> None:
        if self.crashed:
            raise SimulatedCrash("the file system has crashed: go on with after_crash()")

    def _fault(self, operation: DiskOperation) -> _Fault | None:
        """Record an operation; return the fault that hits it."""
        self._require_power()
        if operation.kind != "read":
            self.operations.append(operation)
        if not self._faults:
            return None
        met = [fault for fault in self._faults if fault.meets(operation)]
        return met[0] if met else None

    def _meet(self, operation: DiskOperation) -> None:
        fault = self._fault(operation)
        if fault is not None:
            self._strike(fault, operation)

    def _strike(self, fault: _Fault, operation: DiskOperation) -> None:
        self.failed.append(operation)
        if fault.error is None:
            self.crashed = True
            raise SimulatedCrash(str(operation))
        raise error(fault.error, operation.path)


class FaultyFile:
    """A file of a ``FaultyFileSystem``; ``close`` has nothing to release."""

    __slots__ = ("_fs", "path")

    def __init__(self, fs: FaultyFileSystem, path: str) -> None:
        self._fs = fs
        self.path = path

    def __repr__(self) -> str:
        return f"FaultyFile({self.path!r})"

    def size(self) -> int:
        return len(self._fs._tree.file(self.path).content) if self._fs.exists(self.path) else 0

    def read(self, position: int, size: int) -> bytes:
        self._fs._meet(DiskOperation("read", self.path, position, size))
        return bytes(self._fs._tree.file(self.path).content[position : position + size])

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        fs, data = self._fs, bytes(data)
        operation = DiskOperation("write", self.path, position, len(data))
        fault = fs._fault(operation)
        node = fs._tree.make_file(self.path)
        if fault is not None:
            part = fault.byte if fault.error is None else len(data) // 2
            if part:
                node.write(position, data[:part])
            fs._strike(fault, operation)
        if fs.capacity_bytes is not None:
            growth = position + len(data) - len(node.content)
            over = fs.used_bytes + max(growth, 0) - fs.capacity_bytes
            if growth > 0 and over > 0:
                node.write(position, data[: max(len(data) - over, 0)])
                fs.failed.append(operation)
                raise error(errno.ENOSPC, self.path)
        node.write(position, data)

    def truncate(self, size: int) -> None:
        self._fs._meet(DiskOperation("cut" if size < self.size() else "extend", self.path, size))
        self._fs._tree.make_file(self.path).truncate(size)

    def sync(self) -> None:
        operation = DiskOperation("sync", self.path)
        fault = self._fs._fault(operation)
        node = self._fs._tree.file(self.path)
        if fault is not None:
            if fault.error is not None:
                node.sync_failed()
            self._fs._strike(fault, operation)
        node.sync()

    def close(self) -> None:
        pass


class _Lock(NamedTuple):
    locks: set[str]
    path: str

    def release(self) -> None:
        self.locks.discard(self.path)
