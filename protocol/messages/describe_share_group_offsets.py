"""DescribeShareGroupOffsets (90), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any
from uuid import UUID

from .wire import (
    NO_UUID,
    NamedTuple,
    _new,
    null_in,
    pack,
    read_compact_count,
    read_compact_string,
    read_uuid,
    skip_tags,
    unpack_from,
    write_compact_count,
    write_compact_string,
)

_H = Struct(">h")
_I = Struct(">i")
_IQI = Struct(">iqi")
_Q = Struct(">q")


class DescribeShareGroupOffsetsRequestTopic(NamedTuple):
    """DescribeShareGroupOffsetsRequestTopic of DescribeShareGroupOffsets."""

    topic_name: str = ""
    partitions: Sequence[int] = ()


class DescribeShareGroupOffsetsRequestGroup(NamedTuple):
    """DescribeShareGroupOffsetsRequestGroup of DescribeShareGroupOffsets."""

    group_id: str = ""
    topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None = ()


class DescribeShareGroupOffsetsRequest(NamedTuple):
    """DescribeShareGroupOffsets request, v0-1."""

    groups: Sequence[DescribeShareGroupOffsetsRequestGroup] = ()

    @staticmethod
    def response_type() -> type[DescribeShareGroupOffsetsResponse]:
        return DescribeShareGroupOffsetsResponse


DescribeShareGroupOffsetsRequest.API_KEY = 90  # type: ignore[attr-defined]


class DescribeShareGroupOffsetsResponsePartition(NamedTuple):
    """DescribeShareGroupOffsetsResponsePartition of DescribeShareGroupOffsets."""

    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None


class DescribeShareGroupOffsetsResponseTopic(NamedTuple):
    """DescribeShareGroupOffsetsResponseTopic of DescribeShareGroupOffsets."""

    topic_name: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[DescribeShareGroupOffsetsResponsePartition] = ()


class DescribeShareGroupOffsetsResponseGroup(NamedTuple):
    """DescribeShareGroupOffsetsResponseGroup of DescribeShareGroupOffsets."""

    group_id: str = ""
    topics: Sequence[DescribeShareGroupOffsetsResponseTopic] = ()
    error_code: int = 0
    error_message: str | None = None


class DescribeShareGroupOffsetsResponse(NamedTuple):
    """DescribeShareGroupOffsets response, v0-1."""

    throttle_time_ms: int = 0
    groups: Sequence[DescribeShareGroupOffsetsResponseGroup] = ()


DescribeShareGroupOffsetsResponse.API_KEY = 90  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeShareGroupOffsetsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 3, "DescribeShareGroupOffsetsRequest.groups")
    groups_1: Any = None if size < 0 else []
    for _ in range(size):
        group_id_3, at = read_compact_string(data, at)
        if group_id_3 is None:
            raise null_in("DescribeShareGroupOffsetsRequest.group_id")
        size, at, left = read_compact_count(data, at, left, 3, "DescribeShareGroupOffsetsRequest.topics")
        topics_4: Any = None if size < 0 else []
        for _ in range(size):
            topic_name_6, at = read_compact_string(data, at)
            if topic_name_6 is None:
                raise null_in("DescribeShareGroupOffsetsRequest.topic_name")
            size, at, left = read_compact_count(
                data, at, left, 4, "DescribeShareGroupOffsetsRequest.partitions"
            )
            partitions_7 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if partitions_7 is None:
                raise null_in("DescribeShareGroupOffsetsRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(DescribeShareGroupOffsetsRequestTopic, (topic_name_6, partitions_7))
            topics_4.append(item5)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(DescribeShareGroupOffsetsRequestGroup, (group_id_3, topics_4))
        groups_1.append(item2)
    if groups_1 is None:
        raise null_in("DescribeShareGroupOffsetsRequest.groups")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeShareGroupOffsetsRequest, (groups_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    groups_1 = body.groups
    write_compact_count(out, groups_1)
    for item2 in groups_1 or ():
        write_compact_string(out, item2.group_id)
        topics_3 = item2.topics
        write_compact_count(out, topics_3)
        for item4 in topics_3 or ():
            write_compact_string(out, item4.topic_name)
            partitions_5 = item4.partitions
            write_compact_count(out, partitions_5)
            out += pack(f">{len(partitions_5 or ())}i", *(partitions_5 or ()))
            out.append(0)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeShareGroupOffsetsResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 6, "DescribeShareGroupOffsetsResponse.groups")
    groups_2: Any = None if size < 0 else []
    for _ in range(size):
        group_id_4, at = read_compact_string(data, at)
        if group_id_4 is None:
            raise null_in("DescribeShareGroupOffsetsResponse.group_id")
        size, at, left = read_compact_count(data, at, left, 19, "DescribeShareGroupOffsetsResponse.topics")
        topics_5: Any = None if size < 0 else []
        for _ in range(size):
            topic_name_7, at = read_compact_string(data, at)
            if topic_name_7 is None:
                raise null_in("DescribeShareGroupOffsetsResponse.topic_name")
            topic_id_8 = read_uuid(data[at : at + 16])
            at += 16
            size, at, left = read_compact_count(
                data, at, left, 20, "DescribeShareGroupOffsetsResponse.partitions"
            )
            partitions_9: Any = None if size < 0 else []
            for _ in range(size):
                partition_index_11, start_offset_12, leader_epoch_13 = _IQI.unpack_from(data, at)
                at += 16
                lag_14: Any = -1
                if version >= 1:
                    (lag_14,) = _Q.unpack_from(data, at)
                    at += 8
                (error_code_15,) = _H.unpack_from(data, at)
                at += 2
                error_message_16, at = read_compact_string(data, at)
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item10 = _new(
                    DescribeShareGroupOffsetsResponsePartition,
                    (
                        partition_index_11,
                        start_offset_12,
                        leader_epoch_13,
                        lag_14,
                        error_code_15,
                        error_message_16,
                    ),
                )
                partitions_9.append(item10)
            if partitions_9 is None:
                raise null_in("DescribeShareGroupOffsetsResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(DescribeShareGroupOffsetsResponseTopic, (topic_name_7, topic_id_8, partitions_9))
            topics_5.append(item6)
        if topics_5 is None:
            raise null_in("DescribeShareGroupOffsetsResponse.topics")
        (error_code_17,) = _H.unpack_from(data, at)
        at += 2
        error_message_18, at = read_compact_string(data, at)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(
            DescribeShareGroupOffsetsResponseGroup, (group_id_4, topics_5, error_code_17, error_message_18)
        )
        groups_2.append(item3)
    if groups_2 is None:
        raise null_in("DescribeShareGroupOffsetsResponse.groups")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeShareGroupOffsetsResponse, (throttle_time_ms_1, groups_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    groups_1 = body.groups
    write_compact_count(out, groups_1)
    for item2 in groups_1 or ():
        write_compact_string(out, item2.group_id)
        topics_3 = item2.topics
        write_compact_count(out, topics_3)
        for item4 in topics_3 or ():
            write_compact_string(out, item4.topic_name)
            uuid = item4.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
            partitions_5 = item4.partitions
            write_compact_count(out, partitions_5)
            for item6 in partitions_5 or ():
                out += _IQI.pack(item6.partition_index, item6.start_offset, item6.leader_epoch)
                if version >= 1:
                    out += _Q.pack(item6.lag)
                out += _H.pack(item6.error_code)
                write_compact_string(out, item6.error_message)
                out.append(0)
            out.append(0)
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
