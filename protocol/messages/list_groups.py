"""ListGroups (16), versions 0 to 5. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")


class ListGroupsRequest(NamedTuple):
    """ListGroups request, v0-5."""

    states_filter: Sequence[str] = ()
    types_filter: Sequence[str] = ()


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


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[ListGroupsRequest, int]:
    del version
    del left
    return _new(ListGroupsRequest, ((), ())), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del out, body, version


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[ListGroupsRequest, int]:
    states_filter_1 = ()
    if version >= 4:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > len(data) - at or left < 0:
                raise too_many("ListGroupsRequest.states_filter", size, left)
            states_filter_1 = []
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
                    raise null_in("ListGroupsRequest.states_filter")
                states_filter_1.append(item2)
        else:
            raise null_in("ListGroupsRequest.states_filter")
    types_filter_3 = ()
    if version >= 5:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > len(data) - at or left < 0:
                raise too_many("ListGroupsRequest.types_filter", size, left)
            types_filter_3 = []
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
                    item4 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("ListGroupsRequest.types_filter")
                types_filter_3.append(item4)
        else:
            raise null_in("ListGroupsRequest.types_filter")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListGroupsRequest, (states_filter_1, types_filter_3)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    if version >= 4:
        states_filter_1 = body.states_filter
        if states_filter_1 is None:
            out += b"\x00"
        else:
            size = len(states_filter_1) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item2 in states_filter_1:
                value = item2
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
    if version >= 5:
        types_filter_3 = body.types_filter
        if types_filter_3 is None:
            out += b"\x00"
        else:
            size = len(types_filter_3) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item4 in types_filter_3:
                value = item4
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 3 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 3 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms_1 = 0
    if version >= 1:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (error_code_2,) = _H.unpack_from(data, at)
    at += 2
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("ListGroupsResponse.groups", size, left)
        groups_3 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                group_id_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListGroupsResponse.group_id")
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                protocol_type_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListGroupsResponse.protocol_type")
            item4 = _new(ListedGroup, (group_id_5, protocol_type_6, "", ""))
            groups_3.append(item4)
    else:
        raise null_in("ListGroupsResponse.groups")
    return _new(ListGroupsResponse, (throttle_time_ms_1, error_code_2, groups_3)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        out += _I.pack(body.throttle_time_ms)
    out += _H.pack(body.error_code)
    groups_1 = body.groups
    if groups_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(groups_1))
        for item2 in groups_1:
            value = item2.group_id
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            value = item2.protocol_type
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("ListGroupsResponse.groups", size, left)
        groups_3 = []
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
                group_id_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListGroupsResponse.group_id")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                protocol_type_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListGroupsResponse.protocol_type")
            group_state_7 = ""
            if version >= 4:
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    if size > 32767:
                        raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                    end = at + size
                    group_state_7 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("ListGroupsResponse.group_state")
            group_type_8 = ""
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
                    group_type_8 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("ListGroupsResponse.group_type")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item4 = _new(ListedGroup, (group_id_5, protocol_type_6, group_state_7, group_type_8))
            groups_3.append(item4)
    else:
        raise null_in("ListGroupsResponse.groups")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListGroupsResponse, (throttle_time_ms_1, error_code_2, groups_3)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    groups_1 = body.groups
    if groups_1 is None:
        out += b"\x00"
    else:
        size = len(groups_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in groups_1:
            value = item2.group_id
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.protocol_type
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            if version >= 4:
                value = item2.group_state
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
            if version >= 5:
                value = item2.group_type
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
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
