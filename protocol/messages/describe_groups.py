"""DescribeGroups (15), versions 0 to 6. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    all_steps,
    null_in,
    read_bytes,
    read_compact_bytes,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    skip_tags,
    write_bytes,
    write_compact_bytes,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
)

_T = Struct(">?")
_TX = Struct(">?x")
_H = Struct(">h")
_I = Struct(">i")
_IX = Struct(">ix")


class DescribeGroupsRequest(NamedTuple):
    """DescribeGroups request, v0-6."""

    groups: Sequence[str] = ()
    include_authorized_operations: bool = False

    @staticmethod
    def response_type() -> type[DescribeGroupsResponse]:
        return DescribeGroupsResponse


DescribeGroupsRequest.API_KEY = 15  # type: ignore[attr-defined]


class DescribedGroupMember(NamedTuple):
    """DescribedGroupMember of DescribeGroups."""

    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(NamedTuple):
    """DescribedGroup of DescribeGroups."""

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: Sequence[DescribedGroupMember] = ()
    authorized_operations: int = -2147483648


class DescribeGroupsResponse(NamedTuple):
    """DescribeGroups response, v0-6."""

    throttle_time_ms: int = 0
    groups: Sequence[DescribedGroup] = ()


DescribeGroupsResponse.API_KEY = 15  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeGroupsRequest, int]:
    size, at, left = read_count(data, at, left, 2, "DescribeGroupsRequest.groups")
    groups_1: Any = None if size < 0 else []
    for _ in range(size):
        item2, at = read_string(data, at)
        if item2 is None:
            raise null_in("DescribeGroupsRequest.groups")
        groups_1.append(item2)
    if groups_1 is None:
        raise null_in("DescribeGroupsRequest.groups")
    include_authorized_operations_3: Any = False
    if version >= 3:
        (include_authorized_operations_3,) = _T.unpack_from(data, at)
        at += 1
    return _new(DescribeGroupsRequest, (groups_1, include_authorized_operations_3)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    groups_1 = body.groups
    write_count(out, groups_1)
    for item2 in groups_1 or ():
        write_string(out, item2)
    if version >= 3:
        out += _T.pack(body.include_authorized_operations)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeGroupsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 1, "DescribeGroupsRequest.groups")
    groups_1: Any = None if size < 0 else []
    for _ in range(size):
        item2, at = read_compact_string(data, at)
        if item2 is None:
            raise null_in("DescribeGroupsRequest.groups")
        groups_1.append(item2)
    if groups_1 is None:
        raise null_in("DescribeGroupsRequest.groups")
    (include_authorized_operations_3,) = _T.unpack_from(data, at)
    at += 1
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeGroupsRequest, (groups_1, include_authorized_operations_3)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    groups_1 = body.groups
    write_compact_count(out, groups_1)
    for item2 in groups_1 or ():
        write_compact_string(out, item2)
    out += _TX.pack(body.include_authorized_operations)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 5 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 5 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeGroupsResponse, int]:
    throttle_time_ms_1: Any = 0
    if version >= 1:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    size, at, left = read_count(data, at, left, 14, "DescribeGroupsResponse.groups")
    groups_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        group_id_5, at = read_string(data, at)
        if group_id_5 is None:
            raise null_in("DescribeGroupsResponse.group_id")
        group_state_6, at = read_string(data, at)
        if group_state_6 is None:
            raise null_in("DescribeGroupsResponse.group_state")
        protocol_type_7, at = read_string(data, at)
        if protocol_type_7 is None:
            raise null_in("DescribeGroupsResponse.protocol_type")
        protocol_data_8, at = read_string(data, at)
        if protocol_data_8 is None:
            raise null_in("DescribeGroupsResponse.protocol_data")
        size, at, left = read_count(data, at, left, 14, "DescribeGroupsResponse.members")
        members_9: Any = None if size < 0 else []
        for _ in range(size):
            member_id_11, at = read_string(data, at)
            if member_id_11 is None:
                raise null_in("DescribeGroupsResponse.member_id")
            group_instance_id_12: Any = None
            if version >= 4:
                group_instance_id_12, at = read_string(data, at)
            client_id_13, at = read_string(data, at)
            if client_id_13 is None:
                raise null_in("DescribeGroupsResponse.client_id")
            client_host_14, at = read_string(data, at)
            if client_host_14 is None:
                raise null_in("DescribeGroupsResponse.client_host")
            member_metadata_15, at = read_bytes(data, at)
            if member_metadata_15 is None:
                raise null_in("DescribeGroupsResponse.member_metadata")
            member_assignment_16, at = read_bytes(data, at)
            if member_assignment_16 is None:
                raise null_in("DescribeGroupsResponse.member_assignment")
            item10 = _new(
                DescribedGroupMember,
                (
                    member_id_11,
                    group_instance_id_12,
                    client_id_13,
                    client_host_14,
                    member_metadata_15,
                    member_assignment_16,
                ),
            )
            members_9.append(item10)
        if members_9 is None:
            raise null_in("DescribeGroupsResponse.members")
        authorized_operations_17: Any = -2147483648
        if version >= 3:
            (authorized_operations_17,) = _I.unpack_from(data, at)
            at += 4
        item3 = _new(
            DescribedGroup,
            (
                error_code_4,
                None,
                group_id_5,
                group_state_6,
                protocol_type_7,
                protocol_data_8,
                members_9,
                authorized_operations_17,
            ),
        )
        groups_2.append(item3)
    if groups_2 is None:
        raise null_in("DescribeGroupsResponse.groups")
    return _new(DescribeGroupsResponse, (throttle_time_ms_1, groups_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> Iterator[None]:
    if version >= 1:
        out += _I.pack(body.throttle_time_ms)
    groups_1 = body.groups
    write_count(out, groups_1)
    for item2 in groups_1 or ():
        out += _H.pack(item2.error_code)
        write_string(out, item2.group_id)
        write_string(out, item2.group_state)
        write_string(out, item2.protocol_type)
        write_string(out, item2.protocol_data)
        members_3 = item2.members
        write_count(out, members_3)
        for item4 in members_3 or ():
            write_string(out, item4.member_id)
            if version >= 4:
                write_string(out, item4.group_instance_id)
            write_string(out, item4.client_id)
            write_string(out, item4.client_host)
            write_bytes(out, item4.member_metadata)
            write_bytes(out, item4.member_assignment)
            yield
        if version >= 3:
            out += _I.pack(item2.authorized_operations)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeGroupsResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 12, "DescribeGroupsResponse.groups")
    groups_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5: Any = None
        if version >= 6:
            error_message_5, at = read_compact_string(data, at)
        group_id_6, at = read_compact_string(data, at)
        if group_id_6 is None:
            raise null_in("DescribeGroupsResponse.group_id")
        group_state_7, at = read_compact_string(data, at)
        if group_state_7 is None:
            raise null_in("DescribeGroupsResponse.group_state")
        protocol_type_8, at = read_compact_string(data, at)
        if protocol_type_8 is None:
            raise null_in("DescribeGroupsResponse.protocol_type")
        protocol_data_9, at = read_compact_string(data, at)
        if protocol_data_9 is None:
            raise null_in("DescribeGroupsResponse.protocol_data")
        size, at, left = read_compact_count(data, at, left, 7, "DescribeGroupsResponse.members")
        members_10: Any = None if size < 0 else []
        for _ in range(size):
            member_id_12, at = read_compact_string(data, at)
            if member_id_12 is None:
                raise null_in("DescribeGroupsResponse.member_id")
            group_instance_id_13, at = read_compact_string(data, at)
            client_id_14, at = read_compact_string(data, at)
            if client_id_14 is None:
                raise null_in("DescribeGroupsResponse.client_id")
            client_host_15, at = read_compact_string(data, at)
            if client_host_15 is None:
                raise null_in("DescribeGroupsResponse.client_host")
            member_metadata_16, at = read_compact_bytes(data, at)
            if member_metadata_16 is None:
                raise null_in("DescribeGroupsResponse.member_metadata")
            member_assignment_17, at = read_compact_bytes(data, at)
            if member_assignment_17 is None:
                raise null_in("DescribeGroupsResponse.member_assignment")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item11 = _new(
                DescribedGroupMember,
                (
                    member_id_12,
                    group_instance_id_13,
                    client_id_14,
                    client_host_15,
                    member_metadata_16,
                    member_assignment_17,
                ),
            )
            members_10.append(item11)
        if members_10 is None:
            raise null_in("DescribeGroupsResponse.members")
        (authorized_operations_18,) = _I.unpack_from(data, at)
        at += 4
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(
            DescribedGroup,
            (
                error_code_4,
                error_message_5,
                group_id_6,
                group_state_7,
                protocol_type_8,
                protocol_data_9,
                members_10,
                authorized_operations_18,
            ),
        )
        groups_2.append(item3)
    if groups_2 is None:
        raise null_in("DescribeGroupsResponse.groups")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeGroupsResponse, (throttle_time_ms_1, groups_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> Iterator[None]:
    out += _I.pack(body.throttle_time_ms)
    groups_1 = body.groups
    write_compact_count(out, groups_1)
    for item2 in groups_1 or ():
        out += _H.pack(item2.error_code)
        if version >= 6:
            write_compact_string(out, item2.error_message)
        write_compact_string(out, item2.group_id)
        write_compact_string(out, item2.group_state)
        write_compact_string(out, item2.protocol_type)
        write_compact_string(out, item2.protocol_data)
        members_3 = item2.members
        write_compact_count(out, members_3)
        for item4 in members_3 or ():
            write_compact_string(out, item4.member_id)
            write_compact_string(out, item4.group_instance_id)
            write_compact_string(out, item4.client_id)
            write_compact_string(out, item4.client_host)
            write_compact_bytes(out, item4.member_metadata)
            write_compact_bytes(out, item4.member_assignment)
            out.append(0)
            yield
        out += _IX.pack(item2.authorized_operations)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 5 else _read_response_classic


def write_response_steps(version: int) -> Any:
    return _write_response_flexible if version >= 5 else _write_response_classic


def write_response(version: int) -> Any:
    return all_steps(write_response_steps(version))
