"""DeleteAcls (31), versions 1 to 3. Written by scripts/generate_messages.py: do not edit."""

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
_H = Struct(">h")
_I = Struct(">i")


class DeleteAclsFilter(NamedTuple):
    """DeleteAclsFilter of DeleteAcls."""

    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsRequest(NamedTuple):
    """DeleteAcls request, v1-3."""

    filters: Sequence[DeleteAclsFilter] = ()

    @staticmethod
    def response_type() -> type[DeleteAclsResponse]:
        return DeleteAclsResponse


DeleteAclsRequest.API_KEY = 31  # type: ignore[attr-defined]


class DeleteAclsMatchingAcl(NamedTuple):
    """DeleteAclsMatchingAcl of DeleteAcls."""

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsFilterResult(NamedTuple):
    """DeleteAclsFilterResult of DeleteAcls."""

    error_code: int = 0
    error_message: str | None = ""
    matching_acls: Sequence[DeleteAclsMatchingAcl] = ()


class DeleteAclsResponse(NamedTuple):
    """DeleteAcls response, v1-3."""

    throttle_time_ms: int = 0
    filter_results: Sequence[DeleteAclsFilterResult] = ()


DeleteAclsResponse.API_KEY = 31  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteAclsRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 10, "DeleteAclsRequest.filters")
    filters_1: Any = None if size < 0 else []
    for _ in range(size):
        (resource_type_filter_3,) = _B.unpack_from(data, at)
        at += 1
        resource_name_filter_4, at = read_string(data, at)
        (pattern_type_filter_5,) = _B.unpack_from(data, at)
        at += 1
        principal_filter_6, at = read_string(data, at)
        host_filter_7, at = read_string(data, at)
        operation_8, permission_type_9 = _BB.unpack_from(data, at)
        at += 2
        item2 = _new(
            DeleteAclsFilter,
            (
                resource_type_filter_3,
                resource_name_filter_4,
                pattern_type_filter_5,
                principal_filter_6,
                host_filter_7,
                operation_8,
                permission_type_9,
            ),
        )
        filters_1.append(item2)
    if filters_1 is None:
        raise null_in("DeleteAclsRequest.filters")
    return _new(DeleteAclsRequest, (filters_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    filters_1 = body.filters
    write_count(out, filters_1)
    for item2 in filters_1 or ():
        out += _B.pack(item2.resource_type_filter)
        write_string(out, item2.resource_name_filter)
        out += _B.pack(item2.pattern_type_filter)
        write_string(out, item2.principal_filter)
        write_string(out, item2.host_filter)
        out += _BB.pack(item2.operation, item2.permission_type)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteAclsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 8, "DeleteAclsRequest.filters")
    filters_1: Any = None if size < 0 else []
    for _ in range(size):
        (resource_type_filter_3,) = _B.unpack_from(data, at)
        at += 1
        resource_name_filter_4, at = read_compact_string(data, at)
        (pattern_type_filter_5,) = _B.unpack_from(data, at)
        at += 1
        principal_filter_6, at = read_compact_string(data, at)
        host_filter_7, at = read_compact_string(data, at)
        operation_8, permission_type_9 = _BB.unpack_from(data, at)
        at += 2
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(
            DeleteAclsFilter,
            (
                resource_type_filter_3,
                resource_name_filter_4,
                pattern_type_filter_5,
                principal_filter_6,
                host_filter_7,
                operation_8,
                permission_type_9,
            ),
        )
        filters_1.append(item2)
    if filters_1 is None:
        raise null_in("DeleteAclsRequest.filters")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteAclsRequest, (filters_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    filters_1 = body.filters
    write_compact_count(out, filters_1)
    for item2 in filters_1 or ():
        out += _B.pack(item2.resource_type_filter)
        write_compact_string(out, item2.resource_name_filter)
        out += _B.pack(item2.pattern_type_filter)
        write_compact_string(out, item2.principal_filter)
        write_compact_string(out, item2.host_filter)
        out += _BBX.pack(item2.operation, item2.permission_type)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteAclsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 8, "DeleteAclsResponse.filter_results")
    filter_results_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_string(data, at)
        size, at, left = read_count(data, at, left, 14, "DeleteAclsResponse.matching_acls")
        matching_acls_6: Any = None if size < 0 else []
        for _ in range(size):
            (error_code_8,) = _H.unpack_from(data, at)
            at += 2
            error_message_9, at = read_string(data, at)
            (resource_type_10,) = _B.unpack_from(data, at)
            at += 1
            resource_name_11, at = read_string(data, at)
            if resource_name_11 is None:
                raise null_in("DeleteAclsResponse.resource_name")
            (pattern_type_12,) = _B.unpack_from(data, at)
            at += 1
            principal_13, at = read_string(data, at)
            if principal_13 is None:
                raise null_in("DeleteAclsResponse.principal")
            host_14, at = read_string(data, at)
            if host_14 is None:
                raise null_in("DeleteAclsResponse.host")
            operation_15, permission_type_16 = _BB.unpack_from(data, at)
            at += 2
            item7 = _new(
                DeleteAclsMatchingAcl,
                (
                    error_code_8,
                    error_message_9,
                    resource_type_10,
                    resource_name_11,
                    pattern_type_12,
                    principal_13,
                    host_14,
                    operation_15,
                    permission_type_16,
                ),
            )
            matching_acls_6.append(item7)
        if matching_acls_6 is None:
            raise null_in("DeleteAclsResponse.matching_acls")
        item3 = _new(DeleteAclsFilterResult, (error_code_4, error_message_5, matching_acls_6))
        filter_results_2.append(item3)
    if filter_results_2 is None:
        raise null_in("DeleteAclsResponse.filter_results")
    return _new(DeleteAclsResponse, (throttle_time_ms_1, filter_results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    filter_results_1 = body.filter_results
    write_count(out, filter_results_1)
    for item2 in filter_results_1 or ():
        out += _H.pack(item2.error_code)
        write_string(out, item2.error_message)
        matching_acls_3 = item2.matching_acls
        write_count(out, matching_acls_3)
        for item4 in matching_acls_3 or ():
            out += _H.pack(item4.error_code)
            write_string(out, item4.error_message)
            out += _B.pack(item4.resource_type)
            write_string(out, item4.resource_name)
            out += _B.pack(item4.pattern_type)
            write_string(out, item4.principal)
            write_string(out, item4.host)
            out += _BB.pack(item4.operation, item4.permission_type)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteAclsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 5, "DeleteAclsResponse.filter_results")
    filter_results_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_compact_string(data, at)
        size, at, left = read_compact_count(data, at, left, 11, "DeleteAclsResponse.matching_acls")
        matching_acls_6: Any = None if size < 0 else []
        for _ in range(size):
            (error_code_8,) = _H.unpack_from(data, at)
            at += 2
            error_message_9, at = read_compact_string(data, at)
            (resource_type_10,) = _B.unpack_from(data, at)
            at += 1
            resource_name_11, at = read_compact_string(data, at)
            if resource_name_11 is None:
                raise null_in("DeleteAclsResponse.resource_name")
            (pattern_type_12,) = _B.unpack_from(data, at)
            at += 1
            principal_13, at = read_compact_string(data, at)
            if principal_13 is None:
                raise null_in("DeleteAclsResponse.principal")
            host_14, at = read_compact_string(data, at)
            if host_14 is None:
                raise null_in("DeleteAclsResponse.host")
            operation_15, permission_type_16 = _BB.unpack_from(data, at)
            at += 2
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item7 = _new(
                DeleteAclsMatchingAcl,
                (
                    error_code_8,
                    error_message_9,
                    resource_type_10,
                    resource_name_11,
                    pattern_type_12,
                    principal_13,
                    host_14,
                    operation_15,
                    permission_type_16,
                ),
            )
            matching_acls_6.append(item7)
        if matching_acls_6 is None:
            raise null_in("DeleteAclsResponse.matching_acls")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(DeleteAclsFilterResult, (error_code_4, error_message_5, matching_acls_6))
        filter_results_2.append(item3)
    if filter_results_2 is None:
        raise null_in("DeleteAclsResponse.filter_results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteAclsResponse, (throttle_time_ms_1, filter_results_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    filter_results_1 = body.filter_results
    write_compact_count(out, filter_results_1)
    for item2 in filter_results_1 or ():
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        matching_acls_3 = item2.matching_acls
        write_compact_count(out, matching_acls_3)
        for item4 in matching_acls_3 or ():
            out += _H.pack(item4.error_code)
            write_compact_string(out, item4.error_message)
            out += _B.pack(item4.resource_type)
            write_compact_string(out, item4.resource_name)
            out += _B.pack(item4.pattern_type)
            write_compact_string(out, item4.principal)
            write_compact_string(out, item4.host)
            out += _BBX.pack(item4.operation, item4.permission_type)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
