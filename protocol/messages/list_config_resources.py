"""ListConfigResources (74), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import (
    _new,
    BYTES,
    long_varint,
    malformed,
    null_in,
    pack,
    skip_tags,
    too_many,
    unpack_from,
    varint,
)

_B = Struct(">b")
_IH = Struct(">ih")


class ListConfigResourcesRequest(NamedTuple):
    """ListConfigResources request, v0-1."""

    resource_types: Sequence[int] = ()


class ConfigResource(NamedTuple):
    """ConfigResource of ListConfigResources."""

    resource_name: str = ""
    resource_type: int = 16


class ListConfigResourcesResponse(NamedTuple):
    """ListConfigResources response, v0-1."""

    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: Sequence[ConfigResource] = ()


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ListConfigResourcesRequest, int]:
    resource_types_1 = ()
    if version >= 1:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > len(data) - at or left < 0:
                raise too_many("ListConfigResourcesRequest.resource_types", size, left)
            resource_types_1 = list(unpack_from(f">{size}b", data, at))
            at += 1 * size
        else:
            raise null_in("ListConfigResourcesRequest.resource_types")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListConfigResourcesRequest, (resource_types_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        resource_types_1 = body.resource_types
        if resource_types_1 is None:
            out += b"\x00"
        else:
            size = len(resource_types_1) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += pack(f">{len(resource_types_1)}b", *resource_types_1)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ListConfigResourcesResponse, int]:
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("ListConfigResourcesResponse.config_resources", size, left)
        config_resources_3 = []
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
                resource_name_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListConfigResourcesResponse.resource_name")
            resource_type_6 = 16
            if version >= 1:
                (resource_type_6,) = _B.unpack_from(data, at)
                at += 1
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item4 = _new(ConfigResource, (resource_name_5, resource_type_6))
            config_resources_3.append(item4)
    else:
        raise null_in("ListConfigResourcesResponse.config_resources")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListConfigResourcesResponse, (throttle_time_ms_1, error_code_2, config_resources_3)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    config_resources_1 = body.config_resources
    if config_resources_1 is None:
        out += b"\x00"
    else:
        size = len(config_resources_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in config_resources_1:
            value = item2.resource_name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            if version >= 1:
                out += _B.pack(item2.resource_type)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
