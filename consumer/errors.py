"""Errors of consumers, which all derive from KohortError, and texts of any errors."""

from __future__ import annotations

from collections.abc import Mapping

from ..client.errors import ClientError, ConsumerClosedError
from ..protocol import CorruptBatchError, KohortError, TopicPartition

#: Root of all errors that a consumer raises, those of its cluster client included.
ConsumerError = ClientError


class NoOffsetError(ConsumerError):
    """A partition has no position and ``auto_offset_reset`` is ``fail``."""

    def __init__(self, partition: TopicPartition, message: str) -> None:
        super().__init__(f"{partition.topic}-{partition.partition}: {message}")
        self.partition = partition


class LogTruncatedError(NoOffsetError):
    """The log was truncated below the position, and ``auto_offset_reset`` is ``fail``.

    The cause is an unclean leader election. ``offset`` was to be read next; the part of the log that is still
    the same ends at ``end_offset`` (-1: no part is).
    """

    def __init__(self, partition: TopicPartition, offset: int, leader_epoch: int, end_offset: int) -> None:
        text = (
            f"the log was cut: offset {offset} was reached in leader epoch {leader_epoch}, which now ends at "
            f"{end_offset}, and auto_offset_reset is 'fail': seek, or allow a reset"
        )
        super().__init__(partition, text)
        self.offset = offset
        self.end_offset = end_offset


class BatchTooLargeError(ConsumerError):
    """A record batch comes in a response of ``size`` bytes, over ``receive_message_max_bytes``."""

    def __init__(self, partition: TopicPartition, offset: int, size: int) -> None:
        super().__init__(
            f"{partition.topic}-{partition.partition}: the batch at offset {offset} comes in a response of "
            f"{size} bytes, more than receive_message_max_bytes allows: set it higher, or seek past the batch"
        )
        self.partition = partition
        self.size = size


#: Errors of a batch that is fetched, and not delivered.
UNREADABLE = (CorruptBatchError, BatchTooLargeError)


class StaleRecordError(ConsumerError):
    """``done`` was called for a record whose partition this consumer has given up since."""


class CommitFailedError(ConsumerError):
    """Some offsets could not be committed.

    ``lost`` are the partitions this member no longer owns (another member may redo their records);
    ``failed`` holds the error of each other one, which may be committed again later.
    """

    def __init__(
        self,
        message: str,
        *,
        lost: tuple[TopicPartition, ...] = (),
        failed: Mapping[TopicPartition, Exception] | None = None,
    ) -> None:
        super().__init__(message)
        self.lost = lost
        self.failed = dict(failed or {})


class FatalGroupError(ConsumerError):
    """The group refuses this member for good; the text says what to change."""


class ForkedError(ConsumerClosedError):
    """The consumer belongs to the parent process, with its connections and its event loop."""

    def __init__(self) -> None:
        super().__init__(
            "this consumer is of the process that this one was forked from: make one after the fork"
        )


#: Characters of an error in a log line at most.
SHORT = 500


def short_text(error: BaseException) -> str:
    """Class and message, on one line."""
    said = " ".join(message_of(error).split())
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return text if len(text) <= SHORT else f"{text[:SHORT]} ..."


def describe_error(error: BaseException) -> str:
    """As ``short_text``, without the class for kohort's own errors, whose texts are complete."""
    text = short_text(error)
    return text.removeprefix(f"{type(error).__name__}: ") if isinstance(error, KohortError) else text


def message_of(error: BaseException) -> str:
    """The error's own text, even if its ``__str__`` raises."""
    try:
        return str(error)
    except Exception:
        return "(an error whose text cannot be made)"
