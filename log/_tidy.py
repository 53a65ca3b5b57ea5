"""Removal of a partition folder, and leftovers in one: removals and compactions that a stop interrupted."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable

from ._errors import storage_error
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
    deleted_folder,
    file_name,
    offset_of,
)
from ._segment import Segment

_TEMPORARY = ".tmp"


def remove_partition(fs: FileSystem, path: str) -> None:
    """Remove a partition's folder; renamed first, so that a stop cannot bring it back.

    Raises KafkaError KAFKA_STORAGE_ERROR.
    """
    try:
        doomed = doom_partition(fs, path)
        fs.sync_dir(os.path.dirname(path))
        fs.remove_tree(doomed)
    except OSError as error:
        raise storage_error(path, error) from error


def doom_partition(fs: FileSystem, path: str) -> str:
    """Give a partition's folder a name of which the next open of the data folder removes it; the new path.

    Durable once the data folder is synced. Raises OSError.
    """
    parent, name = os.path.split(path)
    doomed = os.path.join(parent, deleted_folder(name, uuid.uuid4().hex))
    fs.rename(path, doomed)
    return doomed


def tidy(fs: FileSystem, folder: str, removed: list[str], swapped: list[str]) -> list[str]:
    """Bring a folder into order; the names of its files afterwards.

    ``.deleted`` and ``.cleaned`` files go, and so do the index files of a log that is not there. A ``.swap``
    segment is complete: it takes the place of the segments it was made of, unless one that it was being split
    with was not complete (a ``.cleaned`` file before it). The paths are added to ``removed`` and ``swapped``.
    """
    names = fs.list(folder)
    cleaned = [offset for name in names if name.endswith(CLEANED) and (offset := offset_of(name)) is not None]
    unfinished = min(cleaned, default=None)

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
    _finish_renames(fs, folder)
    names = fs.list(folder)
    for name in _orphans(names):
        remove(name)
    return fs.list(folder)


def _finish_swap(fs: FileSystem, folder: str, base: int, removed: list[str]) -> None:
    """Remove the segments that ``<base>.log.swap`` replaces, then give it its name.

    The logs go and come last, so that a stop in between is followed by doing it again. Offset and time index
    are left to be made anew.
    """
    replacement = Segment(fs, folder, base, created_ms=0)
    replacement.file = fs.file(os.path.join(folder, file_name(base, LOG + SWAP)))
    replacement.size = replacement.file.size()
    end = replacement.next_offset()
    replacement.close()
    for offset in sorted(_bases(fs.list(folder))):
        if base <= offset < max(end, base + 1):
            for suffix in reversed(SEGMENT_SUFFIXES):
                path = os.path.join(folder, file_name(offset, suffix))
                if fs.exists(path):
                    fs.remove(path)
                    removed.append(path)
    for suffix in (INDEX, TIME_INDEX):
        fs.remove(os.path.join(folder, file_name(base, suffix + SWAP)))
    for suffix in (TXN_INDEX, LOG):
        _rename(fs, folder, file_name(base, suffix + SWAP))
    fs.sync_dir(folder)


def _finish_renames(fs: FileSystem, folder: str) -> None:
    """Finish a swap whose log has its name already, or one that was given up."""
    for name in fs.list(folder):
        if name.endswith(SWAP) and offset_of(name) is not None:
            if fs.exists(os.path.join(folder, name.removesuffix(SWAP))):
                fs.remove(os.path.join(folder, name))
            else:
                _rename(fs, folder, name)


def _rename(fs: FileSystem, folder: str, name: str) -> None:
    path = os.path.join(folder, name)
    if fs.exists(path):
        fs.rename(path, path.removesuffix(SWAP))


def _bases(names: Iterable[str]) -> set[int]:
    found = (offset_of(name) for name in names if name.endswith(LOG))
    return {offset for offset in found if offset is not None}


def _orphans(names: Iterable[str]) -> list[str]:
    names = list(names)
    bases = _bases(names)
    indexes = tuple(suffix for suffix in SEGMENT_SUFFIXES if suffix != LOG)
    return [name for name in names if name.endswith(indexes) and offset_of(name) not in bases]
