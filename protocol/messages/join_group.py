"""JoinGroup (11), versions 0 to 9. Written by scripts/generate_messages.py: do not edit."""

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

_T = Struct(">?")
_H = Struct(">h")
_HI = Struct(">hi")
_I = Struct(">i")
_IHI = Struct(">ihi")
_II = Struct(">ii")


class JoinGroupRequestProtocol(NamedTuple):
    """JoinGroupRequestProtocol of JoinGroup."""

    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(NamedTuple):
    """JoinGroup request, v0-9."""

    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: Sequence[JoinGroupRequestProtocol] = ()
    reason: str | None = None

    @staticmethod
    def response_type() -> type[JoinGroupResponse]:
        return JoinGroupResponse


JoinGroupRequest.API_KEY = 11  # type: ignore[attr-defined]


class JoinGroupResponseMember(NamedTuple):
    """JoinGroupResponseMember of JoinGroup."""

    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""


class JoinGroupResponse(NamedTuple):
    """JoinGroup response, v0-9."""

    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: Sequence[JoinGroupResponseMember] = ()


JoinGroupResponse.API_KEY = 11  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[JoinGroupRequest, int]:
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        group_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("JoinGroupRequest.group_id")
    (session_timeout_ms_2,) = _I.unpack_from(data, at)
    at += 4
    rebalance_timeout_ms_3: Any = -1
    if version >= 1:
        (rebalance_timeout_ms_3,) = _I.unpack_from(data, at)
        at += 4
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        member_id_4 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("JoinGroupRequest.member_id")
    group_instance_id_5: Any = None
    if version >= 5:
        (size,) = _H.unpack_from(data, at)
        at += 2
        if size >= 0:
            end = at + size
            group_instance_id_5 = str(data[at:end], "utf-8")
            at = end
        else:
            group_instance_id_5 = None
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        protocol_type_6 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("JoinGroupRequest.protocol_type")
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("JoinGroupRequest.protocols", size, left)
        protocols_7: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_9 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("JoinGroupRequest.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                end = at + size
                metadata_10 = bytes(data[at:end])
                at = end
            else:
                raise null_in("JoinGroupRequest.metadata")
            item8 = _new(JoinGroupRequestProtocol, (name_9, metadata_10))
            protocols_7.append(item8)
    else:
        raise null_in("JoinGroupRequest.protocols")
    return _new(
        JoinGroupRequest,
        (
            group_id_1,
            session_timeout_ms_2,
            rebalance_timeout_ms_3,
            member_id_4,
            group_instance_id_5,
            protocol_type_6,
            protocols_7,
            None,
        ),
    ), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    value = body.group_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    out += _I.pack(body.session_timeout_ms)
    if version >= 1:
        out += _I.pack(body.rebalance_timeout_ms)
    value = body.member_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    if version >= 5:
        value = body.group_instance_id
        if value is None:
            out += b"\xff\xff"
        else:
            data = value.encode()
            out += _H.pack(len(data))
            out += data
    value = body.protocol_type
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    protocols_1 = body.protocols
    if protocols_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(protocols_1))
        for item2 in protocols_1:
            value = item2.name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            value = item2.metadata
            if value is None:
                out += b"\xff\xff\xff\xff"
            else:
                data = value
                out += _I.pack(len(data))
                out += data


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[JoinGroupRequest, int]:
    size = data[at]
    if 0 < size < 128:
        end = at + size
        group_id_1 = data[at + 1 : end].decode()
        at = end
    else:
        group_id_1, at = read_compact_string(data, at)
        if group_id_1 is None:
            raise null_in("JoinGroupRequest.group_id")
    session_timeout_ms_2, rebalance_timeout_ms_3 = _II.unpack_from(data, at)
    at += 8
    size = data[at]
    if 0 < size < 128:
        end = at + size
        member_id_4 = data[at + 1 : end].decode()
        at = end
    else:
        member_id_4, at = read_compact_string(data, at)
        if member_id_4 is None:
            raise null_in("JoinGroupRequest.member_id")
    size = data[at]
    if 0 < size < 128:
        end = at + size
        group_instance_id_5 = data[at + 1 : end].decode()
        at = end
    elif not size:
        group_instance_id_5 = None
        at += 1
    else:
        group_instance_id_5, at = read_compact_string(data, at)
    size = data[at]
    if 0 < size < 128:
        end = at + size
        protocol_type_6 = data[at + 1 : end].decode()
        at = end
    else:
        protocol_type_6, at = read_compact_string(data, at)
        if protocol_type_6 is None:
            raise null_in("JoinGroupRequest.protocol_type")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("JoinGroupRequest.protocols", size, left)
        protocols_7: Any = []
        for _ in range(size):
            size = data[at]
            if 0 < size < 128:
                end = at + size
                name_9 = data[at + 1 : end].decode()
                at = end
            else:
                name_9, at = read_compact_string(data, at)
                if name_9 is None:
                    raise null_in("JoinGroupRequest.name")
            size = data[at]
            if 0 < size < 128:
                end = at + size
                metadata_10 = bytes(data[at + 1 : end])
                at = end
            else:
                metadata_10, at = read_compact_bytes(data, at)
                if metadata_10 is None:
                    raise null_in("JoinGroupRequest.metadata")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item8 = _new(JoinGroupRequestProtocol, (name_9, metadata_10))
            protocols_7.append(item8)
    else:
        raise null_in("JoinGroupRequest.protocols")
    reason_11: Any = None
    if version >= 8:
        size = data[at]
        if 0 < size < 128:
            end = at + size
            reason_11 = data[at + 1 : end].decode()
            at = end
        elif not size:
            reason_11 = None
            at += 1
        else:
            reason_11, at = read_compact_string(data, at)
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        JoinGroupRequest,
        (
            group_id_1,
            session_timeout_ms_2,
            rebalance_timeout_ms_3,
            member_id_4,
            group_instance_id_5,
            protocol_type_6,
            protocols_7,
            reason_11,
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
    out += _II.pack(body.session_timeout_ms, body.rebalance_timeout_ms)
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
    value = body.protocol_type
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    protocols_1 = body.protocols
    if protocols_1 is None:
        out += b"\x00"
    else:
        size = len(protocols_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in protocols_1:
            value = item2.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.metadata
            if value is None:
                out += b"\x00"
            else:
                data = value
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out.append(0)
    if version >= 8:
        value = body.reason
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 6 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 6 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms_1: Any = 0
    if version >= 2:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    error_code_2, generation_id_3 = _HI.unpack_from(data, at)
    at += 6
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        protocol_name_4 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("JoinGroupResponse.protocol_name")
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        leader_5 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("JoinGroupResponse.leader")
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        member_id_6 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("JoinGroupResponse.member_id")
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("JoinGroupResponse.members", size, left)
        members_7: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                member_id_9 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("JoinGroupResponse.member_id")
            group_instance_id_10: Any = None
            if version >= 5:
                (size,) = _H.unpack_from(data, at)
                at += 2
                if size >= 0:
                    end = at + size
                    group_instance_id_10 = str(data[at:end], "utf-8")
                    at = end
                else:
                    group_instance_id_10 = None
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                end = at + size
                metadata_11 = bytes(data[at:end])
                at = end
            else:
                raise null_in("JoinGroupResponse.metadata")
            item8 = _new(JoinGroupResponseMember, (member_id_9, group_instance_id_10, metadata_11))
            members_7.append(item8)
    else:
        raise null_in("JoinGroupResponse.members")
    return _new(
        JoinGroupResponse,
        (
            throttle_time_ms_1,
            error_code_2,
            generation_id_3,
            None,
            protocol_name_4,
            leader_5,
            False,
            member_id_6,
            members_7,
        ),
    ), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 2:
        out += _I.pack(body.throttle_time_ms)
    out += _HI.pack(body.error_code, body.generation_id)
    value = body.protocol_name
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    value = body.leader
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    value = body.member_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    members_1 = body.members
    if members_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(members_1))
        for item2 in members_1:
            value = item2.member_id
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            if version >= 5:
                value = item2.group_instance_id
                if value is None:
                    out += b"\xff\xff"
                else:
                    data = value.encode()
                    out += _H.pack(len(data))
                    out += data
            value = item2.metadata
            if value is None:
                out += b"\xff\xff\xff\xff"
            else:
                data = value
                out += _I.pack(len(data))
                out += data


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms_1, error_code_2, generation_id_3 = _IHI.unpack_from(data, at)
    at += 10
    protocol_type_4: Any = None
    if version >= 7:
        size = data[at]
        if 0 < size < 128:
            end = at + size
            protocol_type_4 = str(data[at + 1 : end], "utf-8")
            at = end
        elif not size:
            protocol_type_4 = None
            at += 1
        else:
            protocol_type_4, at = read_compact_string(data, at)
    size = data[at]
    if 0 < size < 128:
        end = at + size
        protocol_name_5 = str(data[at + 1 : end], "utf-8")
        at = end
    else:
        protocol_name_5, at = read_compact_string(data, at)
        if protocol_name_5 is None and not (version >= 7):
            raise null_in("JoinGroupResponse.protocol_name")
    size = data[at]
    if 0 < size < 128:
        end = at + size
        leader_6 = str(data[at + 1 : end], "utf-8")
        at = end
    else:
        leader_6, at = read_compact_string(data, at)
        if leader_6 is None:
            raise null_in("JoinGroupResponse.leader")
    skip_assignment_7: Any = False
    if version >= 9:
        (skip_assignment_7,) = _T.unpack_from(data, at)
        at += 1
    size = data[at]
    if 0 < size < 128:
        end = at + size
        member_id_8 = str(data[at + 1 : end], "utf-8")
        at = end
    else:
        member_id_8, at = read_compact_string(data, at)
        if member_id_8 is None:
            raise null_in("JoinGroupResponse.member_id")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("JoinGroupResponse.members", size, left)
        members_9: Any = []
        for _ in range(size):
            size = data[at]
            if 0 < size < 128:
                end = at + size
                member_id_11 = str(data[at + 1 : end], "utf-8")
                at = end
            else:
                member_id_11, at = read_compact_string(data, at)
                if member_id_11 is None:
                    raise null_in("JoinGroupResponse.member_id")
            size = data[at]
            if 0 < size < 128:
                end = at + size
                group_instance_id_12 = str(data[at + 1 : end], "utf-8")
                at = end
            elif not size:
                group_instance_id_12 = None
                at += 1
            else:
                group_instance_id_12, at = read_compact_string(data, at)
            size = data[at]
            if 0 < size < 128:
                end = at + size
                metadata_13 = bytes(data[at + 1 : end])
                at = end
            else:
                metadata_13, at = read_compact_bytes(data, at)
                if metadata_13 is None:
                    raise null_in("JoinGroupResponse.metadata")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item10 = _new(JoinGroupResponseMember, (member_id_11, group_instance_id_12, metadata_13))
            members_9.append(item10)
    else:
        raise null_in("JoinGroupResponse.members")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        JoinGroupResponse,
        (
            throttle_time_ms_1,
            error_code_2,
            generation_id_3,
            protocol_type_4,
            protocol_name_5,
            leader_6,
            skip_assignment_7,
            member_id_8,
            members_9,
        ),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IHI.pack(body.throttle_time_ms, body.error_code, body.generation_id)
    if version >= 7:
        value = body.protocol_type
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    value = body.protocol_name
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    value = body.leader
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    if version >= 9:
        out += _T.pack(body.skip_assignment)
    value = body.member_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    members_1 = body.members
    if members_1 is None:
        out += b"\x00"
    else:
        size = len(members_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in members_1:
            value = item2.member_id
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.group_instance_id
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.metadata
            if value is None:
                out += b"\x00"
            else:
                data = value
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 6 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 6 else _write_response_classic
