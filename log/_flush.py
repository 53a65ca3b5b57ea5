"""Flushes: the log's owner collects what has to reach the disk, any thread syncs it, and the owner records
that this is done.

An append therefore never waits for the disk: while a thread syncs, the log grows, rolls and loses old
segments, and later appends belong to the next flush.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ._files import FileSystem
from ._names import LEADER_EPOCHS
from ._segment import Segment


@dataclass(slots=True, eq=False)
class Flush:
    """One flush: after ``run``, in any thread, everything below ``end_offset`` is on the disk.

    ``folders`` are those that hold new names. ``error`` is set by a failed run; ``missing`` are the paths
    that no longer existed.
    """

    fs: FileSystem
    end_offset: int
    paths: Sequence[str]
    folders: Sequence[str]
    marks: Mapping[str, int]
    error: OSError | None = None
    missing: set[str] = field(default_factory=set)

    def __repr__(self) -> str:
        return f"Flush(up to {self.end_offset}, {len(self.paths)} files)"

    def run(self, *, complete: bool = False) -> None:
        """Sync the files, then the folders with new ones; ``error`` tells of a failure.

        The files are reopened: the log may close its own meanwhile. A missing file is no failure, since
        retention and deletion continue meanwhile, and the log checks ``missing``; except with ``complete``,
        for a flush during which no file can have been removed.
        """
        try:
            for path in self.paths:
                self._sync_path(path)
            for folder in self.folders:
                self._sync_folder(folder)
        except OSError as error:
            self.error = error
        if complete and self.missing and self.error is None:
            self.error = FileNotFoundError(errno.ENOENT, "gone before it was synced", min(self.missing))

    def _sync_path(self, path: str) -> None:
        file = self.fs.file(path)
        try:
            file.sync()
        except FileNotFoundError:
            self.missing.add(path)
        finally:
            file.close()

    def _sync_folder(self, folder: str) -> None:
        try:
            self.fs.sync_dir(folder)
        except FileNotFoundError:
            self.missing.add(folder)


class Flushing:
    """Tracks which files of a partition changed since they were last synced, and whether there are new ones.

    A file is known by a mark: the bytes of a .log, the entries of an index. Files only grow, except when a
    failed append is undone, so a file with the same mark has the same content.
    """

    __slots__ = ("_folder", "_fs", "_marks")

    def __init__(self, fs: FileSystem, folder: str) -> None:
        self._fs = fs
        self._folder = folder
        self._marks: Mapping[str, int] = {}

    def __repr__(self) -> str:
        return f"Flushing({self._folder!r}, {len(self._marks)} files synced)"

    def begin_flush(self, segments: Iterable[Segment], end_offset: int) -> Flush:
        """Return the flush that these segments need."""
        marks = {path: mark for segment in segments for path, mark in _flush_marks(segment)}
        changed = [path for path, mark in marks.items() if self._marks.get(path) != mark]
        folders = [] if marks.keys() <= self._marks.keys() else [self._folder]
        if not self._marks:
            # the folder's own name may be new, and so may the epoch file; a torn one makes sound batches look
            # damaged
            folders.append(os.path.dirname(self._folder))
            epochs = os.path.join(self._folder, LEADER_EPOCHS)
            changed += [epochs] if self._fs.exists(epochs) else []
        return Flush(self._fs, end_offset, changed, folders, marks)

    def end_flush(self, flush: Flush) -> None:
        """Record that a flush is done."""
        self._marks = flush.marks


def _flush_marks(segment: Segment) -> Iterable[tuple[str, int]]:
    yield segment.file.path, segment.size
    yield segment.index.file.path, segment.index.count
    yield segment.time_index.file.path, segment.time_index.count
    if segment.txn_index.file is not None:
        yield segment.txn_index.file.path, len(segment.txn_index.entries)
