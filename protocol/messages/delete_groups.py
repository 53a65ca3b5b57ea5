"""DeleteGroups (42), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_H = Struct(">h")
_I = Struct(">i")


class DeleteGroupsRequest(NamedTuple):
    """DeleteGroups request, v0-2."""

    groups_names: Sequence[str] = ()


class DeletableGroupResult(NamedTuple):
    """DeletableGroupResult of DeleteGroups."""

    group_id: str = ""
    error_code: int = 0


class DeleteGroupsResponse(NamedTuple):
    """DeleteGroups response, v0-2."""

    throttle_time_ms: int = 0
    results: Sequence[DeletableGroupResult] = ()


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteGroupsRequest, int]:
    del version
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("DeleteGroupsRequest.groups_names", size, left)
        groups_names_1 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                item2 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DeleteGroupsRequest.groups_names")
            groups_names_1.append(item2)
    else:
        raise null_in("DeleteGroupsRequest.groups_names")
    return _new(DeleteGroupsRequest, (groups_names_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    groups_names_1 = body.groups_names
    if groups_names_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(groups_names_1))
        for item2 in groups_names_1:
            value = item2
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteGroupsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > len(data) - at or left < 0:
            raise too_many("DeleteGroupsRequest.groups_names", size, left)
        groups_names_1 = []
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
                item2 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DeleteGroupsRequest.groups_names")
            groups_names_1.append(item2)
    else:
        raise null_in("DeleteGroupsRequest.groups_names")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteGroupsRequest, (groups_names_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    groups_names_1 = body.groups_names
    if groups_names_1 is None:
        out += b"\x00"
    else:
        size = len(groups_names_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in groups_names_1:
            value = item2
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteGroupsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("DeleteGroupsResponse.results", size, left)
        results_2 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                group_id_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DeleteGroupsResponse.group_id")
            (error_code_5,) = _H.unpack_from(data, at)
            at += 2
            item3 = _new(DeletableGroupResult, (group_id_4, error_code_5))
            results_2.append(item3)
    else:
        raise null_in("DeleteGroupsResponse.results")
    return _new(DeleteGroupsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    if results_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(results_1))
        for item2 in results_1:
            value = item2.group_id
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            out += _H.pack(item2.error_code)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteGroupsResponse, int]:
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
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("DeleteGroupsResponse.results", size, left)
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
                group_id_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DeleteGroupsResponse.group_id")
            (error_code_5,) = _H.unpack_from(data, at)
            at += 2
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(DeletableGroupResult, (group_id_4, error_code_5))
            results_2.append(item3)
    else:
        raise null_in("DeleteGroupsResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteGroupsResponse, (throttle_time_ms_1, results_2)), at


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
            value = item2.group_id
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _H.pack(item2.error_code)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
