"""DescribeAcls (29), versions 1 to 3. Written by scripts/generate_messages.py: do not edit."""

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

_B = Struct(">b")
_BB = Struct(">bb")
_BBX = Struct(">bbx")
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

    @staticmethod
    def response_type() -> type[DescribeAclsResponse]:
        return DescribeAclsResponse


DescribeAclsRequest.API_KEY = 29  # type: ignore[attr-defined]


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


DescribeAclsResponse.API_KEY = 29  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeAclsRequest, int]:
    del version
    del left
    (resource_type_filter_1,) = _B.unpack_from(data, at)
    at += 1
    resource_name_filter_2, at = read_string(data, at)
    (pattern_type_filter_3,) = _B.unpack_from(data, at)
    at += 1
    principal_filter_4, at = read_string(data, at)
    host_filter_5, at = read_string(data, at)
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
    write_string(out, body.resource_name_filter)
    out += _B.pack(body.pattern_type_filter)
    write_string(out, body.principal_filter)
    write_string(out, body.host_filter)
    out += _BB.pack(body.operation, body.permission_type)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeAclsRequest, int]:
    del version
    del left
    (resource_type_filter_1,) = _B.unpack_from(data, at)
    at += 1
    resource_name_filter_2, at = read_compact_string(data, at)
    (pattern_type_filter_3,) = _B.unpack_from(data, at)
    at += 1
    principal_filter_4, at = read_compact_string(data, at)
    host_filter_5, at = read_compact_string(data, at)
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
    write_compact_string(out, body.resource_name_filter)
    out += _B.pack(body.pattern_type_filter)
    write_compact_string(out, body.principal_filter)
    write_compact_string(out, body.host_filter)
    out += _BBX.pack(body.operation, body.permission_type)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeAclsResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    error_message_3, at = read_string(data, at)
    size, at, left = read_count(data, at, left, 8, "DescribeAclsResponse.resources")
    resources_4: Any = None if size < 0 else []
    for _ in range(size):
        (resource_type_6,) = _B.unpack_from(data, at)
        at += 1
        resource_name_7, at = read_string(data, at)
        if resource_name_7 is None:
            raise null_in("DescribeAclsResponse.resource_name")
        (pattern_type_8,) = _B.unpack_from(data, at)
        at += 1
        size, at, left = read_count(data, at, left, 6, "DescribeAclsResponse.acls")
        acls_9: Any = None if size < 0 else []
        for _ in range(size):
            principal_11, at = read_string(data, at)
            if principal_11 is None:
                raise null_in("DescribeAclsResponse.principal")
            host_12, at = read_string(data, at)
            if host_12 is None:
                raise null_in("DescribeAclsResponse.host")
            operation_13, permission_type_14 = _BB.unpack_from(data, at)
            at += 2
            item10 = _new(AclDescription, (principal_11, host_12, operation_13, permission_type_14))
            acls_9.append(item10)
        if acls_9 is None:
            raise null_in("DescribeAclsResponse.acls")
        item5 = _new(DescribeAclsResource, (resource_type_6, resource_name_7, pattern_type_8, acls_9))
        resources_4.append(item5)
    if resources_4 is None:
        raise null_in("DescribeAclsResponse.resources")
    return _new(DescribeAclsResponse, (throttle_time_ms_1, error_code_2, error_message_3, resources_4)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_string(out, body.error_message)
    resources_1 = body.resources
    write_count(out, resources_1)
    for item2 in resources_1 or ():
        out += _B.pack(item2.resource_type)
        write_string(out, item2.resource_name)
        out += _B.pack(item2.pattern_type)
        acls_3 = item2.acls
        write_count(out, acls_3)
        for item4 in acls_3 or ():
            write_string(out, item4.principal)
            write_string(out, item4.host)
            out += _BB.pack(item4.operation, item4.permission_type)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeAclsResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    error_message_3, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 5, "DescribeAclsResponse.resources")
    resources_4: Any = None if size < 0 else []
    for _ in range(size):
        (resource_type_6,) = _B.unpack_from(data, at)
        at += 1
        resource_name_7, at = read_compact_string(data, at)
        if resource_name_7 is None:
            raise null_in("DescribeAclsResponse.resource_name")
        (pattern_type_8,) = _B.unpack_from(data, at)
        at += 1
        size, at, left = read_compact_count(data, at, left, 5, "DescribeAclsResponse.acls")
        acls_9: Any = None if size < 0 else []
        for _ in range(size):
            principal_11, at = read_compact_string(data, at)
            if principal_11 is None:
                raise null_in("DescribeAclsResponse.principal")
            host_12, at = read_compact_string(data, at)
            if host_12 is None:
                raise null_in("DescribeAclsResponse.host")
            operation_13, permission_type_14 = _BB.unpack_from(data, at)
            at += 2
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item10 = _new(AclDescription, (principal_11, host_12, operation_13, permission_type_14))
            acls_9.append(item10)
        if acls_9 is None:
            raise null_in("DescribeAclsResponse.acls")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item5 = _new(DescribeAclsResource, (resource_type_6, resource_name_7, pattern_type_8, acls_9))
        resources_4.append(item5)
    if resources_4 is None:
        raise null_in("DescribeAclsResponse.resources")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeAclsResponse, (throttle_time_ms_1, error_code_2, error_message_3, resources_4)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_compact_string(out, body.error_message)
    resources_1 = body.resources
    write_compact_count(out, resources_1)
    for item2 in resources_1 or ():
        out += _B.pack(item2.resource_type)
        write_compact_string(out, item2.resource_name)
        out += _B.pack(item2.pattern_type)
        acls_3 = item2.acls
        write_compact_count(out, acls_3)
        for item4 in acls_3 or ():
            write_compact_string(out, item4.principal)
            write_compact_string(out, item4.host)
            out += _BBX.pack(item4.operation, item4.permission_type)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
