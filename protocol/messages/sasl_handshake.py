"""SaslHandshake (17), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import NamedTuple, _new, null_in, read_count, read_string, write_count, write_string

_H = Struct(">h")


class SaslHandshakeRequest(NamedTuple):
    """SaslHandshake request, v0-1."""

    mechanism: str = ""

    @staticmethod
    def response_type() -> type[SaslHandshakeResponse]:
        return SaslHandshakeResponse


SaslHandshakeRequest.API_KEY = 17  # type: ignore[attr-defined]


class SaslHandshakeResponse(NamedTuple):
    """SaslHandshake response, v0-1."""

    error_code: int = 0
    mechanisms: Sequence[str] = ()


SaslHandshakeResponse.API_KEY = 17  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[SaslHandshakeRequest, int]:
    del version
    del left
    mechanism_1, at = read_string(data, at)
    if mechanism_1 is None:
        raise null_in("SaslHandshakeRequest.mechanism")
    return _new(SaslHandshakeRequest, (mechanism_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    write_string(out, body.mechanism)


def read_request(version: int) -> Any:
    return _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[SaslHandshakeResponse, int]:
    del version
    (error_code_1,) = _H.unpack_from(data, at)
    at += 2
    size, at, left = read_count(data, at, left, 2, "SaslHandshakeResponse.mechanisms")
    mechanisms_2: Any = None if size < 0 else []
    for _ in range(size):
        item3, at = read_string(data, at)
        if item3 is None:
            raise null_in("SaslHandshakeResponse.mechanisms")
        mechanisms_2.append(item3)
    if mechanisms_2 is None:
        raise null_in("SaslHandshakeResponse.mechanisms")
    return _new(SaslHandshakeResponse, (error_code_1, mechanisms_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _H.pack(body.error_code)
    mechanisms_1 = body.mechanisms
    write_count(out, mechanisms_1)
    for item2 in mechanisms_1 or ():
        write_string(out, item2)


def read_response(version: int) -> Any:
    return _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_classic
