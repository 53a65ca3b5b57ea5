"""SyncGroup (14), versions 0 to 5. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    BYTES,
    NamedTuple,
    _new,
    long_varint,
    null_in,
    read_compact_bytes,
    read_compact_string,
    skip_tags,
    too_many,
    varint,
)

_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")


class SyncGroupRequestAssignment(NamedTuple):
    """SyncGroupRequestAssignment of SyncGroup."""

    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequest(NamedTuple):
    """SyncGroup request, v0-5."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Sequence[SyncGroupRequestAssignment] = ()

    @staticmethod
    def response_type() -> type[SyncGroupResponse]:
        return SyncGroupResponse


SyncGroupRequest.API_KEY = 14  # type: ignore[attr-defined]


class SyncGroupResponse(NamedTuple):
    """SyncGroup response, v0-5."""

    throttle_time_ms: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


SyncGroupResponse.API_KEY = 14  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[SyncGroupRequest, int]:
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        group_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("SyncGroupRequest.group_id")
    (generation_id_2,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        member_id_3 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("SyncGroupRequest.member_id")
    group_instance_id_4: Any = None
    if version >= 3:
        (size,) = _H.unpack_from(data, at)
        at += 2
        if size >= 0:
            end = at + size
            group_instance_id_4 = str(data[at:end], "utf-8")
            at = end
        else:
            group_instance_id_4 = None
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("SyncGroupRequest.assignments", size, left)
        assignments_5: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                member_id_7 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("SyncGroupRequest.member_id")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                end = at + size
                assignment_8 = bytes(data[at:end])
                at = end
            else:
                raise null_in("SyncGroupRequest.assignment")
            item6 = _new(SyncGroupRequestAssignment, (member_id_7, assignment_8))
            assignments_5.append(item6)
    else:
        raise null_in("SyncGroupRequest.assignments")
    return _new(
        SyncGroupRequest,
        (group_id_1, generation_id_2, member_id_3, group_instance_id_4, None, None, assignments_5),
    ), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    value = body.group_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    out += _I.pack(body.generation_id)
    value = body.member_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    if version >= 3:
        value = body.group_instance_id
        if value is None:
            out += b"\xff\xff"
        else:
            data = value.encode()
            out += _H.pack(len(data))
            out += data
    assignments_1 = body.assignments
    if assignments_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(assignments_1))
        for item2 in assignments_1:
            value = item2.member_id
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            value = item2.assignment
            if value is None:
                out += b"\xff\xff\xff\xff"
            else:
                data = value
                out += _I.pack(len(data))
                out += data


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[SyncGroupRequest, int]:
    size = data[at]
    if 0 < size < 128:
        end = at + size
        group_id_1 = data[at + 1 : end].decode()
        at = end
    else:
        group_id_1, at = read_compact_string(data, at)
        if group_id_1 is None:
            raise null_in("SyncGroupRequest.group_id")
    (generation_id_2,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    if 0 < size < 128:
        end = at + size
        member_id_3 = data[at + 1 : end].decode()
        at = end
    else:
        member_id_3, at = read_compact_string(data, at)
        if member_id_3 is None:
            raise null_in("SyncGroupRequest.member_id")
    size = data[at]
    if 0 < size < 128:
        end = at + size
        group_instance_id_4 = data[at + 1 : end].decode()
        at = end
    elif not size:
        group_instance_id_4 = None
        at += 1
    else:
        group_instance_id_4, at = read_compact_string(data, at)
    protocol_type_5: Any = None
    if version >= 5:
        size = data[at]
        if 0 < size < 128:
            end = at + size
            protocol_type_5 = data[at + 1 : end].decode()
            at = end
        elif not size:
            protocol_type_5 = None
            at += 1
        else:
            protocol_type_5, at = read_compact_string(data, at)
    protocol_name_6: Any = None
    if version >= 5:
        size = data[at]
        if 0 < size < 128:
            end = at + size
            protocol_name_6 = data[at + 1 : end].decode()
            at = end
        elif not size:
            protocol_name_6 = None
            at += 1
        else:
            protocol_name_6, at = read_compact_string(data, at)
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("SyncGroupRequest.assignments", size, left)
        assignments_7: Any = []
        for _ in range(size):
            size = data[at]
            if 0 < size < 128:
                end = at + size
                member_id_9 = data[at + 1 : end].decode()
                at = end
            else:
                member_id_9, at = read_compact_string(data, at)
                if member_id_9 is None:
                    raise null_in("SyncGroupRequest.member_id")
            size = data[at]
            if 0 < size < 128:
                end = at + size
                assignment_10 = bytes(data[at + 1 : end])
                at = end
            else:
                assignment_10, at = read_compact_bytes(data, at)
                if assignment_10 is None:
                    raise null_in("SyncGroupRequest.assignment")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item8 = _new(SyncGroupRequestAssignment, (member_id_9, assignment_10))
            assignments_7.append(item8)
    else:
        raise null_in("SyncGroupRequest.assignments")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        SyncGroupRequest,
        (
            group_id_1,
            generation_id_2,
            member_id_3,
            group_instance_id_4,
            protocol_type_5,
            protocol_name_6,
            assignments_7,
        ),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    value = body.group_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out += _I.pack(body.generation_id)
    value = body.member_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    value = body.group_instance_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    if version >= 5:
        value = body.protocol_type
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    if version >= 5:
        value = body.protocol_name
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    assignments_1 = body.assignments
    if assignments_1 is None:
        out += b"\x00"
    else:
        size = len(assignments_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in assignments_1:
            value = item2.member_id
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.assignment
            if value is None:
                out += b"\x00"
            else:
                data = value
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 4 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 4 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[SyncGroupResponse, int]:
    del left
    throttle_time_ms_1: Any = 0
    if version >= 1:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (error_code_2,) = _H.unpack_from(data, at)
    at += 2
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        end = at + size
        assignment_3 = bytes(data[at:end])
        at = end
    else:
        raise null_in("SyncGroupResponse.assignment")
    return _new(SyncGroupResponse, (throttle_time_ms_1, error_code_2, None, None, assignment_3)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        out += _I.pack(body.throttle_time_ms)
    out += _H.pack(body.error_code)
    value = body.assignment
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        data = value
        out += _I.pack(len(data))
        out += data


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[SyncGroupResponse, int]:
    del left
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    protocol_type_3: Any = None
    if version >= 5:
        size = data[at]
        if 0 < size < 128:
            end = at + size
            protocol_type_3 = str(data[at + 1 : end], "utf-8")
            at = end
        elif not size:
            protocol_type_3 = None
            at += 1
        else:
            protocol_type_3, at = read_compact_string(data, at)
    protocol_name_4: Any = None
    if version >= 5:
        size = data[at]
        if 0 < size < 128:
            end = at + size
            protocol_name_4 = str(data[at + 1 : end], "utf-8")
            at = end
        elif not size:
            protocol_name_4 = None
            at += 1
        else:
            protocol_name_4, at = read_compact_string(data, at)
    size = data[at]
    if 0 < size < 128:
        end = at + size
        assignment_5 = bytes(data[at + 1 : end])
        at = end
    else:
        assignment_5, at = read_compact_bytes(data, at)
        if assignment_5 is None:
            raise null_in("SyncGroupResponse.assignment")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        SyncGroupResponse, (throttle_time_ms_1, error_code_2, protocol_type_3, protocol_name_4, assignment_5)
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    if version >= 5:
        value = body.protocol_type
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    if version >= 5:
        value = body.protocol_name
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    value = body.assignment
    if value is None:
        out += b"\x00"
    else:
        data = value
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 4 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 4 else _write_response_classic
