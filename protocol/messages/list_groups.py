"""ListGroups (16), versions 0 to 5. Written by scripts/generate_messages.py: do not edit."""

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
_I = Struct(">i")
_IH = Struct(">ih")


class ListGroupsRequest(NamedTuple):
    """ListGroups request, v0-5."""

    states_filter: Sequence[str] = ()
    types_filter: Sequence[str] = ()

    @staticmethod
    def response_type() -> type[ListGroupsResponse]:
        return ListGroupsResponse


ListGroupsRequest.API_KEY = 16  # type: ignore[attr-defined]


class ListedGroup(NamedTuple):
    """ListedGroup of ListGroups."""

    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


class ListGroupsResponse(NamedTuple):
    """ListGroups response, v0-5."""

    throttle_time_ms: int = 0
    error_code: int = 0
    groups: Sequence[ListedGroup] = ()


ListGroupsResponse.API_KEY = 16  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[ListGroupsRequest, int]:
    del version
    del left
    return _new(ListGroupsRequest, ((), ())), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del out, body, version


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[ListGroupsRequest, int]:
    states_filter_1: Any = ()
    if version >= 4:
        size, at, left = read_compact_count(data, at, left, 1, "ListGroupsRequest.states_filter")
        states_filter_1 = None if size < 0 else []
        for _ in range(size):
            item2, at = read_compact_string(data, at)
            if item2 is None:
                raise null_in("ListGroupsRequest.states_filter")
            states_filter_1.append(item2)
        if states_filter_1 is None:
            raise null_in("ListGroupsRequest.states_filter")
    types_filter_3: Any = ()
    if version >= 5:
        size, at, left = read_compact_count(data, at, left, 1, "ListGroupsRequest.types_filter")
        types_filter_3 = None if size < 0 else []
        for _ in range(size):
            item4, at = read_compact_string(data, at)
            if item4 is None:
                raise null_in("ListGroupsRequest.types_filter")
            types_filter_3.append(item4)
        if types_filter_3 is None:
            raise null_in("ListGroupsRequest.types_filter")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListGroupsRequest, (states_filter_1, types_filter_3)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    if version >= 4:
        states_filter_1 = body.states_filter
        write_compact_count(out, states_filter_1)
        for item2 in states_filter_1 or ():
            write_compact_string(out, item2)
    if version >= 5:
        types_filter_3 = body.types_filter
        write_compact_count(out, types_filter_3)
        for item4 in types_filter_3 or ():
            write_compact_string(out, item4)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 3 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 3 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms_1: Any = 0
    if version >= 1:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (error_code_2,) = _H.unpack_from(data, at)
    at += 2
    size, at, left = read_count(data, at, left, 4, "ListGroupsResponse.groups")
    groups_3: Any = None if size < 0 else []
    for _ in range(size):
        group_id_5, at = read_string(data, at)
        if group_id_5 is None:
            raise null_in("ListGroupsResponse.group_id")
        protocol_type_6, at = read_string(data, at)
        if protocol_type_6 is None:
            raise null_in("ListGroupsResponse.protocol_type")
        item4 = _new(ListedGroup, (group_id_5, protocol_type_6, "", ""))
        groups_3.append(item4)
    if groups_3 is None:
        raise null_in("ListGroupsResponse.groups")
    return _new(ListGroupsResponse, (throttle_time_ms_1, error_code_2, groups_3)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        out += _I.pack(body.throttle_time_ms)
    out += _H.pack(body.error_code)
    groups_1 = body.groups
    write_count(out, groups_1)
    for item2 in groups_1 or ():
        write_string(out, item2.group_id)
        write_string(out, item2.protocol_type)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size, at, left = read_compact_count(data, at, left, 3, "ListGroupsResponse.groups")
    groups_3: Any = None if size < 0 else []
    for _ in range(size):
        group_id_5, at = read_compact_string(data, at)
        if group_id_5 is None:
            raise null_in("ListGroupsResponse.group_id")
        protocol_type_6, at = read_compact_string(data, at)
        if protocol_type_6 is None:
            raise null_in("ListGroupsResponse.protocol_type")
        group_state_7: Any = ""
        if version >= 4:
            group_state_7, at = read_compact_string(data, at)
            if group_state_7 is None:
                raise null_in("ListGroupsResponse.group_state")
        group_type_8: Any = ""
        if version >= 5:
            group_type_8, at = read_compact_string(data, at)
            if group_type_8 is None:
                raise null_in("ListGroupsResponse.group_type")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item4 = _new(ListedGroup, (group_id_5, protocol_type_6, group_state_7, group_type_8))
        groups_3.append(item4)
    if groups_3 is None:
        raise null_in("ListGroupsResponse.groups")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListGroupsResponse, (throttle_time_ms_1, error_code_2, groups_3)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    groups_1 = body.groups
    write_compact_count(out, groups_1)
    for item2 in groups_1 or ():
        write_compact_string(out, item2.group_id)
        write_compact_string(out, item2.protocol_type)
        if version >= 4:
            write_compact_string(out, item2.group_state)
        if version >= 5:
            write_compact_string(out, item2.group_type)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
