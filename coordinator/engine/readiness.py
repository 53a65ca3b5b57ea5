"""Two tables: what to answer while a shard cannot serve, and what a failed write means to a client."""

from __future__ import annotations

from enum import Enum
from typing import Final

from ...protocol import APIS, ApiKey, ErrorCode


class Unready(Enum):
    """Why a shard does not serve."""

    INACTIVE = "the coordinator is not running"
    NOT_HERE = "the shard is not on this broker"
    LOADING = "the shard is still being read from its log"


def unready_error(api_key: int, unready: Unready) -> ErrorCode:
    """The error number of an API while its shard is unready (spec section 3.0).

    While loading, a Heartbeat is told that all is well and a SyncGroup to rejoin: other numbers end some
    clients. OffsetFetch is better parked than answered (the runtime does), for the same reason.
    """
    if unready is Unready.INACTIVE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if unready is Unready.NOT_HERE:
        return ErrorCode.NOT_COORDINATOR
    return _LOADING.get(api_key, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


_LOADING: Final[dict[int, ErrorCode]] = {
    ApiKey.HEARTBEAT: ErrorCode.NONE,
    ApiKey.SYNC_GROUP: ErrorCode.REBALANCE_IN_PROGRESS,
}


def append_error(code: int) -> ErrorCode:
    """What to answer when the log refused the records with ``code``."""
    return _APPEND.get(code, ErrorCode(code))


_APPEND: Final[dict[int, ErrorCode]] = {
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


def unready_table() -> str:
    """The errors of an unready shard as a Markdown table."""
    lines = [
        "| request | " + " | ".join(unready.value for unready in Unready) + " |",
        "| --- " * (1 + len(Unready)) + "|",
    ]
    for key in _SERVED:
        cells = (_told(key, unready) for unready in Unready)
        lines.append(f"| {APIS[key].name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def append_errors_table() -> str:
    """What a client is told for each error of the log, as a Markdown table."""
    lines = ["| the log says | the client is told |", "| --- | --- |"]
    lines += [f"| {ErrorCode(log).name} | {int(told)} {told.name} |" for log, told in _APPEND.items()]
    return "\n".join(lines) + "\n"


def _told(api_key: int, unready: Unready) -> str:
    if api_key == ApiKey.LIST_GROUPS and unready is Unready.NOT_HERE:
        return "0, without its groups"
    error = unready_error(api_key, unready)
    return f"{int(error)} {error.name}"


_SERVED: Final = (
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_DELETE,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.DELETE_GROUPS,
)
