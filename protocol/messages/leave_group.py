"""LeaveGroup (13), versions 0 to 5. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")


class MemberIdentity(NamedTuple):
    """MemberIdentity of LeaveGroup."""

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(NamedTuple):
    """LeaveGroup request, v0-5."""

    group_id: str = ""
    member_id: str = ""
    members: Sequence[MemberIdentity] = ()


class MemberResponse(NamedTuple):
    """MemberResponse of LeaveGroup."""

    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int = 0


class LeaveGroupResponse(NamedTuple):
    """LeaveGroup response, v0-5."""

    throttle_time_ms: int = 0
    error_code: int = 0
    members: Sequence[MemberResponse] = ()


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[LeaveGroupRequest, int]:
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        group_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("LeaveGroupRequest.group_id")
    member_id_2 = ""
    if version <= 2:
        (size,) = _H.unpack_from(data, at)
        at += 2
        if size >= 0:
            end = at + size
            member_id_2 = str(data[at:end], "utf-8")
            at = end
        else:
            raise null_in("LeaveGroupRequest.member_id")
    members_3 = ()
    if version >= 3:
        (size,) = _I.unpack_from(data, at)
        at += 4
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 4 or left < 0:
                raise too_many("LeaveGroupRequest.members", size, left)
            members_3 = []
            for _ in range(size):
                (size,) = _H.unpack_from(data, at)
                at += 2
                if size >= 0:
                    end = at + size
                    member_id_5 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("LeaveGroupRequest.member_id")
                (size,) = _H.unpack_from(data, at)
                at += 2
                if size >= 0:
                    end = at + size
                    group_instance_id_6 = str(data[at:end], "utf-8")
                    at = end
                elif size == -1:
                    group_instance_id_6 = None
                else:
                    raise malformed("a negative length")
                item4 = _new(MemberIdentity, (member_id_5, group_instance_id_6, None))
                members_3.append(item4)
        else:
            raise null_in("LeaveGroupRequest.members")
    return _new(LeaveGroupRequest, (group_id_1, member_id_2, members_3)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    value = body.group_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    if version <= 2:
        value = body.member_id
        if value is None:
            out += b"\xff\xff"
        else:
            data = value.encode()
            out += _H.pack(len(data))
            out += data
    if version >= 3:
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
                value = item2.group_instance_id
                if value is None:
                    out += b"\xff\xff"
                else:
                    data = value.encode()
                    out += _H.pack(len(data))
                    out += data


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[LeaveGroupRequest, int]:
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        group_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("LeaveGroupRequest.group_id")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("LeaveGroupRequest.members", size, left)
        members_2 = []
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
                member_id_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("LeaveGroupRequest.member_id")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                group_instance_id_5 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                group_instance_id_5 = None
            else:
                raise malformed("a negative length")
            reason_6 = None
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
                    reason_6 = str(data[at:end], "utf-8")
                    at = end
                elif size == -1:
                    reason_6 = None
                else:
                    raise malformed("a negative length")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(MemberIdentity, (member_id_4, group_instance_id_5, reason_6))
            members_2.append(item3)
    else:
        raise null_in("LeaveGroupRequest.members")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(LeaveGroupRequest, (group_id_1, "", members_2)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    value = body.group_id
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
            if version >= 5:
                value = item2.reason
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
            out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 4 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 4 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[LeaveGroupResponse, int]:
    throttle_time_ms_1 = 0
    if version >= 1:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (error_code_2,) = _H.unpack_from(data, at)
    at += 2
    members_3 = ()
    if version >= 3:
        (size,) = _I.unpack_from(data, at)
        at += 4
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 6 or left < 0:
                raise too_many("LeaveGroupResponse.members", size, left)
            members_3 = []
            for _ in range(size):
                (size,) = _H.unpack_from(data, at)
                at += 2
                if size >= 0:
                    end = at + size
                    member_id_5 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("LeaveGroupResponse.member_id")
                (size,) = _H.unpack_from(data, at)
                at += 2
                if size >= 0:
                    end = at + size
                    group_instance_id_6 = str(data[at:end], "utf-8")
                    at = end
                elif size == -1:
                    group_instance_id_6 = None
                else:
                    raise malformed("a negative length")
                (error_code_7,) = _H.unpack_from(data, at)
                at += 2
                item4 = _new(MemberResponse, (member_id_5, group_instance_id_6, error_code_7))
                members_3.append(item4)
        else:
            raise null_in("LeaveGroupResponse.members")
    return _new(LeaveGroupResponse, (throttle_time_ms_1, error_code_2, members_3)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        out += _I.pack(body.throttle_time_ms)
    out += _H.pack(body.error_code)
    if version >= 3:
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
                value = item2.group_instance_id
                if value is None:
                    out += b"\xff\xff"
                else:
                    data = value.encode()
                    out += _H.pack(len(data))
                    out += data
                out += _H.pack(item2.error_code)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[LeaveGroupResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 5 or left < 0:
            raise too_many("LeaveGroupResponse.members", size, left)
        members_3 = []
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
                member_id_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("LeaveGroupResponse.member_id")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                group_instance_id_6 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                group_instance_id_6 = None
            else:
                raise malformed("a negative length")
            (error_code_7,) = _H.unpack_from(data, at)
            at += 2
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item4 = _new(MemberResponse, (member_id_5, group_instance_id_6, error_code_7))
            members_3.append(item4)
    else:
        raise null_in("LeaveGroupResponse.members")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(LeaveGroupResponse, (throttle_time_ms_1, error_code_2, members_3)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
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
            out += _H.pack(item2.error_code)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 4 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 4 else _write_response_classic
