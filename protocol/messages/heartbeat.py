"""Heartbeat (12), versions 0 to 4. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from struct import Struct
from typing import Any

from .wire import BYTES, NamedTuple, _new, null_in, read_compact_string, skip_tags, varint

_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")
_IHX = Struct(">ihx")
_IIH = Struct(">iih")
_IIIH = Struct(">iiih")
_IIXIHX = Struct(">iixihx")


class HeartbeatRequest(NamedTuple):
    """Heartbeat request, v0-4."""

    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None

    @staticmethod
    def response_type() -> type[HeartbeatResponse]:
        return HeartbeatResponse


HeartbeatRequest.API_KEY = 12  # type: ignore[attr-defined]


class HeartbeatResponse(NamedTuple):
    """Heartbeat response, v0-4."""

    throttle_time_ms: int = 0
    error_code: int = 0


HeartbeatResponse.API_KEY = 12  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[HeartbeatRequest, int]:
    del left
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        group_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("HeartbeatRequest.group_id")
    (generation_id_2,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        member_id_3 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("HeartbeatRequest.member_id")
    group_instance_id_4: Any = None
    if version >= 3:
        (size,) = _H.unpack_from(data, at)
        at += 2
        if size >= 0:
            end = at + size
            group_instance_id_4 = str(data[at:end], "utf-8")
            at = end
        else:
            group_instance_id_4 = None
    return _new(HeartbeatRequest, (group_id_1, generation_id_2, member_id_3, group_instance_id_4)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    value = body.group_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    out += _I.pack(body.generation_id)
    value = body.member_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    if version >= 3:
        value = body.group_instance_id
        if value is None:
            out += b"\xff\xff"
        else:
            data = value.encode()
            out += _H.pack(len(data))
            out += data


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[HeartbeatRequest, int]:
    del version
    del left
    size = data[at]
    if 0 < size < 128:
        end = at + size
        group_id_1 = data[at + 1 : end].decode()
        at = end
    else:
        group_id_1, at = read_compact_string(data, at)
        if group_id_1 is None:
            raise null_in("HeartbeatRequest.group_id")
    (generation_id_2,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    if 0 < size < 128:
        end = at + size
        member_id_3 = data[at + 1 : end].decode()
        at = end
    else:
        member_id_3, at = read_compact_string(data, at)
        if member_id_3 is None:
            raise null_in("HeartbeatRequest.member_id")
    size = data[at]
    if 0 < size < 128:
        end = at + size
        group_instance_id_4 = data[at + 1 : end].decode()
        at = end
    elif not size:
        group_instance_id_4 = None
        at += 1
    else:
        group_instance_id_4, at = read_compact_string(data, at)
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(HeartbeatRequest, (group_id_1, generation_id_2, member_id_3, group_instance_id_4)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    value = body.group_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out += _I.pack(body.generation_id)
    value = body.member_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    value = body.group_instance_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 4 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 4 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[HeartbeatResponse, int]:
    del left
    throttle_time_ms_1: Any = 0
    if version >= 1:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (error_code_2,) = _H.unpack_from(data, at)
    at += 2
    return _new(HeartbeatResponse, (throttle_time_ms_1, error_code_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        out += _I.pack(body.throttle_time_ms)
    out += _H.pack(body.error_code)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[HeartbeatResponse, int]:
    del version
    del left
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(HeartbeatResponse, (throttle_time_ms_1, error_code_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IHX.pack(body.throttle_time_ms, body.error_code)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 4 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 4 else _write_response_classic


def frame_response(version: int) -> Any:
    if version >= 4:
        return lambda correlation_id, body: _IIXIHX.pack(
            12, correlation_id, body.throttle_time_ms, body.error_code
        )
    if version >= 1:
        return lambda correlation_id, body: _IIIH.pack(
            10, correlation_id, body.throttle_time_ms, body.error_code
        )
    return lambda correlation_id, body: _IIH.pack(6, correlation_id, body.error_code)
