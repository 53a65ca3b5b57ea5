"""Errors of the log that are not answers of the protocol."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from ..protocol import CorruptBatchError, ErrorCode, KafkaError, KohortError


class CorruptLogError(CorruptBatchError):
    """A log file that holds something else than record batches; ``path`` and ``position`` say where."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path}: {reason}", position)
        self.path = path
        self.reason = reason


class DataFolderError(KohortError):
    """A data folder that cannot be used as it is; the text says what to change."""


class DataFolderInUseError(DataFolderError):
    """Another process, or another opener in this one, holds the folder's lock."""


class UndoError(OSError):
    """A failed write could not be taken back: what is on the disk is unknown until it is read again."""


class SyncError(UndoError):
    """A sync failed: what it should have kept may be lost, and the next one would not tell."""


class NoDescriptorsError(KafkaError):
    """No file can be opened now, the process or the system has none left: nothing is wrong with the disk."""


def storage_error(path: str, error: OSError) -> KafkaError:
    """The answer of the protocol to a disk that failed."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return NoDescriptorsError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {error}")
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {error}")


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Turn an OSError into KafkaError KAFKA_STORAGE_ERROR."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error) from error
