"""SaslAuthenticate (36), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, varint

_H = Struct(">h")
_I = Struct(">i")
_Q = Struct(">q")


class SaslAuthenticateRequest(NamedTuple):
    """SaslAuthenticate request, v0-2."""

    auth_bytes: bytes = b""


class SaslAuthenticateResponse(NamedTuple):
    """SaslAuthenticate response, v0-2."""

    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[SaslAuthenticateRequest, int]:
    del version
    del left
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        end = at + size
        auth_bytes_1 = bytes(data[at:end])
        at = end
    else:
        raise null_in("SaslAuthenticateRequest.auth_bytes")
    return _new(SaslAuthenticateRequest, (auth_bytes_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    value = body.auth_bytes
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        data = value
        out += _I.pack(len(data))
        out += data


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[SaslAuthenticateRequest, int]:
    del version
    del left
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        end = at + size
        auth_bytes_1 = bytes(data[at:end])
        at = end
    else:
        raise null_in("SaslAuthenticateRequest.auth_bytes")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(SaslAuthenticateRequest, (auth_bytes_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    value = body.auth_bytes
    if value is None:
        out += b"\x00"
    else:
        data = value
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[SaslAuthenticateResponse, int]:
    del left
    (error_code_1,) = _H.unpack_from(data, at)
    at += 2
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        error_message_2 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        error_message_2 = None
    else:
        raise malformed("a negative length")
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        end = at + size
        auth_bytes_3 = bytes(data[at:end])
        at = end
    else:
        raise null_in("SaslAuthenticateResponse.auth_bytes")
    session_lifetime_ms_4 = 0
    if version >= 1:
        (session_lifetime_ms_4,) = _Q.unpack_from(data, at)
        at += 8
    return _new(
        SaslAuthenticateResponse, (error_code_1, error_message_2, auth_bytes_3, session_lifetime_ms_4)
    ), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    out += _H.pack(body.error_code)
    value = body.error_message
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    value = body.auth_bytes
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        data = value
        out += _I.pack(len(data))
        out += data
    if version >= 1:
        out += _Q.pack(body.session_lifetime_ms)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[SaslAuthenticateResponse, int]:
    del version
    del left
    (error_code_1,) = _H.unpack_from(data, at)
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
        error_message_2 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        error_message_2 = None
    else:
        raise malformed("a negative length")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        end = at + size
        auth_bytes_3 = bytes(data[at:end])
        at = end
    else:
        raise null_in("SaslAuthenticateResponse.auth_bytes")
    (session_lifetime_ms_4,) = _Q.unpack_from(data, at)
    at += 8
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        SaslAuthenticateResponse, (error_code_1, error_message_2, auth_bytes_3, session_lifetime_ms_4)
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _H.pack(body.error_code)
    value = body.error_message
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    value = body.auth_bytes
    if value is None:
        out += b"\x00"
    else:
        data = value
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out += _Q.pack(body.session_lifetime_ms)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
