"""AlterConfigs (33), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_T = Struct(">?")
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


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[AlterConfigsRequest, int]:
    del version
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 7 or left < 0:
            raise too_many("AlterConfigsRequest.resources", size, left)
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
                raise null_in("AlterConfigsRequest.resource_name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("AlterConfigsRequest.configs", size, left)
                configs_5 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        name_7 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("AlterConfigsRequest.name")
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        value_8 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        value_8 = None
                    else:
                        raise malformed("a negative length")
                    item6 = _new(AlterableConfig, (name_7, value_8))
                    configs_5.append(item6)
            else:
                raise null_in("AlterConfigsRequest.configs")
            item2 = _new(AlterConfigsResource, (resource_type_3, resource_name_4, configs_5))
            resources_1.append(item2)
    else:
        raise null_in("AlterConfigsRequest.resources")
    (validate_only_9,) = _T.unpack_from(data, at)
    at += 1
    return _new(AlterConfigsRequest, (resources_1, validate_only_9)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
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
    out += _T.pack(body.validate_only)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[AlterConfigsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 4 or left < 0:
            raise too_many("AlterConfigsRequest.resources", size, left)
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
                raise null_in("AlterConfigsRequest.resource_name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 3 or left < 0:
                    raise too_many("AlterConfigsRequest.configs", size, left)
                configs_5 = []
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
                        name_7 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("AlterConfigsRequest.name")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        value_8 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        value_8 = None
                    else:
                        raise malformed("a negative length")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item6 = _new(AlterableConfig, (name_7, value_8))
                    configs_5.append(item6)
            else:
                raise null_in("AlterConfigsRequest.configs")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(AlterConfigsResource, (resource_type_3, resource_name_4, configs_5))
            resources_1.append(item2)
    else:
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
                    out.append(0)
            out.append(0)
    out += _T.pack(body.validate_only)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[AlterConfigsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 7 or left < 0:
            raise too_many("AlterConfigsResponse.responses", size, left)
        responses_2 = []
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
                raise null_in("AlterConfigsResponse.resource_name")
            item3 = _new(
                AlterConfigsResourceResponse,
                (error_code_4, error_message_5, resource_type_6, resource_name_7),
            )
            responses_2.append(item3)
    else:
        raise null_in("AlterConfigsResponse.responses")
    return _new(AlterConfigsResponse, (throttle_time_ms_1, responses_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    responses_1 = body.responses
    if responses_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(responses_1))
        for item2 in responses_1:
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


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[AlterConfigsResponse, int]:
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
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("AlterConfigsResponse.responses", size, left)
        responses_2 = []
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
                raise null_in("AlterConfigsResponse.resource_name")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(
                AlterConfigsResourceResponse,
                (error_code_4, error_message_5, resource_type_6, resource_name_7),
            )
            responses_2.append(item3)
    else:
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
    if responses_1 is None:
        out += b"\x00"
    else:
        size = len(responses_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in responses_1:
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
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
