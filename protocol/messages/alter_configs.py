"""AlterConfigs (33), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

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

_T = Struct(">?")
_TX = Struct(">?x")
_B = Struct(">b")
_H = Struct(">h")
_I = Struct(">i")


class AlterableConfig(NamedTuple):
    """AlterableConfig of AlterConfigs."""

    name: str = ""
    value: str | None = ""


class AlterConfigsResource(NamedTuple):
    """AlterConfigsResource of AlterConfigs."""

    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[AlterableConfig] = ()


class AlterConfigsRequest(NamedTuple):
    """AlterConfigs request, v0-2."""

    resources: Sequence[AlterConfigsResource] = ()
    validate_only: bool = False

    @staticmethod
    def response_type() -> type[AlterConfigsResponse]:
        return AlterConfigsResponse


AlterConfigsRequest.API_KEY = 33  # type: ignore[attr-defined]


class AlterConfigsResourceResponse(NamedTuple):
    """AlterConfigsResourceResponse of AlterConfigs."""

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""


class AlterConfigsResponse(NamedTuple):
    """AlterConfigs response, v0-2."""

    throttle_time_ms: int = 0
    responses: Sequence[AlterConfigsResourceResponse] = ()


AlterConfigsResponse.API_KEY = 33  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[AlterConfigsRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 7, "AlterConfigsRequest.resources")
    resources_1: Any = None if size < 0 else []
    for _ in range(size):
        (resource_type_3,) = _B.unpack_from(data, at)
        at += 1
        resource_name_4, at = read_string(data, at)
        if resource_name_4 is None:
            raise null_in("AlterConfigsRequest.resource_name")
        size, at, left = read_count(data, at, left, 4, "AlterConfigsRequest.configs")
        configs_5: Any = None if size < 0 else []
        for _ in range(size):
            name_7, at = read_string(data, at)
            if name_7 is None:
                raise null_in("AlterConfigsRequest.name")
            value_8, at = read_string(data, at)
            item6 = _new(AlterableConfig, (name_7, value_8))
            configs_5.append(item6)
        if configs_5 is None:
            raise null_in("AlterConfigsRequest.configs")
        item2 = _new(AlterConfigsResource, (resource_type_3, resource_name_4, configs_5))
        resources_1.append(item2)
    if resources_1 is None:
        raise null_in("AlterConfigsRequest.resources")
    (validate_only_9,) = _T.unpack_from(data, at)
    at += 1
    return _new(AlterConfigsRequest, (resources_1, validate_only_9)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    resources_1 = body.resources
    write_count(out, resources_1)
    for item2 in resources_1 or ():
        out += _B.pack(item2.resource_type)
        write_string(out, item2.resource_name)
        configs_3 = item2.configs
        write_count(out, configs_3)
        for item4 in configs_3 or ():
            write_string(out, item4.name)
            write_string(out, item4.value)
    out += _T.pack(body.validate_only)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[AlterConfigsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 4, "AlterConfigsRequest.resources")
    resources_1: Any = None if size < 0 else []
    for _ in range(size):
        (resource_type_3,) = _B.unpack_from(data, at)
        at += 1
        resource_name_4, at = read_compact_string(data, at)
        if resource_name_4 is None:
            raise null_in("AlterConfigsRequest.resource_name")
        size, at, left = read_compact_count(data, at, left, 3, "AlterConfigsRequest.configs")
        configs_5: Any = None if size < 0 else []
        for _ in range(size):
            name_7, at = read_compact_string(data, at)
            if name_7 is None:
                raise null_in("AlterConfigsRequest.name")
            value_8, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(AlterableConfig, (name_7, value_8))
            configs_5.append(item6)
        if configs_5 is None:
            raise null_in("AlterConfigsRequest.configs")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(AlterConfigsResource, (resource_type_3, resource_name_4, configs_5))
        resources_1.append(item2)
    if resources_1 is None:
        raise null_in("AlterConfigsRequest.resources")
    (validate_only_9,) = _T.unpack_from(data, at)
    at += 1
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterConfigsRequest, (resources_1, validate_only_9)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    resources_1 = body.resources
    write_compact_count(out, resources_1)
    for item2 in resources_1 or ():
        out += _B.pack(item2.resource_type)
        write_compact_string(out, item2.resource_name)
        configs_3 = item2.configs
        write_compact_count(out, configs_3)
        for item4 in configs_3 or ():
            write_compact_string(out, item4.name)
            write_compact_string(out, item4.value)
            out.append(0)
        out.append(0)
    out += _TX.pack(body.validate_only)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[AlterConfigsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 7, "AlterConfigsResponse.responses")
    responses_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_string(data, at)
        (resource_type_6,) = _B.unpack_from(data, at)
        at += 1
        resource_name_7, at = read_string(data, at)
        if resource_name_7 is None:
            raise null_in("AlterConfigsResponse.resource_name")
        item3 = _new(
            AlterConfigsResourceResponse, (error_code_4, error_message_5, resource_type_6, resource_name_7)
        )
        responses_2.append(item3)
    if responses_2 is None:
        raise null_in("AlterConfigsResponse.responses")
    return _new(AlterConfigsResponse, (throttle_time_ms_1, responses_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    responses_1 = body.responses
    write_count(out, responses_1)
    for item2 in responses_1 or ():
        out += _H.pack(item2.error_code)
        write_string(out, item2.error_message)
        out += _B.pack(item2.resource_type)
        write_string(out, item2.resource_name)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[AlterConfigsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 6, "AlterConfigsResponse.responses")
    responses_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_compact_string(data, at)
        (resource_type_6,) = _B.unpack_from(data, at)
        at += 1
        resource_name_7, at = read_compact_string(data, at)
        if resource_name_7 is None:
            raise null_in("AlterConfigsResponse.resource_name")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(
            AlterConfigsResourceResponse, (error_code_4, error_message_5, resource_type_6, resource_name_7)
        )
        responses_2.append(item3)
    if responses_2 is None:
        raise null_in("AlterConfigsResponse.responses")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterConfigsResponse, (throttle_time_ms_1, responses_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    responses_1 = body.responses
    write_compact_count(out, responses_1)
    for item2 in responses_1 or ():
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        out += _B.pack(item2.resource_type)
        write_compact_string(out, item2.resource_name)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
