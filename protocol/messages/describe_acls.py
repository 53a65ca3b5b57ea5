"""DescribeAcls (29), versions 1 to 3. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_B = Struct(">b")
_BB = Struct(">bb")
_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")


class DescribeAclsRequest(NamedTuple):
    """DescribeAcls request, v1-3."""

    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


class AclDescription(NamedTuple):
    """AclDescription of DescribeAcls."""

    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DescribeAclsResource(NamedTuple):
    """DescribeAclsResource of DescribeAcls."""

    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: Sequence[AclDescription] = ()


class DescribeAclsResponse(NamedTuple):
    """DescribeAcls response, v1-3."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: Sequence[DescribeAclsResource] = ()


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeAclsRequest, int]:
    del version
    del left
    (resource_type_filter_1,) = _B.unpack_from(data, at)
    at += 1
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        resource_name_filter_2 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        resource_name_filter_2 = None
    else:
        raise malformed("a negative length")
    (pattern_type_filter_3,) = _B.unpack_from(data, at)
    at += 1
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        principal_filter_4 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        principal_filter_4 = None
    else:
        raise malformed("a negative length")
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        host_filter_5 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        host_filter_5 = None
    else:
        raise malformed("a negative length")
    operation_6, permission_type_7 = _BB.unpack_from(data, at)
    at += 2
    return _new(
        DescribeAclsRequest,
        (
            resource_type_filter_1,
            resource_name_filter_2,
            pattern_type_filter_3,
            principal_filter_4,
            host_filter_5,
            operation_6,
            permission_type_7,
        ),
    ), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _B.pack(body.resource_type_filter)
    value = body.resource_name_filter
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    out += _B.pack(body.pattern_type_filter)
    value = body.principal_filter
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    value = body.host_filter
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    out += _BB.pack(body.operation, body.permission_type)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeAclsRequest, int]:
    del version
    del left
    (resource_type_filter_1,) = _B.unpack_from(data, at)
    at += 1
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        resource_name_filter_2 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        resource_name_filter_2 = None
    else:
        raise malformed("a negative length")
    (pattern_type_filter_3,) = _B.unpack_from(data, at)
    at += 1
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        principal_filter_4 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        principal_filter_4 = None
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
        host_filter_5 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        host_filter_5 = None
    else:
        raise malformed("a negative length")
    operation_6, permission_type_7 = _BB.unpack_from(data, at)
    at += 2
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        DescribeAclsRequest,
        (
            resource_type_filter_1,
            resource_name_filter_2,
            pattern_type_filter_3,
            principal_filter_4,
            host_filter_5,
            operation_6,
            permission_type_7,
        ),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _B.pack(body.resource_type_filter)
    value = body.resource_name_filter
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out += _B.pack(body.pattern_type_filter)
    value = body.principal_filter
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    value = body.host_filter
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out += _BB.pack(body.operation, body.permission_type)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeAclsResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        error_message_3 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        error_message_3 = None
    else:
        raise malformed("a negative length")
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 8 or left < 0:
            raise too_many("DescribeAclsResponse.resources", size, left)
        resources_4 = []
        for _ in range(size):
            (resource_type_6,) = _B.unpack_from(data, at)
            at += 1
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                resource_name_7 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeAclsResponse.resource_name")
            (pattern_type_8,) = _B.unpack_from(data, at)
            at += 1
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("DescribeAclsResponse.acls", size, left)
                acls_9 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        principal_11 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeAclsResponse.principal")
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        host_12 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeAclsResponse.host")
                    operation_13, permission_type_14 = _BB.unpack_from(data, at)
                    at += 2
                    item10 = _new(AclDescription, (principal_11, host_12, operation_13, permission_type_14))
                    acls_9.append(item10)
            else:
                raise null_in("DescribeAclsResponse.acls")
            item5 = _new(DescribeAclsResource, (resource_type_6, resource_name_7, pattern_type_8, acls_9))
            resources_4.append(item5)
    else:
        raise null_in("DescribeAclsResponse.resources")
    return _new(DescribeAclsResponse, (throttle_time_ms_1, error_code_2, error_message_3, resources_4)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    value = body.error_message
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    resources_1 = body.resources
    if resources_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(resources_1))
        for item2 in resources_1:
            out += _B.pack(item2.resource_type)
            value = item2.resource_name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            out += _B.pack(item2.pattern_type)
            acls_3 = item2.acls
            if acls_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(acls_3))
                for item4 in acls_3:
                    value = item4.principal
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    value = item4.host
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    out += _BB.pack(item4.operation, item4.permission_type)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeAclsResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        error_message_3 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        error_message_3 = None
    else:
        raise malformed("a negative length")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 5 or left < 0:
            raise too_many("DescribeAclsResponse.resources", size, left)
        resources_4 = []
        for _ in range(size):
            (resource_type_6,) = _B.unpack_from(data, at)
            at += 1
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                resource_name_7 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeAclsResponse.resource_name")
            (pattern_type_8,) = _B.unpack_from(data, at)
            at += 1
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 5 or left < 0:
                    raise too_many("DescribeAclsResponse.acls", size, left)
                acls_9 = []
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
                        principal_11 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeAclsResponse.principal")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        host_12 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeAclsResponse.host")
                    operation_13, permission_type_14 = _BB.unpack_from(data, at)
                    at += 2
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item10 = _new(AclDescription, (principal_11, host_12, operation_13, permission_type_14))
                    acls_9.append(item10)
            else:
                raise null_in("DescribeAclsResponse.acls")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(DescribeAclsResource, (resource_type_6, resource_name_7, pattern_type_8, acls_9))
            resources_4.append(item5)
    else:
        raise null_in("DescribeAclsResponse.resources")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeAclsResponse, (throttle_time_ms_1, error_code_2, error_message_3, resources_4)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    value = body.error_message
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    resources_1 = body.resources
    if resources_1 is None:
        out += b"\x00"
    else:
        size = len(resources_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in resources_1:
            out += _B.pack(item2.resource_type)
            value = item2.resource_name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _B.pack(item2.pattern_type)
            acls_3 = item2.acls
            if acls_3 is None:
                out += b"\x00"
            else:
                size = len(acls_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in acls_3:
                    value = item4.principal
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    value = item4.host
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    out += _BB.pack(item4.operation, item4.permission_type)
                    out.append(0)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
