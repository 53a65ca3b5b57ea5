"""ListConfigResources (74), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    null_in,
    pack,
    read_compact_count,
    read_compact_string,
    skip_tags,
    unpack_from,
    write_compact_count,
    write_compact_string,
)

_B = Struct(">b")
_IH = Struct(">ih")


class ListConfigResourcesRequest(NamedTuple):
    """ListConfigResources request, v0-1."""

    resource_types: Sequence[int] = ()

    @staticmethod
    def response_type() -> type[ListConfigResourcesResponse]:
        return ListConfigResourcesResponse


ListConfigResourcesRequest.API_KEY = 74  # type: ignore[attr-defined]


class ConfigResource(NamedTuple):
    """ConfigResource of ListConfigResources."""

    resource_name: str = ""
    resource_type: int = 16


class ListConfigResourcesResponse(NamedTuple):
    """ListConfigResources response, v0-1."""

    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: Sequence[ConfigResource] = ()


ListConfigResourcesResponse.API_KEY = 74  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ListConfigResourcesRequest, int]:
    resource_types_1: Any = ()
    if version >= 1:
        size, at, left = read_compact_count(data, at, left, 1, "ListConfigResourcesRequest.resource_types")
        resource_types_1 = None if size < 0 else list(unpack_from(f">{size}b", data, at))
        at += 1 * max(size, 0)
        if resource_types_1 is None:
            raise null_in("ListConfigResourcesRequest.resource_types")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListConfigResourcesRequest, (resource_types_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        resource_types_1 = body.resource_types
        write_compact_count(out, resource_types_1)
        out += pack(f">{len(resource_types_1 or ())}b", *(resource_types_1 or ()))
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
    size, at, left = read_compact_count(data, at, left, 2, "ListConfigResourcesResponse.config_resources")
    config_resources_3: Any = None if size < 0 else []
    for _ in range(size):
        resource_name_5, at = read_compact_string(data, at)
        if resource_name_5 is None:
            raise null_in("ListConfigResourcesResponse.resource_name")
        resource_type_6: Any = 16
        if version >= 1:
            (resource_type_6,) = _B.unpack_from(data, at)
            at += 1
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item4 = _new(ConfigResource, (resource_name_5, resource_type_6))
        config_resources_3.append(item4)
    if config_resources_3 is None:
        raise null_in("ListConfigResourcesResponse.config_resources")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListConfigResourcesResponse, (throttle_time_ms_1, error_code_2, config_resources_3)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    config_resources_1 = body.config_resources
    write_compact_count(out, config_resources_1)
    for item2 in config_resources_1 or ():
        write_compact_string(out, item2.resource_name)
        if version >= 1:
            out += _B.pack(item2.resource_type)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
