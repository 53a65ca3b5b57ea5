"""ListPartitionReassignments (46), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    null_in,
    pack,
    read_compact_count,
    read_compact_string,
    skip_tags,
    unpack_from,
    write_compact_count,
    write_compact_string,
)

_I = Struct(">i")
_IH = Struct(">ih")


class ListPartitionReassignmentsTopics(NamedTuple):
    """ListPartitionReassignmentsTopics of ListPartitionReassignments."""

    name: str = ""
    partition_indexes: Sequence[int] = ()


class ListPartitionReassignmentsRequest(NamedTuple):
    """ListPartitionReassignments request, v0-0."""

    timeout_ms: int = 60000
    topics: Sequence[ListPartitionReassignmentsTopics] | None = None

    @staticmethod
    def response_type() -> type[ListPartitionReassignmentsResponse]:
        return ListPartitionReassignmentsResponse


ListPartitionReassignmentsRequest.API_KEY = 46  # type: ignore[attr-defined]


class OngoingPartitionReassignment(NamedTuple):
    """OngoingPartitionReassignment of ListPartitionReassignments."""

    partition_index: int = 0
    replicas: Sequence[int] = ()
    adding_replicas: Sequence[int] = ()
    removing_replicas: Sequence[int] = ()


class OngoingTopicReassignment(NamedTuple):
    """OngoingTopicReassignment of ListPartitionReassignments."""

    name: str = ""
    partitions: Sequence[OngoingPartitionReassignment] = ()


class ListPartitionReassignmentsResponse(NamedTuple):
    """ListPartitionReassignments response, v0-0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: Sequence[OngoingTopicReassignment] = ()


ListPartitionReassignmentsResponse.API_KEY = 46  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ListPartitionReassignmentsRequest, int]:
    del version
    (timeout_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 3, "ListPartitionReassignmentsRequest.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_compact_string(data, at)
        if name_4 is None:
            raise null_in("ListPartitionReassignmentsRequest.name")
        size, at, left = read_compact_count(
            data, at, left, 4, "ListPartitionReassignmentsRequest.partition_indexes"
        )
        partition_indexes_5 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
        at += 4 * max(size, 0)
        if partition_indexes_5 is None:
            raise null_in("ListPartitionReassignmentsRequest.partition_indexes")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(ListPartitionReassignmentsTopics, (name_4, partition_indexes_5))
        topics_2.append(item3)
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListPartitionReassignmentsRequest, (timeout_ms_1, topics_2)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.timeout_ms)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        partition_indexes_3 = item2.partition_indexes
        write_compact_count(out, partition_indexes_3)
        out += pack(f">{len(partition_indexes_3 or ())}i", *(partition_indexes_3 or ()))
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ListPartitionReassignmentsResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    error_message_3, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 3, "ListPartitionReassignmentsResponse.topics")
    topics_4: Any = None if size < 0 else []
    for _ in range(size):
        name_6, at = read_compact_string(data, at)
        if name_6 is None:
            raise null_in("ListPartitionReassignmentsResponse.name")
        size, at, left = read_compact_count(
            data, at, left, 8, "ListPartitionReassignmentsResponse.partitions"
        )
        partitions_7: Any = None if size < 0 else []
        for _ in range(size):
            (partition_index_9,) = _I.unpack_from(data, at)
            at += 4
            size, at, left = read_compact_count(
                data, at, left, 4, "ListPartitionReassignmentsResponse.replicas"
            )
            replicas_10 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if replicas_10 is None:
                raise null_in("ListPartitionReassignmentsResponse.replicas")
            size, at, left = read_compact_count(
                data, at, left, 4, "ListPartitionReassignmentsResponse.adding_replicas"
            )
            adding_replicas_11 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if adding_replicas_11 is None:
                raise null_in("ListPartitionReassignmentsResponse.adding_replicas")
            size, at, left = read_compact_count(
                data, at, left, 4, "ListPartitionReassignmentsResponse.removing_replicas"
            )
            removing_replicas_12 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if removing_replicas_12 is None:
                raise null_in("ListPartitionReassignmentsResponse.removing_replicas")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item8 = _new(
                OngoingPartitionReassignment,
                (partition_index_9, replicas_10, adding_replicas_11, removing_replicas_12),
            )
            partitions_7.append(item8)
        if partitions_7 is None:
            raise null_in("ListPartitionReassignmentsResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item5 = _new(OngoingTopicReassignment, (name_6, partitions_7))
        topics_4.append(item5)
    if topics_4 is None:
        raise null_in("ListPartitionReassignmentsResponse.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        ListPartitionReassignmentsResponse, (throttle_time_ms_1, error_code_2, error_message_3, topics_4)
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_compact_string(out, body.error_message)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _I.pack(item4.partition_index)
            replicas_5 = item4.replicas
            write_compact_count(out, replicas_5)
            out += pack(f">{len(replicas_5 or ())}i", *(replicas_5 or ()))
            adding_replicas_7 = item4.adding_replicas
            write_compact_count(out, adding_replicas_7)
            out += pack(f">{len(adding_replicas_7 or ())}i", *(adding_replicas_7 or ()))
            removing_replicas_9 = item4.removing_replicas
            write_compact_count(out, removing_replicas_9)
            out += pack(f">{len(removing_replicas_9 or ())}i", *(removing_replicas_9 or ()))
            out.append(0)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
