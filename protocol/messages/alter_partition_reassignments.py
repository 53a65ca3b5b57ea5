"""AlterPartitionReassignments (45), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

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

    @staticmethod
    def response_type() -> type[AlterPartitionReassignmentsResponse]:
        return AlterPartitionReassignmentsResponse


AlterPartitionReassignmentsRequest.API_KEY = 45  # type: ignore[attr-defined]


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


AlterPartitionReassignmentsResponse.API_KEY = 45  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterPartitionReassignmentsRequest, int]:
    (timeout_ms_1,) = _I.unpack_from(data, at)
    at += 4
    allow_replication_factor_change_2: Any = True
    if version >= 1:
        (allow_replication_factor_change_2,) = _T.unpack_from(data, at)
        at += 1
    size, at, left = read_compact_count(data, at, left, 3, "AlterPartitionReassignmentsRequest.topics")
    topics_3: Any = None if size < 0 else []
    for _ in range(size):
        name_5, at = read_compact_string(data, at)
        if name_5 is None:
            raise null_in("AlterPartitionReassignmentsRequest.name")
        size, at, left = read_compact_count(
            data, at, left, 6, "AlterPartitionReassignmentsRequest.partitions"
        )
        partitions_6: Any = None if size < 0 else []
        for _ in range(size):
            (partition_index_8,) = _I.unpack_from(data, at)
            at += 4
            size, at, left = read_compact_count(
                data, at, left, 4, "AlterPartitionReassignmentsRequest.replicas"
            )
            replicas_9 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item7 = _new(ReassignablePartition, (partition_index_8, replicas_9))
            partitions_6.append(item7)
        if partitions_6 is None:
            raise null_in("AlterPartitionReassignmentsRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item4 = _new(ReassignableTopic, (name_5, partitions_6))
        topics_3.append(item4)
    if topics_3 is None:
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
    allow_replication_factor_change_2: Any = True
    if version >= 1:
        (allow_replication_factor_change_2,) = _T.unpack_from(data, at)
        at += 1
    (error_code_3,) = _H.unpack_from(data, at)
    at += 2
    error_message_4, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 3, "AlterPartitionReassignmentsResponse.responses")
    responses_5: Any = None if size < 0 else []
    for _ in range(size):
        name_7, at = read_compact_string(data, at)
        if name_7 is None:
            raise null_in("AlterPartitionReassignmentsResponse.name")
        size, at, left = read_compact_count(
            data, at, left, 8, "AlterPartitionReassignmentsResponse.partitions"
        )
        partitions_8: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_10, error_code_11 = _IH.unpack_from(data, at)
            at += 6
            error_message_12, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item9 = _new(ReassignablePartitionResponse, (partition_index_10, error_code_11, error_message_12))
            partitions_8.append(item9)
        if partitions_8 is None:
            raise null_in("AlterPartitionReassignmentsResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item6 = _new(ReassignableTopicResponse, (name_7, partitions_8))
        responses_5.append(item6)
    if responses_5 is None:
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
    write_compact_string(out, body.error_message)
    responses_1 = body.responses
    write_compact_count(out, responses_1)
    for item2 in responses_1 or ():
        write_compact_string(out, item2.name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IH.pack(item4.partition_index, item4.error_code)
            write_compact_string(out, item4.error_message)
            out.append(0)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
