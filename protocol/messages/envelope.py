"""Envelope (58), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from struct import Struct
from typing import Any

from .wire import NamedTuple, _new, null_in, read_compact_bytes, skip_tags, write_compact_bytes

_H = Struct(">h")
_HX = Struct(">hx")


class EnvelopeRequest(NamedTuple):
    """Envelope request, v0-0."""

    request_data: bytes = b""
    request_principal: bytes | None = None
    client_host_address: bytes = b""

    @staticmethod
    def response_type() -> type[EnvelopeResponse]:
        return EnvelopeResponse


EnvelopeRequest.API_KEY = 58  # type: ignore[attr-defined]


class EnvelopeResponse(NamedTuple):
    """Envelope response, v0-0."""

    response_data: bytes | None = None
    error_code: int = 0


EnvelopeResponse.API_KEY = 58  # type: ignore[attr-defined]


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[EnvelopeRequest, int]:
    del version
    del left
    request_data_1, at = read_compact_bytes(data, at)
    if request_data_1 is None:
        raise null_in("EnvelopeRequest.request_data")
    request_principal_2, at = read_compact_bytes(data, at)
    client_host_address_3, at = read_compact_bytes(data, at)
    if client_host_address_3 is None:
        raise null_in("EnvelopeRequest.client_host_address")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(EnvelopeRequest, (request_data_1, request_principal_2, client_host_address_3)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_bytes(out, body.request_data)
    write_compact_bytes(out, body.request_principal)
    write_compact_bytes(out, body.client_host_address)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[EnvelopeResponse, int]:
    del version
    del left
    response_data_1, at = read_compact_bytes(data, at)
    (error_code_2,) = _H.unpack_from(data, at)
    at += 2
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(EnvelopeResponse, (response_data_1, error_code_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_bytes(out, body.response_data)
    out += _HX.pack(body.error_code)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
