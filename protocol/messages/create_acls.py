"""CreateAcls (30), versions 1 to 3. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_B = Struct(">b")
_BB = Struct(">bb")
_H = Struct(">h")
_I = Struct(">i")


class AclCreation(NamedTuple):
    """AclCreation of CreateAcls."""

    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class CreateAclsRequest(NamedTuple):
    """CreateAcls request, v1-3."""

    creations: Sequence[AclCreation] = ()


class AclCreationResult(NamedTuple):
    """AclCreationResult of CreateAcls."""

    error_code: int = 0
    error_message: str | None = ""


class CreateAclsResponse(NamedTuple):
    """CreateAcls response, v1-3."""

    throttle_time_ms: int = 0
    results: Sequence[AclCreationResult] = ()


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[CreateAclsRequest, int]:
    del version
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 10 or left < 0:
            raise too_many("CreateAclsRequest.creations", size, left)
        creations_1 = []
        for _ in range(size):
            (resource_type_3,) = _B.unpack_from(data, at)
            at += 1
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                resource_name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("CreateAclsRequest.resource_name")
            (resource_pattern_type_5,) = _B.unpack_from(data, at)
            at += 1
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                principal_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("CreateAclsRequest.principal")
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                host_7 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("CreateAclsRequest.host")
            operation_8, permission_type_9 = _BB.unpack_from(data, at)
            at += 2
            item2 = _new(
                AclCreation,
                (
                    resource_type_3,
                    resource_name_4,
                    resource_pattern_type_5,
                    principal_6,
                    host_7,
                    operation_8,
                    permission_type_9,
                ),
            )
            creations_1.append(item2)
    else:
        raise null_in("CreateAclsRequest.creations")
    return _new(CreateAclsRequest, (creations_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    creations_1 = body.creations
    if creations_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(creations_1))
        for item2 in creations_1:
            out += _B.pack(item2.resource_type)
            value = item2.resource_name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            out += _B.pack(item2.resource_pattern_type)
            value = item2.principal
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            value = item2.host
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            out += _BB.pack(item2.operation, item2.permission_type)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[CreateAclsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 8 or left < 0:
            raise too_many("CreateAclsRequest.creations", size, left)
        creations_1 = []
        for _ in range(size):
            (resource_type_3,) = _B.unpack_from(data, at)
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
                resource_name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("CreateAclsRequest.resource_name")
            (resource_pattern_type_5,) = _B.unpack_from(data, at)
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
                principal_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("CreateAclsRequest.principal")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                host_7 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("CreateAclsRequest.host")
            operation_8, permission_type_9 = _BB.unpack_from(data, at)
            at += 2
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(
                AclCreation,
                (
                    resource_type_3,
                    resource_name_4,
                    resource_pattern_type_5,
                    principal_6,
                    host_7,
                    operation_8,
                    permission_type_9,
                ),
            )
            creations_1.append(item2)
    else:
        raise null_in("CreateAclsRequest.creations")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(CreateAclsRequest, (creations_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    creations_1 = body.creations
    if creations_1 is None:
        out += b"\x00"
    else:
        size = len(creations_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in creations_1:
            out += _B.pack(item2.resource_type)
            value = item2.resource_name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _B.pack(item2.resource_pattern_type)
            value = item2.principal
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.host
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


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[CreateAclsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("CreateAclsResponse.results", size, left)
        results_2 = []
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
            item3 = _new(AclCreationResult, (error_code_4, error_message_5))
            results_2.append(item3)
    else:
        raise null_in("CreateAclsResponse.results")
    return _new(CreateAclsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    if results_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(results_1))
        for item2 in results_1:
            out += _H.pack(item2.error_code)
            value = item2.error_message
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[CreateAclsResponse, int]:
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
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("CreateAclsResponse.results", size, left)
        results_2 = []
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
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(AclCreationResult, (error_code_4, error_message_5))
            results_2.append(item3)
    else:
        raise null_in("CreateAclsResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(CreateAclsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    if results_1 is None:
        out += b"\x00"
    else:
        size = len(results_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in results_1:
            out += _H.pack(item2.error_code)
            value = item2.error_message
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
