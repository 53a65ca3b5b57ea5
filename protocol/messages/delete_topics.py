"""DeleteTopics (20), versions 1 to 6. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

from ._wire import (
    _new,
    BYTES,
    long_varint,
    malformed,
    NO_UUID,
    null_in,
    read_uuid,
    skip_tags,
    too_many,
    varint,
)

_H = Struct(">h")
_I = Struct(">i")


class DeleteTopicState(NamedTuple):
    """DeleteTopicState of DeleteTopics."""

    name: str | None = None
    topic_id: UUID | None = None


class DeleteTopicsRequest(NamedTuple):
    """DeleteTopics request, v1-6."""

    topics: Sequence[DeleteTopicState] = ()
    topic_names: Sequence[str] = ()
    timeout_ms: int = 0


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


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteTopicsRequest, int]:
    del version
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("DeleteTopicsRequest.topic_names", size, left)
        topic_names_1 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                item2 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DeleteTopicsRequest.topic_names")
            topic_names_1.append(item2)
    else:
        raise null_in("DeleteTopicsRequest.topic_names")
    (timeout_ms_3,) = _I.unpack_from(data, at)
    at += 4
    return _new(DeleteTopicsRequest, ((), topic_names_1, timeout_ms_3)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    topic_names_1 = body.topic_names
    if topic_names_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(topic_names_1))
        for item2 in topic_names_1:
            value = item2
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
    out += _I.pack(body.timeout_ms)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteTopicsRequest, int]:
    topics_1 = ()
    if version >= 6:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 18 or left < 0:
                raise too_many("DeleteTopicsRequest.topics", size, left)
            topics_1 = []
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
                    name_3 = str(data[at:end], "utf-8")
                    at = end
                elif size == -1:
                    name_3 = None
                else:
                    raise malformed("a negative length")
                topic_id_4 = read_uuid(data[at : at + 16])
                at += 16
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item2 = _new(DeleteTopicState, (name_3, topic_id_4))
                topics_1.append(item2)
        else:
            raise null_in("DeleteTopicsRequest.topics")
    topic_names_5 = ()
    if version <= 5:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > len(data) - at or left < 0:
                raise too_many("DeleteTopicsRequest.topic_names", size, left)
            topic_names_5 = []
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
                    item6 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("DeleteTopicsRequest.topic_names")
                topic_names_5.append(item6)
        else:
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
                uuid = item2.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
                out.append(0)
    if version <= 5:
        topic_names_3 = body.topic_names
        if topic_names_3 is None:
            out += b"\x00"
        else:
            size = len(topic_names_3) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item4 in topic_names_3:
                value = item4
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
    out += _I.pack(body.timeout_ms)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 4 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 4 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteTopicsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("DeleteTopicsResponse.responses", size, left)
        responses_2 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DeleteTopicsResponse.name")
            (error_code_5,) = _H.unpack_from(data, at)
            at += 2
            item3 = _new(DeletableTopicResult, (name_4, None, error_code_5, None))
            responses_2.append(item3)
    else:
        raise null_in("DeleteTopicsResponse.responses")
    return _new(DeleteTopicsResponse, (throttle_time_ms_1, responses_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    responses_1 = body.responses
    if responses_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(responses_1))
        for item2 in responses_1:
            value = item2.name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            out += _H.pack(item2.error_code)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteTopicsResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("DeleteTopicsResponse.responses", size, left)
        responses_2 = []
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
            elif size == -1 and version >= 6:
                name_4 = None
            else:
                raise null_in("DeleteTopicsResponse.name")
            topic_id_5 = None
            if version >= 6:
                topic_id_5 = read_uuid(data[at : at + 16])
                at += 16
            (error_code_6,) = _H.unpack_from(data, at)
            at += 2
            error_message_7 = None
            if version >= 5:
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    if size > 32767:
                        raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                    end = at + size
                    error_message_7 = str(data[at:end], "utf-8")
                    at = end
                elif size == -1:
                    error_message_7 = None
                else:
                    raise malformed("a negative length")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(DeletableTopicResult, (name_4, topic_id_5, error_code_6, error_message_7))
            responses_2.append(item3)
    else:
        raise null_in("DeleteTopicsResponse.responses")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteTopicsResponse, (throttle_time_ms_1, responses_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
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
            if version >= 6:
                uuid = item2.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
            out += _H.pack(item2.error_code)
            if version >= 5:
                value = item2.error_message
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 4 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 4 else _write_response_classic
