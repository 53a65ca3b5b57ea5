"""AlterPartitionReassignments (45), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

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

_T = Struct(">?")
_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")


class ReassignablePartition(NamedTuple):
    """ReassignablePartition of AlterPartitionReassignments."""

    partition_index: int = 0
    replicas: Sequence[int] | None = None


class ReassignableTopic(NamedTuple):
    """ReassignableTopic of AlterPartitionReassignments."""

    name: str = ""
    partitions: Sequence[ReassignablePartition] = ()


class AlterPartitionReassignmentsRequest(NamedTuple):
    """AlterPartitionReassignments request, v0-1."""

    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: Sequence[ReassignableTopic] = ()


class ReassignablePartitionResponse(NamedTuple):
    """ReassignablePartitionResponse of AlterPartitionReassignments."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""


class ReassignableTopicResponse(NamedTuple):
    """ReassignableTopicResponse of AlterPartitionReassignments."""

    name: str = ""
    partitions: Sequence[ReassignablePartitionResponse] = ()


class AlterPartitionReassignmentsResponse(NamedTuple):
    """AlterPartitionReassignments response, v0-1."""

    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = ""
    responses: Sequence[ReassignableTopicResponse] = ()


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterPartitionReassignmentsRequest, int]:
    (timeout_ms_1,) = _I.unpack_from(data, at)
    at += 4
    allow_replication_factor_change_2 = True
    if version >= 1:
        (allow_replication_factor_change_2,) = _T.unpack_from(data, at)
        at += 1
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("AlterPartitionReassignmentsRequest.topics", size, left)
        topics_3 = []
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
                name_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("AlterPartitionReassignmentsRequest.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("AlterPartitionReassignmentsRequest.partitions", size, left)
                partitions_6 = []
                for _ in range(size):
                    (partition_index_8,) = _I.unpack_from(data, at)
                    at += 4
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("AlterPartitionReassignmentsRequest.replicas", size, left)
                        replicas_9 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    elif size == -1:
                        replicas_9 = None
                    else:
                        raise malformed("a negative length")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item7 = _new(ReassignablePartition, (partition_index_8, replicas_9))
                    partitions_6.append(item7)
            else:
                raise null_in("AlterPartitionReassignmentsRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item4 = _new(ReassignableTopic, (name_5, partitions_6))
            topics_3.append(item4)
    else:
        raise null_in("AlterPartitionReassignmentsRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        AlterPartitionReassignmentsRequest, (timeout_ms_1, allow_replication_factor_change_2, topics_3)
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.timeout_ms)
    if version >= 1:
        out += _T.pack(body.allow_replication_factor_change)
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
                    out.append(0)
            out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterPartitionReassignmentsResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    allow_replication_factor_change_2 = True
    if version >= 1:
        (allow_replication_factor_change_2,) = _T.unpack_from(data, at)
        at += 1
    (error_code_3,) = _H.unpack_from(data, at)
    at += 2
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        error_message_4 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        error_message_4 = None
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
            raise too_many("AlterPartitionReassignmentsResponse.responses", size, left)
        responses_5 = []
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
                name_7 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("AlterPartitionReassignmentsResponse.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 8 or left < 0:
                    raise too_many("AlterPartitionReassignmentsResponse.partitions", size, left)
                partitions_8 = []
                for _ in range(size):
                    partition_index_10, error_code_11 = _IH.unpack_from(data, at)
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
                        error_message_12 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        error_message_12 = None
                    else:
                        raise malformed("a negative length")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item9 = _new(
                        ReassignablePartitionResponse, (partition_index_10, error_code_11, error_message_12)
                    )
                    partitions_8.append(item9)
            else:
                raise null_in("AlterPartitionReassignmentsResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(ReassignableTopicResponse, (name_7, partitions_8))
            responses_5.append(item6)
    else:
        raise null_in("AlterPartitionReassignmentsResponse.responses")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        AlterPartitionReassignmentsResponse,
        (throttle_time_ms_1, allow_replication_factor_change_2, error_code_3, error_message_4, responses_5),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    if version >= 1:
        out += _T.pack(body.allow_replication_factor_change)
    out += _H.pack(body.error_code)
    value = body.error_message
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    responses_1 = body.responses
    if responses_1 is None:
        out += b"\x00"
    else:
        size = len(responses_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in responses_1:
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
                    out += _IH.pack(item4.partition_index, item4.error_code)
                    value = item4.error_message
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    out.append(0)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
