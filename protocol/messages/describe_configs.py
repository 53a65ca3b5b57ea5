"""DescribeConfigs (32), versions 1 to 4. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_T = Struct(">?")
_TT = Struct(">??")
_TBT = Struct(">?b?")
_B = Struct(">b")
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
    is_default: bool = False
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


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeConfigsRequest, int]:
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 7 or left < 0:
            raise too_many("DescribeConfigsRequest.resources", size, left)
        resources_1 = []
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
                raise null_in("DescribeConfigsRequest.resource_name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 2 or left < 0:
                    raise too_many("DescribeConfigsRequest.configuration_keys", size, left)
                configuration_keys_5 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        item6 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeConfigsRequest.configuration_keys")
                    configuration_keys_5.append(item6)
            elif size == -1:
                configuration_keys_5 = None
            else:
                raise malformed("a negative length")
            item2 = _new(DescribeConfigsResource, (resource_type_3, resource_name_4, configuration_keys_5))
            resources_1.append(item2)
    else:
        raise null_in("DescribeConfigsRequest.resources")
    (include_synonyms_7,) = _T.unpack_from(data, at)
    at += 1
    include_documentation_8 = False
    if version >= 3:
        (include_documentation_8,) = _T.unpack_from(data, at)
        at += 1
    return _new(DescribeConfigsRequest, (resources_1, include_synonyms_7, include_documentation_8)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
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
            configuration_keys_3 = item2.configuration_keys
            if configuration_keys_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(configuration_keys_3))
                for item4 in configuration_keys_3:
                    value = item4
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
    out += _T.pack(body.include_synonyms)
    if version >= 3:
        out += _T.pack(body.include_documentation)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeConfigsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("DescribeConfigsRequest.resources", size, left)
        resources_1 = []
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
                raise null_in("DescribeConfigsRequest.resource_name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > len(data) - at or left < 0:
                    raise too_many("DescribeConfigsRequest.configuration_keys", size, left)
                configuration_keys_5 = []
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
                        item6 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeConfigsRequest.configuration_keys")
                    configuration_keys_5.append(item6)
            elif size == -1:
                configuration_keys_5 = None
            else:
                raise malformed("a negative length")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(DescribeConfigsResource, (resource_type_3, resource_name_4, configuration_keys_5))
            resources_1.append(item2)
    else:
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
            configuration_keys_3 = item2.configuration_keys
            if configuration_keys_3 is None:
                out += b"\x00"
            else:
                size = len(configuration_keys_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in configuration_keys_3:
                    value = item4
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
            out.append(0)
    out += _TT.pack(body.include_synonyms, body.include_documentation)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 4 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 4 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeConfigsResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 11 or left < 0:
            raise too_many("DescribeConfigsResponse.results", size, left)
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
            (resource_type_6,) = _B.unpack_from(data, at)
            at += 1
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                resource_name_7 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeConfigsResponse.resource_name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 11 or left < 0:
                    raise too_many("DescribeConfigsResponse.configs", size, left)
                configs_8 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        name_10 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeConfigsResponse.name")
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        value_11 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        value_11 = None
                    else:
                        raise malformed("a negative length")
                    read_only_12, config_source_13, is_sensitive_14 = _TBT.unpack_from(data, at)
                    at += 3
                    (size,) = _I.unpack_from(data, at)
                    at += 4
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 5 or left < 0:
                            raise too_many("DescribeConfigsResponse.synonyms", size, left)
                        synonyms_15 = []
                        for _ in range(size):
                            (size,) = _H.unpack_from(data, at)
                            at += 2
                            if size >= 0:
                                end = at + size
                                name_17 = str(data[at:end], "utf-8")
                                at = end
                            else:
                                raise null_in("DescribeConfigsResponse.name")
                            (size,) = _H.unpack_from(data, at)
                            at += 2
                            if size >= 0:
                                end = at + size
                                value_18 = str(data[at:end], "utf-8")
                                at = end
                            elif size == -1:
                                value_18 = None
                            else:
                                raise malformed("a negative length")
                            (source_19,) = _B.unpack_from(data, at)
                            at += 1
                            item16 = _new(DescribeConfigsSynonym, (name_17, value_18, source_19))
                            synonyms_15.append(item16)
                    else:
                        raise null_in("DescribeConfigsResponse.synonyms")
                    config_type_20 = 0
                    if version >= 3:
                        (config_type_20,) = _B.unpack_from(data, at)
                        at += 1
                    documentation_21 = ""
                    if version >= 3:
                        (size,) = _H.unpack_from(data, at)
                        at += 2
                        if size >= 0:
                            end = at + size
                            documentation_21 = str(data[at:end], "utf-8")
                            at = end
                        elif size == -1:
                            documentation_21 = None
                        else:
                            raise malformed("a negative length")
                    item9 = _new(
                        DescribeConfigsResourceResult,
                        (
                            name_10,
                            value_11,
                            read_only_12,
                            config_source_13,
                            False,
                            is_sensitive_14,
                            synonyms_15,
                            config_type_20,
                            documentation_21,
                        ),
                    )
                    configs_8.append(item9)
            else:
                raise null_in("DescribeConfigsResponse.configs")
            item3 = _new(
                DescribeConfigsResult,
                (error_code_4, error_message_5, resource_type_6, resource_name_7, configs_8),
            )
            results_2.append(item3)
    else:
        raise null_in("DescribeConfigsResponse.results")
    return _new(DescribeConfigsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
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
            out += _B.pack(item2.resource_type)
            value = item2.resource_name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            configs_3 = item2.configs
            if configs_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(configs_3))
                for item4 in configs_3:
                    value = item4.name
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    value = item4.value
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    out += _TBT.pack(item4.read_only, item4.config_source, item4.is_sensitive)
                    synonyms_5 = item4.synonyms
                    if synonyms_5 is None:
                        out += b"\xff\xff\xff\xff"
                    else:
                        out += _I.pack(len(synonyms_5))
                        for item6 in synonyms_5:
                            value = item6.name
                            if value is None:
                                out += b"\xff\xff"
                            else:
                                data = value.encode()
                                out += _H.pack(len(data))
                                out += data
                            value = item6.value
                            if value is None:
                                out += b"\xff\xff"
                            else:
                                data = value.encode()
                                out += _H.pack(len(data))
                                out += data
                            out += _B.pack(item6.source)
                    if version >= 3:
                        out += _B.pack(item4.config_type)
                    if version >= 3:
                        value = item4.documentation
                        if value is None:
                            out += b"\xff\xff"
                        else:
                            data = value.encode()
                            out += _H.pack(len(data))
                            out += data


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeConfigsResponse, int]:
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
        if size > (len(data) - at) // 7 or left < 0:
            raise too_many("DescribeConfigsResponse.results", size, left)
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
                raise null_in("DescribeConfigsResponse.resource_name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 9 or left < 0:
                    raise too_many("DescribeConfigsResponse.configs", size, left)
                configs_8 = []
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
                        name_10 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeConfigsResponse.name")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        value_11 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        value_11 = None
                    else:
                        raise malformed("a negative length")
                    read_only_12, config_source_13, is_sensitive_14 = _TBT.unpack_from(data, at)
                    at += 3
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("DescribeConfigsResponse.synonyms", size, left)
                        synonyms_15 = []
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
                                name_17 = str(data[at:end], "utf-8")
                                at = end
                            else:
                                raise null_in("DescribeConfigsResponse.name")
                            size = data[at]
                            at += 1
                            if size > 127:
                                size, at = long_varint(data, at - 1)
                            size -= 1
                            if size >= 0:
                                if size > 32767:
                                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                                end = at + size
                                value_18 = str(data[at:end], "utf-8")
                                at = end
                            elif size == -1:
                                value_18 = None
                            else:
                                raise malformed("a negative length")
                            (source_19,) = _B.unpack_from(data, at)
                            at += 1
                            if data[at]:
                                at = skip_tags(data, at)
                            else:
                                at += 1
                            item16 = _new(DescribeConfigsSynonym, (name_17, value_18, source_19))
                            synonyms_15.append(item16)
                    else:
                        raise null_in("DescribeConfigsResponse.synonyms")
                    (config_type_20,) = _B.unpack_from(data, at)
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
                        documentation_21 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        documentation_21 = None
                    else:
                        raise malformed("a negative length")
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
                            False,
                            is_sensitive_14,
                            synonyms_15,
                            config_type_20,
                            documentation_21,
                        ),
                    )
                    configs_8.append(item9)
            else:
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
    else:
        raise null_in("DescribeConfigsResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeConfigsResponse, (throttle_time_ms_1, results_2)), at


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
            out += _B.pack(item2.resource_type)
            value = item2.resource_name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            configs_3 = item2.configs
            if configs_3 is None:
                out += b"\x00"
            else:
                size = len(configs_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in configs_3:
                    value = item4.name
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    value = item4.value
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    out += _TBT.pack(item4.read_only, item4.config_source, item4.is_sensitive)
                    synonyms_5 = item4.synonyms
                    if synonyms_5 is None:
                        out += b"\x00"
                    else:
                        size = len(synonyms_5) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        for item6 in synonyms_5:
                            value = item6.name
                            if value is None:
                                out += b"\x00"
                            else:
                                data = value.encode()
                                size = len(data) + 1
                                out += varint(size) if size > 127 else BYTES[size]
                                out += data
                            value = item6.value
                            if value is None:
                                out += b"\x00"
                            else:
                                data = value.encode()
                                size = len(data) + 1
                                out += varint(size) if size > 127 else BYTES[size]
                                out += data
                            out += _B.pack(item6.source)
                            out.append(0)
                    out += _B.pack(item4.config_type)
                    value = item4.documentation
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    out.append(0)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 4 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 4 else _write_response_classic
