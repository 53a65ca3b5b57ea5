"""LeaveGroup (13), versions 0 to 5. Written by scripts/generate_messages.py: do not edit."""

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

    @staticmethod
    def response_type() -> type[LeaveGroupResponse]:
        return LeaveGroupResponse


LeaveGroupRequest.API_KEY = 13  # type: ignore[attr-defined]


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


LeaveGroupResponse.API_KEY = 13  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[LeaveGroupRequest, int]:
    group_id_1, at = read_string(data, at)
    if group_id_1 is None:
        raise null_in("LeaveGroupRequest.group_id")
    member_id_2: Any = ""
    if version <= 2:
        member_id_2, at = read_string(data, at)
        if member_id_2 is None:
            raise null_in("LeaveGroupRequest.member_id")
    members_3: Any = ()
    if version >= 3:
        size, at, left = read_count(data, at, left, 4, "LeaveGroupRequest.members")
        members_3 = None if size < 0 else []
        for _ in range(size):
            member_id_5, at = read_string(data, at)
            if member_id_5 is None:
                raise null_in("LeaveGroupRequest.member_id")
            group_instance_id_6, at = read_string(data, at)
            item4 = _new(MemberIdentity, (member_id_5, group_instance_id_6, None))
            members_3.append(item4)
        if members_3 is None:
            raise null_in("LeaveGroupRequest.members")
    return _new(LeaveGroupRequest, (group_id_1, member_id_2, members_3)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    write_string(out, body.group_id)
    if version <= 2:
        write_string(out, body.member_id)
    if version >= 3:
        members_1 = body.members
        write_count(out, members_1)
        for item2 in members_1 or ():
            write_string(out, item2.member_id)
            write_string(out, item2.group_instance_id)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[LeaveGroupRequest, int]:
    group_id_1, at = read_compact_string(data, at)
    if group_id_1 is None:
        raise null_in("LeaveGroupRequest.group_id")
    size, at, left = read_compact_count(data, at, left, 3, "LeaveGroupRequest.members")
    members_2: Any = None if size < 0 else []
    for _ in range(size):
        member_id_4, at = read_compact_string(data, at)
        if member_id_4 is None:
            raise null_in("LeaveGroupRequest.member_id")
        group_instance_id_5, at = read_compact_string(data, at)
        reason_6: Any = None
        if version >= 5:
            reason_6, at = read_compact_string(data, at)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(MemberIdentity, (member_id_4, group_instance_id_5, reason_6))
        members_2.append(item3)
    if members_2 is None:
        raise null_in("LeaveGroupRequest.members")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(LeaveGroupRequest, (group_id_1, "", members_2)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    write_compact_string(out, body.group_id)
    members_1 = body.members
    write_compact_count(out, members_1)
    for item2 in members_1 or ():
        write_compact_string(out, item2.member_id)
        write_compact_string(out, item2.group_instance_id)
        if version >= 5:
            write_compact_string(out, item2.reason)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 4 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 4 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[LeaveGroupResponse, int]:
    throttle_time_ms_1: Any = 0
    if version >= 1:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (error_code_2,) = _H.unpack_from(data, at)
    at += 2
    members_3: Any = ()
    if version >= 3:
        size, at, left = read_count(data, at, left, 6, "LeaveGroupResponse.members")
        members_3 = None if size < 0 else []
        for _ in range(size):
            member_id_5, at = read_string(data, at)
            if member_id_5 is None:
                raise null_in("LeaveGroupResponse.member_id")
            group_instance_id_6, at = read_string(data, at)
            (error_code_7,) = _H.unpack_from(data, at)
            at += 2
            item4 = _new(MemberResponse, (member_id_5, group_instance_id_6, error_code_7))
            members_3.append(item4)
        if members_3 is None:
            raise null_in("LeaveGroupResponse.members")
    return _new(LeaveGroupResponse, (throttle_time_ms_1, error_code_2, members_3)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        out += _I.pack(body.throttle_time_ms)
    out += _H.pack(body.error_code)
    if version >= 3:
        members_1 = body.members
        write_count(out, members_1)
        for item2 in members_1 or ():
            write_string(out, item2.member_id)
            write_string(out, item2.group_instance_id)
            out += _H.pack(item2.error_code)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[LeaveGroupResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size, at, left = read_compact_count(data, at, left, 5, "LeaveGroupResponse.members")
    members_3: Any = None if size < 0 else []
    for _ in range(size):
        member_id_5, at = read_compact_string(data, at)
        if member_id_5 is None:
            raise null_in("LeaveGroupResponse.member_id")
        group_instance_id_6, at = read_compact_string(data, at)
        (error_code_7,) = _H.unpack_from(data, at)
        at += 2
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item4 = _new(MemberResponse, (member_id_5, group_instance_id_6, error_code_7))
        members_3.append(item4)
    if members_3 is None:
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
    write_compact_count(out, members_1)
    for item2 in members_1 or ():
        write_compact_string(out, item2.member_id)
        write_compact_string(out, item2.group_instance_id)
        out += _HX.pack(item2.error_code)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 4 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 4 else _write_response_classic
