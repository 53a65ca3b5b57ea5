"""Errors of the log that are not protocol errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from ..protocol import CorruptBatchError, ErrorCode, KafkaError, KohortError


class CorruptLogError(CorruptBatchError):
    """A log file that holds something other than record batches, at ``path`` and ``position``."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path}: {reason}", position)
        self.path = path
        self.reason = reason


class DataFolderError(KohortError):
    """A data folder that cannot be used as it is; the text says what to change."""


class DataFolderInUseError(DataFolderError):
    """Another process, or another opener in this one, holds the folder's lock."""


class UndoError(OSError):
    """A failed write could not be undone: the content of the disk is unknown until it is read again."""


class SyncError(UndoError):
    """A sync failed: the data may be lost, and the next sync would not report it."""


class NoDescriptorsError(KafkaError):
    """No file can be opened now, because the process or the system has no descriptor left; the
    disk is fine.
    """


def storage_error(path: str, error: OSError) -> KafkaError:
    """The protocol error for a failed disk."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return NoDescriptorsError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {error}")
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {error}")


#: No space, no quota, or a file that may not grow: writes succeed again when there is room.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_full(error: KafkaError) -> bool:
    """Return whether a write failed because the disk is full, and left everything as it was."""
    cause = error.__cause__
    return isinstance(cause, OSError) and not isinstance(cause, UndoError) and cause.errno in _FULL


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Turn an OSError into KafkaError KAFKA_STORAGE_ERROR."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error) from error
