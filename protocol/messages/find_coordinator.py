"""FindCoordinator (10), versions 0 to 6. Written by scripts/generate_messages.py: do not edit."""

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
    read_string,
    skip_tags,
    write_compact_count,
    write_compact_string,
    write_string,
)

_B = Struct(">b")
_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")


class FindCoordinatorRequest(NamedTuple):
    """FindCoordinator request, v0-6."""

    key: str = ""
    key_type: int = 0
    coordinator_keys: Sequence[str] = ()

    @staticmethod
    def response_type() -> type[FindCoordinatorResponse]:
        return FindCoordinatorResponse


FindCoordinatorRequest.API_KEY = 10  # type: ignore[attr-defined]


class Coordinator(NamedTuple):
    """Coordinator of FindCoordinator."""

    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""


class FindCoordinatorResponse(NamedTuple):
    """FindCoordinator response, v0-6."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: Sequence[Coordinator] = ()


FindCoordinatorResponse.API_KEY = 10  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[FindCoordinatorRequest, int]:
    del left
    key_1, at = read_string(data, at)
    if key_1 is None:
        raise null_in("FindCoordinatorRequest.key")
    key_type_2: Any = 0
    if version >= 1:
        (key_type_2,) = _B.unpack_from(data, at)
        at += 1
    return _new(FindCoordinatorRequest, (key_1, key_type_2, ())), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    write_string(out, body.key)
    if version >= 1:
        out += _B.pack(body.key_type)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[FindCoordinatorRequest, int]:
    key_1: Any = ""
    if version <= 3:
        key_1, at = read_compact_string(data, at)
        if key_1 is None:
            raise null_in("FindCoordinatorRequest.key")
    (key_type_2,) = _B.unpack_from(data, at)
    at += 1
    coordinator_keys_3: Any = ()
    if version >= 4:
        size, at, left = read_compact_count(data, at, left, 1, "FindCoordinatorRequest.coordinator_keys")
        coordinator_keys_3 = None if size < 0 else []
        for _ in range(size):
            item4, at = read_compact_string(data, at)
            if item4 is None:
                raise null_in("FindCoordinatorRequest.coordinator_keys")
            coordinator_keys_3.append(item4)
        if coordinator_keys_3 is None:
            raise null_in("FindCoordinatorRequest.coordinator_keys")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(FindCoordinatorRequest, (key_1, key_type_2, coordinator_keys_3)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    if version <= 3:
        write_compact_string(out, body.key)
    out += _B.pack(body.key_type)
    if version >= 4:
        coordinator_keys_1 = body.coordinator_keys
        write_compact_count(out, coordinator_keys_1)
        for item2 in coordinator_keys_1 or ():
            write_compact_string(out, item2)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 3 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 3 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[FindCoordinatorResponse, int]:
    del left
    throttle_time_ms_1: Any = 0
    if version >= 1:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (error_code_2,) = _H.unpack_from(data, at)
    at += 2
    error_message_3: Any = ""
    if version >= 1:
        error_message_3, at = read_string(data, at)
    (node_id_4,) = _I.unpack_from(data, at)
    at += 4
    host_5, at = read_string(data, at)
    if host_5 is None:
        raise null_in("FindCoordinatorResponse.host")
    (port_6,) = _I.unpack_from(data, at)
    at += 4
    return _new(
        FindCoordinatorResponse,
        (throttle_time_ms_1, error_code_2, error_message_3, node_id_4, host_5, port_6, ()),
    ), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        out += _I.pack(body.throttle_time_ms)
    out += _H.pack(body.error_code)
    if version >= 1:
        write_string(out, body.error_message)
    out += _I.pack(body.node_id)
    write_string(out, body.host)
    out += _I.pack(body.port)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[FindCoordinatorResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    error_code_2: Any = 0
    if version <= 3:
        (error_code_2,) = _H.unpack_from(data, at)
        at += 2
    error_message_3: Any = ""
    if version <= 3:
        error_message_3, at = read_compact_string(data, at)
    node_id_4: Any = 0
    if version <= 3:
        (node_id_4,) = _I.unpack_from(data, at)
        at += 4
    host_5: Any = ""
    if version <= 3:
        host_5, at = read_compact_string(data, at)
        if host_5 is None:
            raise null_in("FindCoordinatorResponse.host")
    port_6: Any = 0
    if version <= 3:
        (port_6,) = _I.unpack_from(data, at)
        at += 4
    coordinators_7: Any = ()
    if version >= 4:
        size, at, left = read_compact_count(data, at, left, 14, "FindCoordinatorResponse.coordinators")
        coordinators_7 = None if size < 0 else []
        for _ in range(size):
            key_9, at = read_compact_string(data, at)
            if key_9 is None:
                raise null_in("FindCoordinatorResponse.key")
            (node_id_10,) = _I.unpack_from(data, at)
            at += 4
            host_11, at = read_compact_string(data, at)
            if host_11 is None:
                raise null_in("FindCoordinatorResponse.host")
            port_12, error_code_13 = _IH.unpack_from(data, at)
            at += 6
            error_message_14, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item8 = _new(Coordinator, (key_9, node_id_10, host_11, port_12, error_code_13, error_message_14))
            coordinators_7.append(item8)
        if coordinators_7 is None:
            raise null_in("FindCoordinatorResponse.coordinators")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        FindCoordinatorResponse,
        (throttle_time_ms_1, error_code_2, error_message_3, node_id_4, host_5, port_6, coordinators_7),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    if version <= 3:
        out += _H.pack(body.error_code)
    if version <= 3:
        write_compact_string(out, body.error_message)
    if version <= 3:
        out += _I.pack(body.node_id)
    if version <= 3:
        write_compact_string(out, body.host)
    if version <= 3:
        out += _I.pack(body.port)
    if version >= 4:
        coordinators_1 = body.coordinators
        write_compact_count(out, coordinators_1)
        for item2 in coordinators_1 or ():
            write_compact_string(out, item2.key)
            out += _I.pack(item2.node_id)
            write_compact_string(out, item2.host)
            out += _IH.pack(item2.port, item2.error_code)
            write_compact_string(out, item2.error_message)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
