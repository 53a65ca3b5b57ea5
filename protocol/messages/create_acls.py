"""CreateAcls (30), versions 1 to 3. Written by scripts/generate_messages.py: do not edit."""

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

    @staticmethod
    def response_type() -> type[CreateAclsResponse]:
        return CreateAclsResponse


CreateAclsRequest.API_KEY = 30  # type: ignore[attr-defined]


class AclCreationResult(NamedTuple):
    """AclCreationResult of CreateAcls."""

    error_code: int = 0
    error_message: str | None = ""


class CreateAclsResponse(NamedTuple):
    """CreateAcls response, v1-3."""

    throttle_time_ms: int = 0
    results: Sequence[AclCreationResult] = ()


CreateAclsResponse.API_KEY = 30  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[CreateAclsRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 10, "CreateAclsRequest.creations")
    creations_1: Any = None if size < 0 else []
    for _ in range(size):
        (resource_type_3,) = _B.unpack_from(data, at)
        at += 1
        resource_name_4, at = read_string(data, at)
        if resource_name_4 is None:
            raise null_in("CreateAclsRequest.resource_name")
        (resource_pattern_type_5,) = _B.unpack_from(data, at)
        at += 1
        principal_6, at = read_string(data, at)
        if principal_6 is None:
            raise null_in("CreateAclsRequest.principal")
        host_7, at = read_string(data, at)
        if host_7 is None:
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
    if creations_1 is None:
        raise null_in("CreateAclsRequest.creations")
    return _new(CreateAclsRequest, (creations_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    creations_1 = body.creations
    write_count(out, creations_1)
    for item2 in creations_1 or ():
        out += _B.pack(item2.resource_type)
        write_string(out, item2.resource_name)
        out += _B.pack(item2.resource_pattern_type)
        write_string(out, item2.principal)
        write_string(out, item2.host)
        out += _BB.pack(item2.operation, item2.permission_type)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[CreateAclsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 8, "CreateAclsRequest.creations")
    creations_1: Any = None if size < 0 else []
    for _ in range(size):
        (resource_type_3,) = _B.unpack_from(data, at)
        at += 1
        resource_name_4, at = read_compact_string(data, at)
        if resource_name_4 is None:
            raise null_in("CreateAclsRequest.resource_name")
        (resource_pattern_type_5,) = _B.unpack_from(data, at)
        at += 1
        principal_6, at = read_compact_string(data, at)
        if principal_6 is None:
            raise null_in("CreateAclsRequest.principal")
        host_7, at = read_compact_string(data, at)
        if host_7 is None:
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
    if creations_1 is None:
        raise null_in("CreateAclsRequest.creations")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(CreateAclsRequest, (creations_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    creations_1 = body.creations
    write_compact_count(out, creations_1)
    for item2 in creations_1 or ():
        out += _B.pack(item2.resource_type)
        write_compact_string(out, item2.resource_name)
        out += _B.pack(item2.resource_pattern_type)
        write_compact_string(out, item2.principal)
        write_compact_string(out, item2.host)
        out += _BBX.pack(item2.operation, item2.permission_type)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[CreateAclsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 4, "CreateAclsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_string(data, at)
        item3 = _new(AclCreationResult, (error_code_4, error_message_5))
        results_2.append(item3)
    if results_2 is None:
        raise null_in("CreateAclsResponse.results")
    return _new(CreateAclsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    write_count(out, results_1)
    for item2 in results_1 or ():
        out += _H.pack(item2.error_code)
        write_string(out, item2.error_message)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[CreateAclsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 4, "CreateAclsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_compact_string(data, at)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(AclCreationResult, (error_code_4, error_message_5))
        results_2.append(item3)
    if results_2 is None:
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
    write_compact_count(out, results_1)
    for item2 in results_1 or ():
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
