"""CreatePartitions (37), versions 0 to 3. Written by scripts/generate_messages.py: do not edit."""

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
    read_count,
    read_string,
    skip_tags,
    unpack_from,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
)

_H = Struct(">h")
_I = Struct(">i")
_IT = Struct(">i?")
_ITX = Struct(">i?x")


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

    @staticmethod
    def response_type() -> type[CreatePartitionsResponse]:
        return CreatePartitionsResponse


CreatePartitionsRequest.API_KEY = 37  # type: ignore[attr-defined]


class CreatePartitionsTopicResult(NamedTuple):
    """CreatePartitionsTopicResult of CreatePartitions."""

    name: str = ""
    error_code: int = 0
    error_message: str | None = None


class CreatePartitionsResponse(NamedTuple):
    """CreatePartitions response, v0-3."""

    throttle_time_ms: int = 0
    results: Sequence[CreatePartitionsTopicResult] = ()


CreatePartitionsResponse.API_KEY = 37  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[CreatePartitionsRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 10, "CreatePartitionsRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        name_3, at = read_string(data, at)
        if name_3 is None:
            raise null_in("CreatePartitionsRequest.name")
        (count_4,) = _I.unpack_from(data, at)
        at += 4
        size, at, left = read_count(data, at, left, 4, "CreatePartitionsRequest.assignments")
        assignments_5: Any = None if size < 0 else []
        for _ in range(size):
            size, at, left = read_count(data, at, left, 4, "CreatePartitionsRequest.broker_ids")
            broker_ids_7 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if broker_ids_7 is None:
                raise null_in("CreatePartitionsRequest.broker_ids")
            item6 = _new(CreatePartitionsAssignment, (broker_ids_7,))
            assignments_5.append(item6)
        item2 = _new(CreatePartitionsTopic, (name_3, count_4, assignments_5))
        topics_1.append(item2)
    if topics_1 is None:
        raise null_in("CreatePartitionsRequest.topics")
    timeout_ms_8, validate_only_9 = _IT.unpack_from(data, at)
    at += 5
    return _new(CreatePartitionsRequest, (topics_1, timeout_ms_8, validate_only_9)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.name)
        out += _I.pack(item2.count)
        assignments_3 = item2.assignments
        write_count(out, assignments_3)
        for item4 in assignments_3 or ():
            broker_ids_5 = item4.broker_ids
            write_count(out, broker_ids_5)
            out += pack(f">{len(broker_ids_5 or ())}i", *(broker_ids_5 or ()))
    out += _IT.pack(body.timeout_ms, body.validate_only)


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[CreatePartitionsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 7, "CreatePartitionsRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        name_3, at = read_compact_string(data, at)
        if name_3 is None:
            raise null_in("CreatePartitionsRequest.name")
        (count_4,) = _I.unpack_from(data, at)
        at += 4
        size, at, left = read_compact_count(data, at, left, 2, "CreatePartitionsRequest.assignments")
        assignments_5: Any = None if size < 0 else []
        for _ in range(size):
            size, at, left = read_compact_count(data, at, left, 4, "CreatePartitionsRequest.broker_ids")
            broker_ids_7 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if broker_ids_7 is None:
                raise null_in("CreatePartitionsRequest.broker_ids")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(CreatePartitionsAssignment, (broker_ids_7,))
            assignments_5.append(item6)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(CreatePartitionsTopic, (name_3, count_4, assignments_5))
        topics_1.append(item2)
    if topics_1 is None:
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
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        out += _I.pack(item2.count)
        assignments_3 = item2.assignments
        write_compact_count(out, assignments_3)
        for item4 in assignments_3 or ():
            broker_ids_5 = item4.broker_ids
            write_compact_count(out, broker_ids_5)
            out += pack(f">{len(broker_ids_5 or ())}i", *(broker_ids_5 or ()))
            out.append(0)
        out.append(0)
    out += _ITX.pack(body.timeout_ms, body.validate_only)


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
    size, at, left = read_count(data, at, left, 6, "CreatePartitionsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_string(data, at)
        if name_4 is None:
            raise null_in("CreatePartitionsResponse.name")
        (error_code_5,) = _H.unpack_from(data, at)
        at += 2
        error_message_6, at = read_string(data, at)
        item3 = _new(CreatePartitionsTopicResult, (name_4, error_code_5, error_message_6))
        results_2.append(item3)
    if results_2 is None:
        raise null_in("CreatePartitionsResponse.results")
    return _new(CreatePartitionsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    write_count(out, results_1)
    for item2 in results_1 or ():
        write_string(out, item2.name)
        out += _H.pack(item2.error_code)
        write_string(out, item2.error_message)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[CreatePartitionsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 5, "CreatePartitionsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_compact_string(data, at)
        if name_4 is None:
            raise null_in("CreatePartitionsResponse.name")
        (error_code_5,) = _H.unpack_from(data, at)
        at += 2
        error_message_6, at = read_compact_string(data, at)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(CreatePartitionsTopicResult, (name_4, error_code_5, error_message_6))
        results_2.append(item3)
    if results_2 is None:
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
    write_compact_count(out, results_1)
    for item2 in results_1 or ():
        write_compact_string(out, item2.name)
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
