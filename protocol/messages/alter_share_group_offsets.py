"""AlterShareGroupOffsets (91), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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
    read_compact_count,
    read_compact_string,
    read_uuid,
    skip_tags,
    write_compact_count,
    write_compact_string,
)

_IH = Struct(">ih")
_IQ = Struct(">iq")
_IQX = Struct(">iqx")


class AlterShareGroupOffsetsRequestPartition(NamedTuple):
    """AlterShareGroupOffsetsRequestPartition of AlterShareGroupOffsets."""

    partition_index: int = 0
    start_offset: int = 0


class AlterShareGroupOffsetsRequestTopic(NamedTuple):
    """AlterShareGroupOffsetsRequestTopic of AlterShareGroupOffsets."""

    topic_name: str = ""
    partitions: Sequence[AlterShareGroupOffsetsRequestPartition] = ()


class AlterShareGroupOffsetsRequest(NamedTuple):
    """AlterShareGroupOffsets request, v0-0."""

    group_id: str = ""
    topics: Sequence[AlterShareGroupOffsetsRequestTopic] = ()

    @staticmethod
    def response_type() -> type[AlterShareGroupOffsetsResponse]:
        return AlterShareGroupOffsetsResponse


AlterShareGroupOffsetsRequest.API_KEY = 91  # type: ignore[attr-defined]


class AlterShareGroupOffsetsResponsePartition(NamedTuple):
    """AlterShareGroupOffsetsResponsePartition of AlterShareGroupOffsets."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


class AlterShareGroupOffsetsResponseTopic(NamedTuple):
    """AlterShareGroupOffsetsResponseTopic of AlterShareGroupOffsets."""

    topic_name: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[AlterShareGroupOffsetsResponsePartition] = ()


class AlterShareGroupOffsetsResponse(NamedTuple):
    """AlterShareGroupOffsets response, v0-0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: Sequence[AlterShareGroupOffsetsResponseTopic] = ()


AlterShareGroupOffsetsResponse.API_KEY = 91  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterShareGroupOffsetsRequest, int]:
    del version
    group_id_1, at = read_compact_string(data, at)
    if group_id_1 is None:
        raise null_in("AlterShareGroupOffsetsRequest.group_id")
    size, at, left = read_compact_count(data, at, left, 3, "AlterShareGroupOffsetsRequest.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_name_4, at = read_compact_string(data, at)
        if topic_name_4 is None:
            raise null_in("AlterShareGroupOffsetsRequest.topic_name")
        size, at, left = read_compact_count(data, at, left, 13, "AlterShareGroupOffsetsRequest.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_7, start_offset_8 = _IQ.unpack_from(data, at)
            at += 12
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(AlterShareGroupOffsetsRequestPartition, (partition_index_7, start_offset_8))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("AlterShareGroupOffsetsRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(AlterShareGroupOffsetsRequestTopic, (topic_name_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("AlterShareGroupOffsetsRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterShareGroupOffsetsRequest, (group_id_1, topics_2)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_string(out, body.group_id)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.topic_name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IQX.pack(item4.partition_index, item4.start_offset)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterShareGroupOffsetsResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    error_message_3, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 19, "AlterShareGroupOffsetsResponse.responses")
    responses_4: Any = None if size < 0 else []
    for _ in range(size):
        topic_name_6, at = read_compact_string(data, at)
        if topic_name_6 is None:
            raise null_in("AlterShareGroupOffsetsResponse.topic_name")
        topic_id_7 = read_uuid(data[at : at + 16])
        at += 16
        size, at, left = read_compact_count(data, at, left, 8, "AlterShareGroupOffsetsResponse.partitions")
        partitions_8: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_10, error_code_11 = _IH.unpack_from(data, at)
            at += 6
            error_message_12, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item9 = _new(
                AlterShareGroupOffsetsResponsePartition, (partition_index_10, error_code_11, error_message_12)
            )
            partitions_8.append(item9)
        if partitions_8 is None:
            raise null_in("AlterShareGroupOffsetsResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item5 = _new(AlterShareGroupOffsetsResponseTopic, (topic_name_6, topic_id_7, partitions_8))
        responses_4.append(item5)
    if responses_4 is None:
        raise null_in("AlterShareGroupOffsetsResponse.responses")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        AlterShareGroupOffsetsResponse, (throttle_time_ms_1, error_code_2, error_message_3, responses_4)
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_compact_string(out, body.error_message)
    responses_1 = body.responses
    write_compact_count(out, responses_1)
    for item2 in responses_1 or ():
        write_compact_string(out, item2.topic_name)
        uuid = item2.topic_id
        out += NO_UUID if uuid is None else uuid.bytes
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
