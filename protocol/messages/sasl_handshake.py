"""SaslHandshake (17), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, null_in, too_many

_H = Struct(">h")
_I = Struct(">i")


class SaslHandshakeRequest(NamedTuple):
    """SaslHandshake request, v0-1."""

    mechanism: str = ""


class SaslHandshakeResponse(NamedTuple):
    """SaslHandshake response, v0-1."""

    error_code: int = 0
    mechanisms: Sequence[str] = ()


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[SaslHandshakeRequest, int]:
    del version
    del left
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        mechanism_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("SaslHandshakeRequest.mechanism")
    return _new(SaslHandshakeRequest, (mechanism_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    value = body.mechanism
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data


def read_request(version: int) -> Any:
    return _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[SaslHandshakeResponse, int]:
    del version
    (error_code_1,) = _H.unpack_from(data, at)
    at += 2
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("SaslHandshakeResponse.mechanisms", size, left)
        mechanisms_2 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                item3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("SaslHandshakeResponse.mechanisms")
            mechanisms_2.append(item3)
    else:
        raise null_in("SaslHandshakeResponse.mechanisms")
    return _new(SaslHandshakeResponse, (error_code_1, mechanisms_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _H.pack(body.error_code)
    mechanisms_1 = body.mechanisms
    if mechanisms_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(mechanisms_1))
        for item2 in mechanisms_1:
            value = item2
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data


def read_response(version: int) -> Any:
    return _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_classic
