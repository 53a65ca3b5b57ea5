"""DeleteTopics (20), versions 1 to 6. Written by scripts/generate_messages.py: do not edit."""

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
    read_count,
    read_string,
    read_uuid,
    skip_tags,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
)

_H = Struct(">h")
_I = Struct(">i")
_IX = Struct(">ix")


class DeleteTopicState(NamedTuple):
    """DeleteTopicState of DeleteTopics."""

    name: str | None = None
    topic_id: UUID | None = None


class DeleteTopicsRequest(NamedTuple):
    """DeleteTopics request, v1-6."""

    topics: Sequence[DeleteTopicState] = ()
    topic_names: Sequence[str] = ()
    timeout_ms: int = 0

    @staticmethod
    def response_type() -> type[DeleteTopicsResponse]:
        return DeleteTopicsResponse


DeleteTopicsRequest.API_KEY = 20  # type: ignore[attr-defined]


class DeletableTopicResult(NamedTuple):
    """DeletableTopicResult of DeleteTopics."""

    name: str | None = ""
    topic_id: UUID | None = None
    error_code: int = 0
    error_message: str | None = None


class DeleteTopicsResponse(NamedTuple):
    """DeleteTopics response, v1-6."""

    throttle_time_ms: int = 0
    responses: Sequence[DeletableTopicResult] = ()


DeleteTopicsResponse.API_KEY = 20  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteTopicsRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 2, "DeleteTopicsRequest.topic_names")
    topic_names_1: Any = None if size < 0 else []
    for _ in range(size):
        item2, at = read_string(data, at)
        if item2 is None:
            raise null_in("DeleteTopicsRequest.topic_names")
        topic_names_1.append(item2)
    if topic_names_1 is None:
        raise null_in("DeleteTopicsRequest.topic_names")
    (timeout_ms_3,) = _I.unpack_from(data, at)
    at += 4
    return _new(DeleteTopicsRequest, ((), topic_names_1, timeout_ms_3)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    topic_names_1 = body.topic_names
    write_count(out, topic_names_1)
    for item2 in topic_names_1 or ():
        write_string(out, item2)
    out += _I.pack(body.timeout_ms)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteTopicsRequest, int]:
    topics_1: Any = ()
    if version >= 6:
        size, at, left = read_compact_count(data, at, left, 18, "DeleteTopicsRequest.topics")
        topics_1 = None if size < 0 else []
        for _ in range(size):
            name_3, at = read_compact_string(data, at)
            topic_id_4 = read_uuid(data[at : at + 16])
            at += 16
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(DeleteTopicState, (name_3, topic_id_4))
            topics_1.append(item2)
        if topics_1 is None:
            raise null_in("DeleteTopicsRequest.topics")
    topic_names_5: Any = ()
    if version <= 5:
        size, at, left = read_compact_count(data, at, left, 1, "DeleteTopicsRequest.topic_names")
        topic_names_5 = None if size < 0 else []
        for _ in range(size):
            item6, at = read_compact_string(data, at)
            if item6 is None:
                raise null_in("DeleteTopicsRequest.topic_names")
            topic_names_5.append(item6)
        if topic_names_5 is None:
            raise null_in("DeleteTopicsRequest.topic_names")
    (timeout_ms_7,) = _I.unpack_from(data, at)
    at += 4
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteTopicsRequest, (topics_1, topic_names_5, timeout_ms_7)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    if version >= 6:
        topics_1 = body.topics
        write_compact_count(out, topics_1)
        for item2 in topics_1 or ():
            write_compact_string(out, item2.name)
            uuid = item2.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
            out.append(0)
    if version <= 5:
        topic_names_3 = body.topic_names
        write_compact_count(out, topic_names_3)
        for item4 in topic_names_3 or ():
            write_compact_string(out, item4)
    out += _IX.pack(body.timeout_ms)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 4 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 4 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteTopicsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 4, "DeleteTopicsResponse.responses")
    responses_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_string(data, at)
        if name_4 is None:
            raise null_in("DeleteTopicsResponse.name")
        (error_code_5,) = _H.unpack_from(data, at)
        at += 2
        item3 = _new(DeletableTopicResult, (name_4, None, error_code_5, None))
        responses_2.append(item3)
    if responses_2 is None:
        raise null_in("DeleteTopicsResponse.responses")
    return _new(DeleteTopicsResponse, (throttle_time_ms_1, responses_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    responses_1 = body.responses
    write_count(out, responses_1)
    for item2 in responses_1 or ():
        write_string(out, item2.name)
        out += _H.pack(item2.error_code)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteTopicsResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 4, "DeleteTopicsResponse.responses")
    responses_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_compact_string(data, at)
        if name_4 is None and not (version >= 6):
            raise null_in("DeleteTopicsResponse.name")
        topic_id_5: Any = None
        if version >= 6:
            topic_id_5 = read_uuid(data[at : at + 16])
            at += 16
        (error_code_6,) = _H.unpack_from(data, at)
        at += 2
        error_message_7: Any = None
        if version >= 5:
            error_message_7, at = read_compact_string(data, at)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(DeletableTopicResult, (name_4, topic_id_5, error_code_6, error_message_7))
        responses_2.append(item3)
    if responses_2 is None:
        raise null_in("DeleteTopicsResponse.responses")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteTopicsResponse, (throttle_time_ms_1, responses_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    responses_1 = body.responses
    write_compact_count(out, responses_1)
    for item2 in responses_1 or ():
        write_compact_string(out, item2.name)
        if version >= 6:
            uuid = item2.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
        out += _H.pack(item2.error_code)
        if version >= 5:
            write_compact_string(out, item2.error_message)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 4 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 4 else _write_response_classic
