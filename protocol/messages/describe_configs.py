"""DescribeConfigs (32), versions 1 to 4. Written by scripts/generate_messages.py: do not edit."""

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
    write_array,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
)

_T = Struct(">?")
_TT = Struct(">??")
_TTX = Struct(">??x")
_TBT = Struct(">?b?")
_B = Struct(">b")
_BX = Struct(">bx")
_H = Struct(">h")
_I = Struct(">i")


class DescribeConfigsResource(NamedTuple):
    """DescribeConfigsResource of DescribeConfigs."""

    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: Sequence[str] | None = ()


class DescribeConfigsRequest(NamedTuple):
    """DescribeConfigs request, v1-4."""

    resources: Sequence[DescribeConfigsResource] = ()
    include_synonyms: bool = False
    include_documentation: bool = False

    @staticmethod
    def response_type() -> type[DescribeConfigsResponse]:
        return DescribeConfigsResponse


DescribeConfigsRequest.API_KEY = 32  # type: ignore[attr-defined]


class DescribeConfigsSynonym(NamedTuple):
    """DescribeConfigsSynonym of DescribeConfigs."""

    name: str = ""
    value: str | None = ""
    source: int = 0


class DescribeConfigsResourceResult(NamedTuple):
    """DescribeConfigsResourceResult of DescribeConfigs."""

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: Sequence[DescribeConfigsSynonym] = ()
    config_type: int = 0
    documentation: str | None = ""


class DescribeConfigsResult(NamedTuple):
    """DescribeConfigsResult of DescribeConfigs."""

    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: Sequence[DescribeConfigsResourceResult] = ()


class DescribeConfigsResponse(NamedTuple):
    """DescribeConfigs response, v1-4."""

    throttle_time_ms: int = 0
    results: Sequence[DescribeConfigsResult] = ()


DescribeConfigsResponse.API_KEY = 32  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeConfigsRequest, int]:
    size, at, left = read_count(data, at, left, 7, "DescribeConfigsRequest.resources")
    resources_1: Any = None if size < 0 else []
    for _ in range(size):
        (resource_type_3,) = _B.unpack_from(data, at)
        at += 1
        resource_name_4, at = read_string(data, at)
        if resource_name_4 is None:
            raise null_in("DescribeConfigsRequest.resource_name")
        size, at, left = read_count(data, at, left, 2, "DescribeConfigsRequest.configuration_keys")
        configuration_keys_5: Any = None if size < 0 else []
        for _ in range(size):
            item6, at = read_string(data, at)
            if item6 is None:
                raise null_in("DescribeConfigsRequest.configuration_keys")
            configuration_keys_5.append(item6)
        item2 = _new(DescribeConfigsResource, (resource_type_3, resource_name_4, configuration_keys_5))
        resources_1.append(item2)
    if resources_1 is None:
        raise null_in("DescribeConfigsRequest.resources")
    (include_synonyms_7,) = _T.unpack_from(data, at)
    at += 1
    include_documentation_8: Any = False
    if version >= 3:
        (include_documentation_8,) = _T.unpack_from(data, at)
        at += 1
    return _new(DescribeConfigsRequest, (resources_1, include_synonyms_7, include_documentation_8)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    resources_1 = body.resources
    write_count(out, resources_1)
    for item2 in resources_1 or ():
        out += _B.pack(item2.resource_type)
        write_string(out, item2.resource_name)
        configuration_keys_3 = item2.configuration_keys
        write_count(out, configuration_keys_3)
        for item4 in configuration_keys_3 or ():
            write_string(out, item4)
    out += _T.pack(body.include_synonyms)
    if version >= 3:
        out += _T.pack(body.include_documentation)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeConfigsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 4, "DescribeConfigsRequest.resources")
    resources_1: Any = None if size < 0 else []
    for _ in range(size):
        (resource_type_3,) = _B.unpack_from(data, at)
        at += 1
        resource_name_4, at = read_compact_string(data, at)
        if resource_name_4 is None:
            raise null_in("DescribeConfigsRequest.resource_name")
        size, at, left = read_compact_count(data, at, left, 1, "DescribeConfigsRequest.configuration_keys")
        configuration_keys_5: Any = None if size < 0 else []
        for _ in range(size):
            item6, at = read_compact_string(data, at)
            if item6 is None:
                raise null_in("DescribeConfigsRequest.configuration_keys")
            configuration_keys_5.append(item6)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(DescribeConfigsResource, (resource_type_3, resource_name_4, configuration_keys_5))
        resources_1.append(item2)
    if resources_1 is None:
        raise null_in("DescribeConfigsRequest.resources")
    include_synonyms_7, include_documentation_8 = _TT.unpack_from(data, at)
    at += 2
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeConfigsRequest, (resources_1, include_synonyms_7, include_documentation_8)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    resources_1 = body.resources
    write_compact_count(out, resources_1)
    for item2 in resources_1 or ():
        out += _B.pack(item2.resource_type)
        write_compact_string(out, item2.resource_name)
        configuration_keys_3 = item2.configuration_keys
        write_compact_count(out, configuration_keys_3)
        for item4 in configuration_keys_3 or ():
            write_compact_string(out, item4)
        out.append(0)
    out += _TTX.pack(body.include_synonyms, body.include_documentation)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 4 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 4 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeConfigsResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 11, "DescribeConfigsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_string(data, at)
        (resource_type_6,) = _B.unpack_from(data, at)
        at += 1
        resource_name_7, at = read_string(data, at)
        if resource_name_7 is None:
            raise null_in("DescribeConfigsResponse.resource_name")
        size, at, left = read_count(data, at, left, 11, "DescribeConfigsResponse.configs")
        configs_8: Any = None if size < 0 else []
        for _ in range(size):
            name_10, at = read_string(data, at)
            if name_10 is None:
                raise null_in("DescribeConfigsResponse.name")
            value_11, at = read_string(data, at)
            read_only_12, config_source_13, is_sensitive_14 = _TBT.unpack_from(data, at)
            at += 3
            size, at, left = read_count(data, at, left, 5, "DescribeConfigsResponse.synonyms")
            synonyms_15: Any = None if size < 0 else []
            for _ in range(size):
                name_17, at = read_string(data, at)
                if name_17 is None:
                    raise null_in("DescribeConfigsResponse.name")
                value_18, at = read_string(data, at)
                (source_19,) = _B.unpack_from(data, at)
                at += 1
                item16 = _new(DescribeConfigsSynonym, (name_17, value_18, source_19))
                synonyms_15.append(item16)
            if synonyms_15 is None:
                raise null_in("DescribeConfigsResponse.synonyms")
            config_type_20: Any = 0
            if version >= 3:
                (config_type_20,) = _B.unpack_from(data, at)
                at += 1
            documentation_21: Any = ""
            if version >= 3:
                documentation_21, at = read_string(data, at)
            item9 = _new(
                DescribeConfigsResourceResult,
                (
                    name_10,
                    value_11,
                    read_only_12,
                    config_source_13,
                    is_sensitive_14,
                    synonyms_15,
                    config_type_20,
                    documentation_21,
                ),
            )
            configs_8.append(item9)
        if configs_8 is None:
            raise null_in("DescribeConfigsResponse.configs")
        item3 = _new(
            DescribeConfigsResult,
            (error_code_4, error_message_5, resource_type_6, resource_name_7, configs_8),
        )
        results_2.append(item3)
    if results_2 is None:
        raise null_in("DescribeConfigsResponse.results")
    return _new(DescribeConfigsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_classic_configs(out: bytearray, items: Any, version: int) -> None:
    configs_1 = items
    write_count(out, configs_1)
    for item2 in configs_1 or ():
        write_string(out, item2.name)
        write_string(out, item2.value)
        out += _TBT.pack(item2.read_only, item2.config_source, item2.is_sensitive)
        synonyms_3 = item2.synonyms
        write_count(out, synonyms_3)
        for item4 in synonyms_3 or ():
            write_string(out, item4.name)
            write_string(out, item4.value)
            out += _B.pack(item4.source)
        if version >= 3:
            out += _B.pack(item2.config_type)
        if version >= 3:
            write_string(out, item2.documentation)


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    write_count(out, results_1)
    for item2 in results_1 or ():
        out += _H.pack(item2.error_code)
        write_string(out, item2.error_message)
        out += _B.pack(item2.resource_type)
        write_string(out, item2.resource_name)
        write_array(out, item2.configs, version, _write_response_classic_configs)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeConfigsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 7, "DescribeConfigsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_compact_string(data, at)
        (resource_type_6,) = _B.unpack_from(data, at)
        at += 1
        resource_name_7, at = read_compact_string(data, at)
        if resource_name_7 is None:
            raise null_in("DescribeConfigsResponse.resource_name")
        size, at, left = read_compact_count(data, at, left, 9, "DescribeConfigsResponse.configs")
        configs_8: Any = None if size < 0 else []
        for _ in range(size):
            name_10, at = read_compact_string(data, at)
            if name_10 is None:
                raise null_in("DescribeConfigsResponse.name")
            value_11, at = read_compact_string(data, at)
            read_only_12, config_source_13, is_sensitive_14 = _TBT.unpack_from(data, at)
            at += 3
            size, at, left = read_compact_count(data, at, left, 4, "DescribeConfigsResponse.synonyms")
            synonyms_15: Any = None if size < 0 else []
            for _ in range(size):
                name_17, at = read_compact_string(data, at)
                if name_17 is None:
                    raise null_in("DescribeConfigsResponse.name")
                value_18, at = read_compact_string(data, at)
                (source_19,) = _B.unpack_from(data, at)
                at += 1
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item16 = _new(DescribeConfigsSynonym, (name_17, value_18, source_19))
                synonyms_15.append(item16)
            if synonyms_15 is None:
                raise null_in("DescribeConfigsResponse.synonyms")
            (config_type_20,) = _B.unpack_from(data, at)
            at += 1
            documentation_21, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item9 = _new(
                DescribeConfigsResourceResult,
                (
                    name_10,
                    value_11,
                    read_only_12,
                    config_source_13,
                    is_sensitive_14,
                    synonyms_15,
                    config_type_20,
                    documentation_21,
                ),
            )
            configs_8.append(item9)
        if configs_8 is None:
            raise null_in("DescribeConfigsResponse.configs")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(
            DescribeConfigsResult,
            (error_code_4, error_message_5, resource_type_6, resource_name_7, configs_8),
        )
        results_2.append(item3)
    if results_2 is None:
        raise null_in("DescribeConfigsResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeConfigsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_flexible_configs(out: bytearray, items: Any, version: int) -> None:
    del version
    configs_1 = items
    write_compact_count(out, configs_1)
    for item2 in configs_1 or ():
        write_compact_string(out, item2.name)
        write_compact_string(out, item2.value)
        out += _TBT.pack(item2.read_only, item2.config_source, item2.is_sensitive)
        synonyms_3 = item2.synonyms
        write_compact_count(out, synonyms_3)
        for item4 in synonyms_3 or ():
            write_compact_string(out, item4.name)
            write_compact_string(out, item4.value)
            out += _BX.pack(item4.source)
        out += _B.pack(item2.config_type)
        write_compact_string(out, item2.documentation)
        out.append(0)


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    write_compact_count(out, results_1)
    for item2 in results_1 or ():
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        out += _B.pack(item2.resource_type)
        write_compact_string(out, item2.resource_name)
        write_array(out, item2.configs, version, _write_response_flexible_configs)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 4 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 4 else _write_response_classic
