"""SaslAuthenticate (36), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    null_in,
    read_bytes,
    read_compact_bytes,
    read_compact_string,
    read_string,
    skip_tags,
    write_bytes,
    write_compact_bytes,
    write_compact_string,
    write_string,
)

_H = Struct(">h")
_Q = Struct(">q")
_QX = Struct(">qx")


class SaslAuthenticateRequest(NamedTuple):
    """SaslAuthenticate request, v0-2."""

    auth_bytes: bytes = b""

    @staticmethod
    def response_type() -> type[SaslAuthenticateResponse]:
        return SaslAuthenticateResponse


SaslAuthenticateRequest.API_KEY = 36  # type: ignore[attr-defined]


class SaslAuthenticateResponse(NamedTuple):
    """SaslAuthenticate response, v0-2."""

    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0


SaslAuthenticateResponse.API_KEY = 36  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[SaslAuthenticateRequest, int]:
    del version
    del left
    auth_bytes_1, at = read_bytes(data, at)
    if auth_bytes_1 is None:
        raise null_in("SaslAuthenticateRequest.auth_bytes")
    return _new(SaslAuthenticateRequest, (auth_bytes_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    write_bytes(out, body.auth_bytes)


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[SaslAuthenticateRequest, int]:
    del version
    del left
    auth_bytes_1, at = read_compact_bytes(data, at)
    if auth_bytes_1 is None:
        raise null_in("SaslAuthenticateRequest.auth_bytes")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(SaslAuthenticateRequest, (auth_bytes_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_bytes(out, body.auth_bytes)
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
    error_message_2, at = read_string(data, at)
    auth_bytes_3, at = read_bytes(data, at)
    if auth_bytes_3 is None:
        raise null_in("SaslAuthenticateResponse.auth_bytes")
    session_lifetime_ms_4: Any = 0
    if version >= 1:
        (session_lifetime_ms_4,) = _Q.unpack_from(data, at)
        at += 8
    return _new(
        SaslAuthenticateResponse, (error_code_1, error_message_2, auth_bytes_3, session_lifetime_ms_4)
    ), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    out += _H.pack(body.error_code)
    write_string(out, body.error_message)
    write_bytes(out, body.auth_bytes)
    if version >= 1:
        out += _Q.pack(body.session_lifetime_ms)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[SaslAuthenticateResponse, int]:
    del version
    del left
    (error_code_1,) = _H.unpack_from(data, at)
    at += 2
    error_message_2, at = read_compact_string(data, at)
    auth_bytes_3, at = read_compact_bytes(data, at)
    if auth_bytes_3 is None:
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
    write_compact_string(out, body.error_message)
    write_compact_bytes(out, body.auth_bytes)
    out += _QX.pack(body.session_lifetime_ms)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
