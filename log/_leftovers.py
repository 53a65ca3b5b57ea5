"""Leftovers in a partition folder: removals and compactions that a stop interrupted."""

from __future__ import annotations

import os

from ._files import FileSystem
from ._names import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SEGMENT_SUFFIXES,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    offset_of,
    offsets_of,
)
from ._segment import Segment

_TEMPORARY = ".tmp"


def tidy_folder(fs: FileSystem, folder: str, removed: list[str], swapped: list[str]) -> list[str]:
    """Bring a folder into order; return the names of its files afterwards.

    Removes ``.deleted`` and ``.cleaned`` files, and index files without a .log. A ``.swap`` segment is
    complete and takes the place of the segments it was made of, unless a ``.cleaned`` file at or before its
    offset shows that the split it belongs to is incomplete. Adds the paths to ``removed`` and ``swapped``.
    """
    names, before = fs.list(folder), len(removed)
    unfinished = next(iter(offsets_of(names, CLEANED)), None)

    def remove(name: str) -> None:
        path = os.path.join(folder, name)
        fs.remove(path)
        removed.append(path)

    swaps: list[int] = []
    for name in names:
        offset = offset_of(name)
        if name.endswith((DELETED, CLEANED, _TEMPORARY)):
            remove(name)
        elif name.endswith(SWAP) and offset is not None:
            if unfinished is not None and offset >= unfinished:
                remove(name)
            elif name.endswith(LOG + SWAP):
                swaps.append(offset)
    for base in sorted(swaps):
        _finish_swap(fs, folder, base, removed)
        swapped.append(os.path.join(folder, file_name(base, LOG)))
    if len(removed) > before or any(name.endswith(SWAP) for name in names):
        _finish_renames(fs, folder)
        names = fs.list(folder)
    bases = {*offsets_of(names, LOG)}
    for name in names:
        if name.endswith(SEGMENT_SUFFIXES[1:]) and offset_of(name) not in bases:
            remove(name)
    # most folders are in order: a start that has thousands to open lists each once
    return fs.list(folder) if len(removed) > before else names


def _finish_swap(fs: FileSystem, folder: str, base: int, removed: list[str]) -> None:
    """Remove the segments that ``<base>.log.swap`` replaces, then give it its name.

    The .log files are removed and renamed last, so that a start after a stop in between does it again. The
    offset and time indexes are left to be rebuilt.
    """
    replacement = Segment(fs, folder, base, created_ms=0)
    replacement.file = fs.file(os.path.join(folder, file_name(base, LOG + SWAP)))
    replacement.size = replacement.file.size()
    end = replacement.next_offset()
    replacement.close()
    for offset in offsets_of(fs.list(folder), LOG):
        if base <= offset < max(end, base + 1):
            for suffix in reversed(SEGMENT_SUFFIXES):
                path = os.path.join(folder, file_name(offset, suffix))
                if fs.exists(path):
                    fs.remove(path)
                    removed.append(path)
    for suffix in (INDEX, TIME_INDEX):
        fs.remove(os.path.join(folder, file_name(base, suffix + SWAP)))
    for suffix in (TXN_INDEX, LOG):
        _rename_back(fs, folder, file_name(base, suffix + SWAP))
    fs.sync_dir(folder)


def _finish_renames(fs: FileSystem, folder: str) -> None:
    """Finish a swap whose .log already has its final name, or one that was abandoned."""
    for name in fs.list(folder):
        if name.endswith(SWAP) and offset_of(name) is not None:
            if fs.exists(os.path.join(folder, name.removesuffix(SWAP))):
                fs.remove(os.path.join(folder, name))
            else:
                _rename_back(fs, folder, name)


def _rename_back(fs: FileSystem, folder: str, name: str) -> None:
    path = os.path.join(folder, name)
    if fs.exists(path):
        fs.rename(path, path.removesuffix(SWAP))
