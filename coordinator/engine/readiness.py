"""Errors for requests while a shard cannot serve, and after a failed write."""

from __future__ import annotations

from enum import Enum
from typing import Final

from ...protocol import ErrorCode

#: Error of most APIs while their shard is being loaded.
LOADING: Final = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class Unready(Enum):
    """Reasons why a shard does not serve."""

    INACTIVE = "the coordinator is not running"
    NOT_HERE = "the shard is not on this broker"
    LOADING = "the shard is still being read from its log"


def unready_error(unready: Unready, while_loading: ErrorCode = LOADING) -> ErrorCode:
    """The error of an API while its shard is unready; ``while_loading`` is the API's error during a load."""
    if unready is Unready.INACTIVE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if unready is Unready.NOT_HERE:
        return ErrorCode.NOT_COORDINATOR
    return while_loading


def append_error(code: int) -> ErrorCode:
    """The error in responses to requests whose records the log refused with ``code``."""
    return APPEND_ERRORS.get(code, ErrorCode(code))


#: Errors of the log, and the errors that clients get instead.
APPEND_ERRORS: Final[dict[int, ErrorCode]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
