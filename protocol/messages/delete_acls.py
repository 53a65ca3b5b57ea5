"""DeleteAcls (31), versions 1 to 3. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_B = Struct(">b")
_BB = Struct(">bb")
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


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteAclsRequest, int]:
    del version
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 10 or left < 0:
            raise too_many("DeleteAclsRequest.filters", size, left)
        filters_1 = []
        for _ in range(size):
            (resource_type_filter_3,) = _B.unpack_from(data, at)
            at += 1
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                resource_name_filter_4 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                resource_name_filter_4 = None
            else:
                raise malformed("a negative length")
            (pattern_type_filter_5,) = _B.unpack_from(data, at)
            at += 1
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                principal_filter_6 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                principal_filter_6 = None
            else:
                raise malformed("a negative length")
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                host_filter_7 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                host_filter_7 = None
            else:
                raise malformed("a negative length")
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
    else:
        raise null_in("DeleteAclsRequest.filters")
    return _new(DeleteAclsRequest, (filters_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    filters_1 = body.filters
    if filters_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(filters_1))
        for item2 in filters_1:
            out += _B.pack(item2.resource_type_filter)
            value = item2.resource_name_filter
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            out += _B.pack(item2.pattern_type_filter)
            value = item2.principal_filter
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            value = item2.host_filter
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            out += _BB.pack(item2.operation, item2.permission_type)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteAclsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 8 or left < 0:
            raise too_many("DeleteAclsRequest.filters", size, left)
        filters_1 = []
        for _ in range(size):
            (resource_type_filter_3,) = _B.unpack_from(data, at)
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
                resource_name_filter_4 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                resource_name_filter_4 = None
            else:
                raise malformed("a negative length")
            (pattern_type_filter_5,) = _B.unpack_from(data, at)
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
                principal_filter_6 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                principal_filter_6 = None
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
                host_filter_7 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                host_filter_7 = None
            else:
                raise malformed("a negative length")
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
    else:
        raise null_in("DeleteAclsRequest.filters")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteAclsRequest, (filters_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    filters_1 = body.filters
    if filters_1 is None:
        out += b"\x00"
    else:
        size = len(filters_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in filters_1:
            out += _B.pack(item2.resource_type_filter)
            value = item2.resource_name_filter
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _B.pack(item2.pattern_type_filter)
            value = item2.principal_filter
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.host_filter
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _BB.pack(item2.operation, item2.permission_type)
            out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteAclsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 8 or left < 0:
            raise too_many("DeleteAclsResponse.filter_results", size, left)
        filter_results_2 = []
        for _ in range(size):
            (error_code_4,) = _H.unpack_from(data, at)
            at += 2
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                error_message_5 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                error_message_5 = None
            else:
                raise malformed("a negative length")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 14 or left < 0:
                    raise too_many("DeleteAclsResponse.matching_acls", size, left)
                matching_acls_6 = []
                for _ in range(size):
                    (error_code_8,) = _H.unpack_from(data, at)
                    at += 2
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        error_message_9 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        error_message_9 = None
                    else:
                        raise malformed("a negative length")
                    (resource_type_10,) = _B.unpack_from(data, at)
                    at += 1
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        resource_name_11 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DeleteAclsResponse.resource_name")
                    (pattern_type_12,) = _B.unpack_from(data, at)
                    at += 1
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        principal_13 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DeleteAclsResponse.principal")
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        host_14 = str(data[at:end], "utf-8")
                        at = end
                    else:
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
            else:
                raise null_in("DeleteAclsResponse.matching_acls")
            item3 = _new(DeleteAclsFilterResult, (error_code_4, error_message_5, matching_acls_6))
            filter_results_2.append(item3)
    else:
        raise null_in("DeleteAclsResponse.filter_results")
    return _new(DeleteAclsResponse, (throttle_time_ms_1, filter_results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    filter_results_1 = body.filter_results
    if filter_results_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(filter_results_1))
        for item2 in filter_results_1:
            out += _H.pack(item2.error_code)
            value = item2.error_message
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            matching_acls_3 = item2.matching_acls
            if matching_acls_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(matching_acls_3))
                for item4 in matching_acls_3:
                    out += _H.pack(item4.error_code)
                    value = item4.error_message
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    out += _B.pack(item4.resource_type)
                    value = item4.resource_name
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    out += _B.pack(item4.pattern_type)
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


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteAclsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 5 or left < 0:
            raise too_many("DeleteAclsResponse.filter_results", size, left)
        filter_results_2 = []
        for _ in range(size):
            (error_code_4,) = _H.unpack_from(data, at)
            at += 2
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
                left -= size
                if size > (len(data) - at) // 11 or left < 0:
                    raise too_many("DeleteAclsResponse.matching_acls", size, left)
                matching_acls_6 = []
                for _ in range(size):
                    (error_code_8,) = _H.unpack_from(data, at)
                    at += 2
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        error_message_9 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        error_message_9 = None
                    else:
                        raise malformed("a negative length")
                    (resource_type_10,) = _B.unpack_from(data, at)
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
                        resource_name_11 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DeleteAclsResponse.resource_name")
                    (pattern_type_12,) = _B.unpack_from(data, at)
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
                        principal_13 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DeleteAclsResponse.principal")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        host_14 = str(data[at:end], "utf-8")
                        at = end
                    else:
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
            else:
                raise null_in("DeleteAclsResponse.matching_acls")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(DeleteAclsFilterResult, (error_code_4, error_message_5, matching_acls_6))
            filter_results_2.append(item3)
    else:
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
    if filter_results_1 is None:
        out += b"\x00"
    else:
        size = len(filter_results_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in filter_results_1:
            out += _H.pack(item2.error_code)
            value = item2.error_message
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            matching_acls_3 = item2.matching_acls
            if matching_acls_3 is None:
                out += b"\x00"
            else:
                size = len(matching_acls_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in matching_acls_3:
                    out += _H.pack(item4.error_code)
                    value = item4.error_message
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    out += _B.pack(item4.resource_type)
                    value = item4.resource_name
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    out += _B.pack(item4.pattern_type)
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
