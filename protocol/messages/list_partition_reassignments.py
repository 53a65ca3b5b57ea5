"""ListPartitionReassignments (46), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import (
    _new,
    BYTES,
    long_varint,
    malformed,
    null_in,
    pack,
    skip_tags,
    too_many,
    unpack_from,
    varint,
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


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ListPartitionReassignmentsRequest, int]:
    del version
    (timeout_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("ListPartitionReassignmentsRequest.topics", size, left)
        topics_2 = []
        for _ in range(size):
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListPartitionReassignmentsRequest.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("ListPartitionReassignmentsRequest.partition_indexes", size, left)
                partition_indexes_5 = list(unpack_from(f">{size}i", data, at))
                at += 4 * size
            else:
                raise null_in("ListPartitionReassignmentsRequest.partition_indexes")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(ListPartitionReassignmentsTopics, (name_4, partition_indexes_5))
            topics_2.append(item3)
    elif size == -1:
        topics_2 = None
    else:
        raise malformed("a negative length")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListPartitionReassignmentsRequest, (timeout_ms_1, topics_2)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.timeout_ms)
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\x00"
    else:
        size = len(topics_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topics_1:
            value = item2.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            partition_indexes_3 = item2.partition_indexes
            if partition_indexes_3 is None:
                out += b"\x00"
            else:
                size = len(partition_indexes_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += pack(f">{len(partition_indexes_3)}i", *partition_indexes_3)
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
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        error_message_3 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        error_message_3 = None
    else:
        raise malformed("a negative length")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("ListPartitionReassignmentsResponse.topics", size, left)
        topics_4 = []
        for _ in range(size):
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                name_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListPartitionReassignmentsResponse.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 8 or left < 0:
                    raise too_many("ListPartitionReassignmentsResponse.partitions", size, left)
                partitions_7 = []
                for _ in range(size):
                    (partition_index_9,) = _I.unpack_from(data, at)
                    at += 4
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("ListPartitionReassignmentsResponse.replicas", size, left)
                        replicas_10 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("ListPartitionReassignmentsResponse.replicas")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("ListPartitionReassignmentsResponse.adding_replicas", size, left)
                        adding_replicas_11 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("ListPartitionReassignmentsResponse.adding_replicas")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("ListPartitionReassignmentsResponse.removing_replicas", size, left)
                        removing_replicas_12 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
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
            else:
                raise null_in("ListPartitionReassignmentsResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(OngoingTopicReassignment, (name_6, partitions_7))
            topics_4.append(item5)
    else:
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
    value = body.error_message
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\x00"
    else:
        size = len(topics_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topics_1:
            value = item2.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\x00"
            else:
                size = len(partitions_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in partitions_3:
                    out += _I.pack(item4.partition_index)
                    replicas_5 = item4.replicas
                    if replicas_5 is None:
                        out += b"\x00"
                    else:
                        size = len(replicas_5) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += pack(f">{len(replicas_5)}i", *replicas_5)
                    adding_replicas_7 = item4.adding_replicas
                    if adding_replicas_7 is None:
                        out += b"\x00"
                    else:
                        size = len(adding_replicas_7) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += pack(f">{len(adding_replicas_7)}i", *adding_replicas_7)
                    removing_replicas_9 = item4.removing_replicas
                    if removing_replicas_9 is None:
                        out += b"\x00"
                    else:
                        size = len(removing_replicas_9) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += pack(f">{len(removing_replicas_9)}i", *removing_replicas_9)
                    out.append(0)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
