"""A disk in memory: its files and folders as programs see them, and as they would survive a crash.

A change to a file is visible at once and durable once the file is synced; a change of names is durable once
the folder is synced. Until then a crash may keep or lose it: in a file each page separately, maybe torn in
the middle; in a folder all changes up to some point, or any of them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from random import Random

#: A change of a file: bytes at a position, or None where the file was given that size.
Change = tuple[int, bytes | None]


class FileNode:
    """One file. ``content`` is what programs read, ``durable`` the content at the last sync."""

    __slots__ = ("_lost", "content", "durable", "page_bytes", "pending")

    def __init__(self, page_bytes: int, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.durable = bytes(content)
        self.pending: list[Change] = []
        self.page_bytes = page_bytes
        # pages that a failed sync dropped: the cache still has them, but never writes them back
        self._lost: set[int] = set()

    def write(self, position: int, data: bytes) -> None:
        """Write to the cache; ``sync`` makes it durable."""
        self.pending.append((position, data))
        _apply(self.content, self.pending[-1])
        if self._lost:
            self._lost -= set(self._pages(position, position + len(data)))

    def truncate(self, size: int) -> None:
        """Change the size in the cache."""
        self.pending.append((size, None))
        _apply(self.content, self.pending[-1])

    def sync(self) -> None:
        """Make durable what was written."""
        self.durable = self._synced_content()
        self.pending.clear()

    def sync_failed(self) -> None:
        """Fail a sync as Linux does: the pages become clean although they never reached the disk."""
        for position, data in self.pending:
            if data is not None:
                self._lost |= set(self._pages(position, position + len(data)))
        self.pending.clear()

    def survivor(self, rng: Random, *, flips: int = 0) -> bytes:
        """Content that the disk might hold after a crash: any size, and any version of each page since the
        last sync.
        """
        kind = rng.randrange(4)
        if kind == 0:
            return self.durable
        data = self._versions(rng) if kind > 1 else bytearray(self._synced_content())
        for _ in range(flips):
            self._flip(data, rng)
        return bytes(data)

    def _synced_content(self) -> bytes:
        """Content that a sync makes durable."""
        if not self._lost:
            return bytes(self.content)
        content = bytearray(self.content)
        for page in self._lost:
            start, end = self._bounds(page)
            kept = self.durable[start:end].ljust(end - start, b"\0")
            content[start:end] = kept[: max(len(content) - start, 0)]
        return bytes(content)

    def _versions(self, rng: Random) -> bytearray:
        sizes = [len(self.durable)]
        touched: set[int] = set()
        for position, data in self.pending:
            size = sizes[-1]
            end = position if data is None else position + len(data)
            touched.update(self._pages(min(position, size), max(end, size if data is None else end)))
            sizes.append(end if data is None else max(end, size))
        size = rng.choice(sizes)
        found = bytearray(self.durable[:size].ljust(size, b"\0"))
        for page in sorted(touched):
            start, end = self._bounds(page)
            found[start:end] = self._page(start, end, rng)[: max(size - start, 0)]
        return found

    def _page(self, start: int, end: int, rng: Random) -> bytes:
        """A page after some of the changes to it, maybe torn within the last one."""
        changes = [
            (position, data)
            for position, data in self.pending
            if data is None or (position < end and position + len(data) > start)
        ]
        kept = changes[: rng.randint(0, len(changes))]
        page = bytearray(self.durable[start:end].ljust(end - start, b"\0"))
        torn = rng.randrange(2) == 0
        for number, (position, data) in enumerate(kept):
            if data is None:
                cut = min(max(position - start, 0), len(page))
                page[cut:] = bytes(len(page) - cut)
                continue
            first = max(position, start)
            piece = data[first - position : end - position]
            if torn and number == len(kept) - 1:
                piece = piece[: rng.randint(0, len(piece))]
            page[first - start : first - start + len(piece)] = piece
        return bytes(page)

    def _flip(self, data: bytearray, rng: Random) -> None:
        """Flip a bit of data that was written and never synced."""
        ranges = [(p, min(p + len(d), len(data))) for p, d in self.pending if d and p < len(data)]
        if ranges:
            data[rng.randrange(*rng.choice(ranges))] ^= 1 << rng.randrange(8)

    def _pages(self, start: int, end: int) -> range:
        return range(start // self.page_bytes, -(-end // self.page_bytes))

    def _bounds(self, page: int) -> tuple[int, int]:
        return page * self.page_bytes, (page + 1) * self.page_bytes


class FolderNode:
    """One folder. Each change maps names to their new nodes, or to None for a removed name."""

    __slots__ = ("durable", "names", "pending")

    def __init__(self) -> None:
        self.names: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}
        self.pending: list[list[tuple[str, Node | None]]] = []

    def change(self, *entries: tuple[str, Node | None]) -> None:
        """Rename, add or remove entries in the cache."""
        self.pending.append(list(entries))
        _rename(self.names, self.pending[-1])

    def sync(self) -> None:
        """Make the entries durable."""
        self.durable = dict(self.names)
        self.pending.clear()

    def survivor(self, rng: Random, *, ordered: bool) -> dict[str, Node]:
        """The names that the disk might hold."""
        if ordered:
            kept = self.pending[: rng.randint(0, len(self.pending))]
        else:
            kept = [change for change in self.pending if rng.randrange(2)]
        names = dict(self.durable)
        for change in kept:
            _rename(names, change)
        return names


Node = FileNode | FolderNode


class DiskTree:
    """Nodes by path. Every method raises the OSError that the operating system would raise."""

    def __init__(self, page_bytes: int) -> None:
        self.root = FolderNode()
        self.page_bytes = page_bytes
        # cache of lookups, until a name changes
        self._found: dict[str, Node | None] = {}

    def find(self, path: str) -> Node | None:
        """Find a file or folder; None if there is none."""
        if path not in self._found:
            node: Node | None = self.root
            for name in _parts(path):
                node = node.names.get(name) if isinstance(node, FolderNode) else None
            self._found[path] = node
        return self._found[path]

    def change(self, folder: FolderNode, *entries: tuple[str, Node | None]) -> None:
        """Change names in a folder of this tree."""
        self._found.clear()
        folder.change(*entries)

    def put(self, path: str, node: FileNode) -> None:
        """Put a file at a path, durably."""
        self._found.clear()
        folder, name = self.parent(path)
        folder.names[name] = folder.durable[name] = node

    def file(self, path: str) -> FileNode:
        """Find a file. Raises FileNotFoundError and IsADirectoryError."""
        node = self._there(path)
        if isinstance(node, FolderNode):
            raise error(errno.EISDIR, path)
        return node

    def folder(self, path: str) -> FolderNode:
        """Find a folder. Raises FileNotFoundError and NotADirectoryError."""
        node = self._there(path)
        if not isinstance(node, FolderNode):
            raise error(errno.ENOTDIR, path)
        return node

    def _there(self, path: str) -> Node:
        node = self.find(path)
        if node is None:
            raise error(errno.ENOENT, path)
        return node

    def make_file(self, path: str) -> FileNode:
        """The file, created if it is missing."""
        node = self.find(path)
        if isinstance(node, FileNode):
            return node
        parent, name = self.parent(path)
        if name not in parent.names:
            self.change(parent, (name, FileNode(self.page_bytes)))
        return self.file(path)

    def make_folder(self, path: str) -> None:
        parent, name = self.parent(path)
        if name not in parent.names:
            self.change(parent, (name, FolderNode()))

    def parent(self, path: str) -> tuple[FolderNode, str]:
        parent, name = _split(path)
        return self.folder(parent), name

    def walk(self) -> Iterator[tuple[str, FileNode]]:
        """Every file, by path."""
        return _walk("", self.root)

    @property
    def used_bytes(self) -> int:
        return sum(len(node.content) for _, node in self.walk())

    def survivor(self, rng: Random, *, ordered: bool, flips: int) -> DiskTree:
        """A disk as a crash might leave it, all of it durable."""
        return self._with(
            lambda folder: dict(sorted(folder.survivor(rng, ordered=ordered).items())),
            lambda file: file.survivor(rng, flips=flips),
        )

    def copy(self, *, durable: bool = False) -> DiskTree:
        """Return a copy of the disk, all of it durable: as programs see it, or as it was last synced."""
        if durable:
            return self._with(lambda folder: folder.durable, lambda file: file.durable)
        return self._with(lambda folder: folder.names, lambda file: bytes(file.content))

    def _with(
        self, names_in: Callable[[FolderNode], dict[str, Node]], read: Callable[[FileNode], bytes]
    ) -> DiskTree:
        tree = DiskTree(self.page_bytes)
        tree.root = _rebuilt(self.root, names_in, read)
        return tree


def error(number: int, path: str) -> OSError:
    """Return the OSError of an error number, as Python's subclass for it."""
    return OSError(number, os.strerror(number), path)


@lru_cache(1024)
def _parts(path: str) -> tuple[str, ...]:
    return tuple(name for name in absolute(path).split(os.sep) if name)


@lru_cache(1024)
def _split(path: str) -> tuple[str, str]:
    return os.path.split(absolute(path))


@lru_cache(1024)
def absolute(path: str) -> str:
    """The path from the root."""
    return os.path.abspath(path)


def _apply(content: bytearray, change: Change) -> None:
    position, data = change
    if data is None:
        del content[position:]
        data = b""
    if len(content) < position:
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _rename(names: dict[str, Node], change: list[tuple[str, Node | None]]) -> None:
    for name, node in change:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _walk(path: str, folder: FolderNode) -> Iterator[tuple[str, FileNode]]:
    for name, node in sorted(folder.names.items()):
        if isinstance(node, FolderNode):
            yield from _walk(f"{path}/{name}", node)
        else:
            yield f"{path}/{name}", node


def _rebuilt(
    folder: FolderNode, names_in: Callable[[FolderNode], dict[str, Node]], read: Callable[[FileNode], bytes]
) -> FolderNode:
    """Return a durable copy of the folder, with names and contents as the two functions choose them."""
    made = FolderNode()
    for name, node in names_in(folder).items():
        if isinstance(node, FolderNode):
            made.names[name] = _rebuilt(node, names_in, read)
        else:
            made.names[name] = FileNode(node.page_bytes, read(node))
    made.sync()
    return made
