"""FindCoordinator (10), versions 0 to 6. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_B = Struct(">b")
_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")


class FindCoordinatorRequest(NamedTuple):
    """FindCoordinator request, v0-6."""

    key: str = ""
    key_type: int = 0
    coordinator_keys: Sequence[str] = ()


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


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[FindCoordinatorRequest, int]:
    del left
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        key_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("FindCoordinatorRequest.key")
    key_type_2 = 0
    if version >= 1:
        (key_type_2,) = _B.unpack_from(data, at)
        at += 1
    return _new(FindCoordinatorRequest, (key_1, key_type_2, ())), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    value = body.key
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    if version >= 1:
        out += _B.pack(body.key_type)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[FindCoordinatorRequest, int]:
    key_1 = ""
    if version <= 3:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            if size > 32767:
                raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
            end = at + size
            key_1 = str(data[at:end], "utf-8")
            at = end
        else:
            raise null_in("FindCoordinatorRequest.key")
    (key_type_2,) = _B.unpack_from(data, at)
    at += 1
    coordinator_keys_3 = ()
    if version >= 4:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > len(data) - at or left < 0:
                raise too_many("FindCoordinatorRequest.coordinator_keys", size, left)
            coordinator_keys_3 = []
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
                    item4 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("FindCoordinatorRequest.coordinator_keys")
                coordinator_keys_3.append(item4)
        else:
            raise null_in("FindCoordinatorRequest.coordinator_keys")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(FindCoordinatorRequest, (key_1, key_type_2, coordinator_keys_3)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    if version <= 3:
        value = body.key
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    out += _B.pack(body.key_type)
    if version >= 4:
        coordinator_keys_1 = body.coordinator_keys
        if coordinator_keys_1 is None:
            out += b"\x00"
        else:
            size = len(coordinator_keys_1) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item2 in coordinator_keys_1:
                value = item2
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 3 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 3 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[FindCoordinatorResponse, int]:
    del left
    throttle_time_ms_1 = 0
    if version >= 1:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (error_code_2,) = _H.unpack_from(data, at)
    at += 2
    error_message_3 = ""
    if version >= 1:
        (size,) = _H.unpack_from(data, at)
        at += 2
        if size >= 0:
            end = at + size
            error_message_3 = str(data[at:end], "utf-8")
            at = end
        elif size == -1:
            error_message_3 = None
        else:
            raise malformed("a negative length")
    (node_id_4,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        host_5 = str(data[at:end], "utf-8")
        at = end
    else:
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
        value = body.error_message
        if value is None:
            out += b"\xff\xff"
        else:
            data = value.encode()
            out += _H.pack(len(data))
            out += data
    out += _I.pack(body.node_id)
    value = body.host
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    out += _I.pack(body.port)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[FindCoordinatorResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    error_code_2 = 0
    if version <= 3:
        (error_code_2,) = _H.unpack_from(data, at)
        at += 2
    error_message_3 = ""
    if version <= 3:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            if size > 32767:
                raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
            end = at + size
            error_message_3 = str(data[at:end], "utf-8")
            at = end
        elif size == -1:
            error_message_3 = None
        else:
            raise malformed("a negative length")
    node_id_4 = 0
    if version <= 3:
        (node_id_4,) = _I.unpack_from(data, at)
        at += 4
    host_5 = ""
    if version <= 3:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            if size > 32767:
                raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
            end = at + size
            host_5 = str(data[at:end], "utf-8")
            at = end
        else:
            raise null_in("FindCoordinatorResponse.host")
    port_6 = 0
    if version <= 3:
        (port_6,) = _I.unpack_from(data, at)
        at += 4
    coordinators_7 = ()
    if version >= 4:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 14 or left < 0:
                raise too_many("FindCoordinatorResponse.coordinators", size, left)
            coordinators_7 = []
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
                    key_9 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("FindCoordinatorResponse.key")
                (node_id_10,) = _I.unpack_from(data, at)
                at += 4
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    if size > 32767:
                        raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                    end = at + size
                    host_11 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("FindCoordinatorResponse.host")
                port_12, error_code_13 = _IH.unpack_from(data, at)
                at += 6
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    if size > 32767:
                        raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                    end = at + size
                    error_message_14 = str(data[at:end], "utf-8")
                    at = end
                elif size == -1:
                    error_message_14 = None
                else:
                    raise malformed("a negative length")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item8 = _new(
                    Coordinator, (key_9, node_id_10, host_11, port_12, error_code_13, error_message_14)
                )
                coordinators_7.append(item8)
        else:
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
        value = body.error_message
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    if version <= 3:
        out += _I.pack(body.node_id)
    if version <= 3:
        value = body.host
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    if version <= 3:
        out += _I.pack(body.port)
    if version >= 4:
        coordinators_1 = body.coordinators
        if coordinators_1 is None:
            out += b"\x00"
        else:
            size = len(coordinators_1) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item2 in coordinators_1:
                value = item2.key
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                out += _I.pack(item2.node_id)
                value = item2.host
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                out += _IH.pack(item2.port, item2.error_code)
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
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
