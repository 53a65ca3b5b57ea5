"""DeleteGroups (42), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    null_in,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    skip_tags,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
)

_H = Struct(">h")
_HX = Struct(">hx")
_I = Struct(">i")


class DeleteGroupsRequest(NamedTuple):
    """DeleteGroups request, v0-2."""

    groups_names: Sequence[str] = ()

    @staticmethod
    def response_type() -> type[DeleteGroupsResponse]:
        return DeleteGroupsResponse


DeleteGroupsRequest.API_KEY = 42  # type: ignore[attr-defined]


class DeletableGroupResult(NamedTuple):
    """DeletableGroupResult of DeleteGroups."""

    group_id: str = ""
    error_code: int = 0


class DeleteGroupsResponse(NamedTuple):
    """DeleteGroups response, v0-2."""

    throttle_time_ms: int = 0
    results: Sequence[DeletableGroupResult] = ()


DeleteGroupsResponse.API_KEY = 42  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteGroupsRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 2, "DeleteGroupsRequest.groups_names")
    groups_names_1: Any = None if size < 0 else []
    for _ in range(size):
        item2, at = read_string(data, at)
        if item2 is None:
            raise null_in("DeleteGroupsRequest.groups_names")
        groups_names_1.append(item2)
    if groups_names_1 is None:
        raise null_in("DeleteGroupsRequest.groups_names")
    return _new(DeleteGroupsRequest, (groups_names_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    groups_names_1 = body.groups_names
    write_count(out, groups_names_1)
    for item2 in groups_names_1 or ():
        write_string(out, item2)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteGroupsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 1, "DeleteGroupsRequest.groups_names")
    groups_names_1: Any = None if size < 0 else []
    for _ in range(size):
        item2, at = read_compact_string(data, at)
        if item2 is None:
            raise null_in("DeleteGroupsRequest.groups_names")
        groups_names_1.append(item2)
    if groups_names_1 is None:
        raise null_in("DeleteGroupsRequest.groups_names")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteGroupsRequest, (groups_names_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    groups_names_1 = body.groups_names
    write_compact_count(out, groups_names_1)
    for item2 in groups_names_1 or ():
        write_compact_string(out, item2)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteGroupsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 4, "DeleteGroupsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        group_id_4, at = read_string(data, at)
        if group_id_4 is None:
            raise null_in("DeleteGroupsResponse.group_id")
        (error_code_5,) = _H.unpack_from(data, at)
        at += 2
        item3 = _new(DeletableGroupResult, (group_id_4, error_code_5))
        results_2.append(item3)
    if results_2 is None:
        raise null_in("DeleteGroupsResponse.results")
    return _new(DeleteGroupsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    write_count(out, results_1)
    for item2 in results_1 or ():
        write_string(out, item2.group_id)
        out += _H.pack(item2.error_code)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteGroupsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 4, "DeleteGroupsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        group_id_4, at = read_compact_string(data, at)
        if group_id_4 is None:
            raise null_in("DeleteGroupsResponse.group_id")
        (error_code_5,) = _H.unpack_from(data, at)
        at += 2
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(DeletableGroupResult, (group_id_4, error_code_5))
        results_2.append(item3)
    if results_2 is None:
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
    write_compact_count(out, results_1)
    for item2 in results_1 or ():
        write_compact_string(out, item2.group_id)
        out += _HX.pack(item2.error_code)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
