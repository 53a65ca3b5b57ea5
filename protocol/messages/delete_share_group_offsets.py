"""DeleteShareGroupOffsets (92), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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

_H = Struct(">h")
_IH = Struct(">ih")


class DeleteShareGroupOffsetsRequestTopic(NamedTuple):
    """DeleteShareGroupOffsetsRequestTopic of DeleteShareGroupOffsets."""

    topic_name: str = ""


class DeleteShareGroupOffsetsRequest(NamedTuple):
    """DeleteShareGroupOffsets request, v0-0."""

    group_id: str = ""
    topics: Sequence[DeleteShareGroupOffsetsRequestTopic] = ()

    @staticmethod
    def response_type() -> type[DeleteShareGroupOffsetsResponse]:
        return DeleteShareGroupOffsetsResponse


DeleteShareGroupOffsetsRequest.API_KEY = 92  # type: ignore[attr-defined]


class DeleteShareGroupOffsetsResponseTopic(NamedTuple):
    """DeleteShareGroupOffsetsResponseTopic of DeleteShareGroupOffsets."""

    topic_name: str = ""
    topic_id: UUID | None = None
    error_code: int = 0
    error_message: str | None = None


class DeleteShareGroupOffsetsResponse(NamedTuple):
    """DeleteShareGroupOffsets response, v0-0."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: Sequence[DeleteShareGroupOffsetsResponseTopic] = ()


DeleteShareGroupOffsetsResponse.API_KEY = 92  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DeleteShareGroupOffsetsRequest, int]:
    del version
    group_id_1, at = read_compact_string(data, at)
    if group_id_1 is None:
        raise null_in("DeleteShareGroupOffsetsRequest.group_id")
    size, at, left = read_compact_count(data, at, left, 2, "DeleteShareGroupOffsetsRequest.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_name_4, at = read_compact_string(data, at)
        if topic_name_4 is None:
            raise null_in("DeleteShareGroupOffsetsRequest.topic_name")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(DeleteShareGroupOffsetsRequestTopic, (topic_name_4,))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("DeleteShareGroupOffsetsRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteShareGroupOffsetsRequest, (group_id_1, topics_2)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_string(out, body.group_id)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.topic_name)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DeleteShareGroupOffsetsResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    error_message_3, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 21, "DeleteShareGroupOffsetsResponse.responses")
    responses_4: Any = None if size < 0 else []
    for _ in range(size):
        topic_name_6, at = read_compact_string(data, at)
        if topic_name_6 is None:
            raise null_in("DeleteShareGroupOffsetsResponse.topic_name")
        topic_id_7 = read_uuid(data[at : at + 16])
        at += 16
        (error_code_8,) = _H.unpack_from(data, at)
        at += 2
        error_message_9, at = read_compact_string(data, at)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item5 = _new(
            DeleteShareGroupOffsetsResponseTopic, (topic_name_6, topic_id_7, error_code_8, error_message_9)
        )
        responses_4.append(item5)
    if responses_4 is None:
        raise null_in("DeleteShareGroupOffsetsResponse.responses")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        DeleteShareGroupOffsetsResponse, (throttle_time_ms_1, error_code_2, error_message_3, responses_4)
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
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
