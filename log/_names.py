"""Names of Kafka's files and folders.

=======================  =========================================================================
in TOPIC-NUMBER          content, and the module that has its layout
=======================  =========================================================================
BASE.log                 batches from offset BASE on, one behind the other: ``protocol/_batch.py``
BASE.index               positions by offset: ``_indexes.py``
BASE.timeindex           offsets by timestamp: ``_indexes.py``
BASE.txnindex            aborted transactions: ``_indexes.py``
OFFSET.snapshot          producers as they were before OFFSET: ``_producers.py``
leader-epoch-checkpoint  where each leader epoch began: ``_checkpoints.py``
partition.metadata       id of the topic: ``_checkpoints.py``
=======================  =========================================================================

BASE and OFFSET have 20 digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"

#: The files of a segment, in the order in which they are removed: the .log first, so that a crash in between
#: leaves only files that belong to no segment. When a segment is put in place, its .log is renamed last.
SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TXN_INDEX)

#: Appended to a segment file's name: waiting for removal, being written by compaction, and complete but not
#: yet in place of its sources.
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"

#: Longest name of a folder, in bytes, on common file systems.
MAX_FOLDER_NAME = 255

_OFFSET_NAME = re.compile(r"(\d{20})\.\w+(\.\w+)?")
_PARTITION_FOLDER = re.compile(r"([a-zA-Z0-9._-]{1,249})-(\d{1,10})", re.ASCII)
_DELETED_FOLDER = re.compile(r".+\.[0-9a-f]{32}-delete")
_STRAY_FOLDER = re.compile(r"(.+)\.[0-9a-f]{32}-stray")


def file_name(offset: int, suffix: str) -> str:
    """``00000000000000000042.log`` for offset 42."""
    return f"{offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """Return the offset in the name of a segment's file or a snapshot; None for other files."""
    match = _OFFSET_NAME.fullmatch(name)
    return int(match[1]) if match else None


def offsets_of(names: Iterable[str], suffix: str) -> list[int]:
    """Return the offsets of the files that end with ``suffix``, in rising order."""
    found = (offset_of(name) for name in names if name.endswith(suffix))
    return sorted(offset for offset in found if offset is not None)


def partition_folder(topic: str, partition: int) -> str:
    """Name of a partition's folder: ``TOPIC-NUMBER``."""
    return f"{topic}-{partition}"


def parse_partition_folder(name: str) -> tuple[str, int] | None:
    """Return topic and partition; None if the folder is not a partition's."""
    match = _PARTITION_FOLDER.fullmatch(name)
    if match is None or match[1] in (".", ".."):
        return None
    return match[1], int(match[2])


def deleted_folder(name: str, unique: str) -> str:
    """Return the name for a partition folder that is being deleted; ``unique`` is 32 hex digits."""
    return _with_tail(name, f".{unique}-delete")


def stray_folder(name: str, unique: str) -> str:
    """Return the name for a partition folder whose topic the metadata lack, while another has its name."""
    return _with_tail(name, f".{unique}-stray")


def _with_tail(name: str, tail: str) -> str:
    room = MAX_FOLDER_NAME - len(tail)
    # no topic has a tilde in its name: what was cut is not taken for another partition
    return (name if len(name) <= room else name[: room - 1] + "~") + tail


def is_deleted_folder(name: str) -> bool:
    """Return whether a folder is what is left of a deleted partition."""
    return _DELETED_FOLDER.fullmatch(name) is not None


def parse_stray_folder(name: str) -> tuple[str, int] | None:
    """Return topic and partition of a stray's folder; what is left of the name, and -1, if it was cut; None
    for other folders.
    """
    match = _STRAY_FOLDER.fullmatch(name)
    return None if match is None else parse_partition_folder(match[1]) or (match[1], -1)
