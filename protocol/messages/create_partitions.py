"""CreatePartitions (37), versions 0 to 3. Written by scripts/generate_messages.py: do not edit."""

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

_H = Struct(">h")
_I = Struct(">i")
_IT = Struct(">i?")


class CreatePartitionsAssignment(NamedTuple):
    """CreatePartitionsAssignment of CreatePartitions."""

    broker_ids: Sequence[int] = ()


class CreatePartitionsTopic(NamedTuple):
    """CreatePartitionsTopic of CreatePartitions."""

    name: str = ""
    count: int = 0  # type: ignore[assignment]
    assignments: Sequence[CreatePartitionsAssignment] | None = ()


class CreatePartitionsRequest(NamedTuple):
    """CreatePartitions request, v0-3."""

    topics: Sequence[CreatePartitionsTopic] = ()
    timeout_ms: int = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(NamedTuple):
    """CreatePartitionsTopicResult of CreatePartitions."""

    name: str = ""
    error_code: int = 0
    error_message: str | None = None


class CreatePartitionsResponse(NamedTuple):
    """CreatePartitions response, v0-3."""

    throttle_time_ms: int = 0
    results: Sequence[CreatePartitionsTopicResult] = ()


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[CreatePartitionsRequest, int]:
    del version
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 10 or left < 0:
            raise too_many("CreatePartitionsRequest.topics", size, left)
        topics_1 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("CreatePartitionsRequest.name")
            (count_4,) = _I.unpack_from(data, at)
            at += 4
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("CreatePartitionsRequest.assignments", size, left)
                assignments_5 = []
                for _ in range(size):
                    (size,) = _I.unpack_from(data, at)
                    at += 4
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("CreatePartitionsRequest.broker_ids", size, left)
                        broker_ids_7 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("CreatePartitionsRequest.broker_ids")
                    item6 = _new(CreatePartitionsAssignment, (broker_ids_7,))
                    assignments_5.append(item6)
            elif size == -1:
                assignments_5 = None
            else:
                raise malformed("a negative length")
            item2 = _new(CreatePartitionsTopic, (name_3, count_4, assignments_5))
            topics_1.append(item2)
    else:
        raise null_in("CreatePartitionsRequest.topics")
    timeout_ms_8, validate_only_9 = _IT.unpack_from(data, at)
    at += 5
    return _new(CreatePartitionsRequest, (topics_1, timeout_ms_8, validate_only_9)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(topics_1))
        for item2 in topics_1:
            value = item2.name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            out += _I.pack(item2.count)
            assignments_3 = item2.assignments
            if assignments_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(assignments_3))
                for item4 in assignments_3:
                    broker_ids_5 = item4.broker_ids
                    if broker_ids_5 is None:
                        out += b"\xff\xff\xff\xff"
                    else:
                        out += _I.pack(len(broker_ids_5))
                        out += pack(f">{len(broker_ids_5)}i", *broker_ids_5)
    out += _IT.pack(body.timeout_ms, body.validate_only)


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[CreatePartitionsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 7 or left < 0:
            raise too_many("CreatePartitionsRequest.topics", size, left)
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
            else:
                raise null_in("CreatePartitionsRequest.name")
            (count_4,) = _I.unpack_from(data, at)
            at += 4
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 2 or left < 0:
                    raise too_many("CreatePartitionsRequest.assignments", size, left)
                assignments_5 = []
                for _ in range(size):
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("CreatePartitionsRequest.broker_ids", size, left)
                        broker_ids_7 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("CreatePartitionsRequest.broker_ids")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item6 = _new(CreatePartitionsAssignment, (broker_ids_7,))
                    assignments_5.append(item6)
            elif size == -1:
                assignments_5 = None
            else:
                raise malformed("a negative length")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(CreatePartitionsTopic, (name_3, count_4, assignments_5))
            topics_1.append(item2)
    else:
        raise null_in("CreatePartitionsRequest.topics")
    timeout_ms_8, validate_only_9 = _IT.unpack_from(data, at)
    at += 5
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(CreatePartitionsRequest, (topics_1, timeout_ms_8, validate_only_9)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
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
            out += _I.pack(item2.count)
            assignments_3 = item2.assignments
            if assignments_3 is None:
                out += b"\x00"
            else:
                size = len(assignments_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in assignments_3:
                    broker_ids_5 = item4.broker_ids
                    if broker_ids_5 is None:
                        out += b"\x00"
                    else:
                        size = len(broker_ids_5) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += pack(f">{len(broker_ids_5)}i", *broker_ids_5)
                    out.append(0)
            out.append(0)
    out += _IT.pack(body.timeout_ms, body.validate_only)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[CreatePartitionsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("CreatePartitionsResponse.results", size, left)
        results_2 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("CreatePartitionsResponse.name")
            (error_code_5,) = _H.unpack_from(data, at)
            at += 2
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                error_message_6 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                error_message_6 = None
            else:
                raise malformed("a negative length")
            item3 = _new(CreatePartitionsTopicResult, (name_4, error_code_5, error_message_6))
            results_2.append(item3)
    else:
        raise null_in("CreatePartitionsResponse.results")
    return _new(CreatePartitionsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    if results_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(results_1))
        for item2 in results_1:
            value = item2.name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            out += _H.pack(item2.error_code)
            value = item2.error_message
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[CreatePartitionsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 5 or left < 0:
            raise too_many("CreatePartitionsResponse.results", size, left)
        results_2 = []
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
                raise null_in("CreatePartitionsResponse.name")
            (error_code_5,) = _H.unpack_from(data, at)
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
                error_message_6 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                error_message_6 = None
            else:
                raise malformed("a negative length")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(CreatePartitionsTopicResult, (name_4, error_code_5, error_message_6))
            results_2.append(item3)
    else:
        raise null_in("CreatePartitionsResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(CreatePartitionsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    if results_1 is None:
        out += b"\x00"
    else:
        size = len(results_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in results_1:
            value = item2.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _H.pack(item2.error_code)
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
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
