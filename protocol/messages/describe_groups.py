"""DescribeGroups (15), versions 0 to 6. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_T = Struct(">?")
_H = Struct(">h")
_I = Struct(">i")


class DescribeGroupsRequest(NamedTuple):
    """DescribeGroups request, v0-6."""

    groups: Sequence[str] = ()
    include_authorized_operations: bool = False


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


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeGroupsRequest, int]:
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("DescribeGroupsRequest.groups", size, left)
        groups_1 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                item2 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupsRequest.groups")
            groups_1.append(item2)
    else:
        raise null_in("DescribeGroupsRequest.groups")
    include_authorized_operations_3 = False
    if version >= 3:
        (include_authorized_operations_3,) = _T.unpack_from(data, at)
        at += 1
    return _new(DescribeGroupsRequest, (groups_1, include_authorized_operations_3)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    groups_1 = body.groups
    if groups_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(groups_1))
        for item2 in groups_1:
            value = item2
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
    if version >= 3:
        out += _T.pack(body.include_authorized_operations)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeGroupsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > len(data) - at or left < 0:
            raise too_many("DescribeGroupsRequest.groups", size, left)
        groups_1 = []
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
                raise null_in("DescribeGroupsRequest.groups")
            groups_1.append(item2)
    else:
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
    if groups_1 is None:
        out += b"\x00"
    else:
        size = len(groups_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in groups_1:
            value = item2
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
    out += _T.pack(body.include_authorized_operations)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 5 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 5 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeGroupsResponse, int]:
    throttle_time_ms_1 = 0
    if version >= 1:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 14 or left < 0:
            raise too_many("DescribeGroupsResponse.groups", size, left)
        groups_2 = []
        for _ in range(size):
            (error_code_4,) = _H.unpack_from(data, at)
            at += 2
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                group_id_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupsResponse.group_id")
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                group_state_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupsResponse.group_state")
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                protocol_type_7 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupsResponse.protocol_type")
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                protocol_data_8 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupsResponse.protocol_data")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 14 or left < 0:
                    raise too_many("DescribeGroupsResponse.members", size, left)
                members_9 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        member_id_11 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeGroupsResponse.member_id")
                    group_instance_id_12 = None
                    if version >= 4:
                        (size,) = _H.unpack_from(data, at)
                        at += 2
                        if size >= 0:
                            end = at + size
                            group_instance_id_12 = str(data[at:end], "utf-8")
                            at = end
                        elif size == -1:
                            group_instance_id_12 = None
                        else:
                            raise malformed("a negative length")
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        client_id_13 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeGroupsResponse.client_id")
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        client_host_14 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeGroupsResponse.client_host")
                    (size,) = _I.unpack_from(data, at)
                    at += 4
                    if size >= 0:
                        end = at + size
                        member_metadata_15 = bytes(data[at:end])
                        at = end
                    else:
                        raise null_in("DescribeGroupsResponse.member_metadata")
                    (size,) = _I.unpack_from(data, at)
                    at += 4
                    if size >= 0:
                        end = at + size
                        member_assignment_16 = bytes(data[at:end])
                        at = end
                    else:
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
            else:
                raise null_in("DescribeGroupsResponse.members")
            authorized_operations_17 = -2147483648
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
    else:
        raise null_in("DescribeGroupsResponse.groups")
    return _new(DescribeGroupsResponse, (throttle_time_ms_1, groups_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        out += _I.pack(body.throttle_time_ms)
    groups_1 = body.groups
    if groups_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(groups_1))
        for item2 in groups_1:
            out += _H.pack(item2.error_code)
            value = item2.group_id
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            value = item2.group_state
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
            value = item2.protocol_data
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            members_3 = item2.members
            if members_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(members_3))
                for item4 in members_3:
                    value = item4.member_id
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    if version >= 4:
                        value = item4.group_instance_id
                        if value is None:
                            out += b"\xff\xff"
                        else:
                            data = value.encode()
                            out += _H.pack(len(data))
                            out += data
                    value = item4.client_id
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    value = item4.client_host
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    value = item4.member_metadata
                    if value is None:
                        out += b"\xff\xff\xff\xff"
                    else:
                        data = value
                        out += _I.pack(len(data))
                        out += data
                    value = item4.member_assignment
                    if value is None:
                        out += b"\xff\xff\xff\xff"
                    else:
                        data = value
                        out += _I.pack(len(data))
                        out += data
            if version >= 3:
                out += _I.pack(item2.authorized_operations)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeGroupsResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 12 or left < 0:
            raise too_many("DescribeGroupsResponse.groups", size, left)
        groups_2 = []
        for _ in range(size):
            (error_code_4,) = _H.unpack_from(data, at)
            at += 2
            error_message_5 = None
            if version >= 6:
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    if size > 32767:
                        raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                    end = at + size
                    error_message_5 = str(data[at:end], "utf-8")
                    at = end
                elif size == -1:
                    error_message_5 = None
                else:
                    raise malformed("a negative length")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                group_id_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupsResponse.group_id")
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
                raise null_in("DescribeGroupsResponse.group_state")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                protocol_type_8 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupsResponse.protocol_type")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                protocol_data_9 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeGroupsResponse.protocol_data")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 7 or left < 0:
                    raise too_many("DescribeGroupsResponse.members", size, left)
                members_10 = []
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
                        member_id_12 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeGroupsResponse.member_id")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        group_instance_id_13 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        group_instance_id_13 = None
                    else:
                        raise malformed("a negative length")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        client_id_14 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeGroupsResponse.client_id")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        client_host_15 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeGroupsResponse.client_host")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        end = at + size
                        member_metadata_16 = bytes(data[at:end])
                        at = end
                    else:
                        raise null_in("DescribeGroupsResponse.member_metadata")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        end = at + size
                        member_assignment_17 = bytes(data[at:end])
                        at = end
                    else:
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
            else:
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
    else:
        raise null_in("DescribeGroupsResponse.groups")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeGroupsResponse, (throttle_time_ms_1, groups_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    groups_1 = body.groups
    if groups_1 is None:
        out += b"\x00"
    else:
        size = len(groups_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in groups_1:
            out += _H.pack(item2.error_code)
            if version >= 6:
                value = item2.error_message
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
            value = item2.group_id
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.group_state
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
            value = item2.protocol_data
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            members_3 = item2.members
            if members_3 is None:
                out += b"\x00"
            else:
                size = len(members_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in members_3:
                    value = item4.member_id
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    value = item4.group_instance_id
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    value = item4.client_id
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    value = item4.client_host
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    value = item4.member_metadata
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    value = item4.member_assignment
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    out.append(0)
            out += _I.pack(item2.authorized_operations)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 5 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 5 else _write_response_classic
