"""AddOffsetsToTxn (25), versions 0 to 4. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    null_in,
    read_compact_string,
    read_string,
    skip_tags,
    write_compact_string,
    write_string,
)

_IH = Struct(">ih")
_IHX = Struct(">ihx")
_QH = Struct(">qh")


class AddOffsetsToTxnRequest(NamedTuple):
    """AddOffsetsToTxn request, v0-4."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""

    @staticmethod
    def response_type() -> type[AddOffsetsToTxnResponse]:
        return AddOffsetsToTxnResponse


AddOffsetsToTxnRequest.API_KEY = 25  # type: ignore[attr-defined]


class AddOffsetsToTxnResponse(NamedTuple):
    """AddOffsetsToTxn response, v0-4."""

    throttle_time_ms: int = 0
    error_code: int = 0


AddOffsetsToTxnResponse.API_KEY = 25  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[AddOffsetsToTxnRequest, int]:
    del version
    del left
    transactional_id_1, at = read_string(data, at)
    if transactional_id_1 is None:
        raise null_in("AddOffsetsToTxnRequest.transactional_id")
    producer_id_2, producer_epoch_3 = _QH.unpack_from(data, at)
    at += 10
    group_id_4, at = read_string(data, at)
    if group_id_4 is None:
        raise null_in("AddOffsetsToTxnRequest.group_id")
    return _new(AddOffsetsToTxnRequest, (transactional_id_1, producer_id_2, producer_epoch_3, group_id_4)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    write_string(out, body.transactional_id)
    out += _QH.pack(body.producer_id, body.producer_epoch)
    write_string(out, body.group_id)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[AddOffsetsToTxnRequest, int]:
    del version
    del left
    transactional_id_1, at = read_compact_string(data, at)
    if transactional_id_1 is None:
        raise null_in("AddOffsetsToTxnRequest.transactional_id")
    producer_id_2, producer_epoch_3 = _QH.unpack_from(data, at)
    at += 10
    group_id_4, at = read_compact_string(data, at)
    if group_id_4 is None:
        raise null_in("AddOffsetsToTxnRequest.group_id")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AddOffsetsToTxnRequest, (transactional_id_1, producer_id_2, producer_epoch_3, group_id_4)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_string(out, body.transactional_id)
    out += _QH.pack(body.producer_id, body.producer_epoch)
    write_compact_string(out, body.group_id)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 3 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 3 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[AddOffsetsToTxnResponse, int]:
    del version
    del left
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    return _new(AddOffsetsToTxnResponse, (throttle_time_ms_1, error_code_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AddOffsetsToTxnResponse, int]:
    del version
    del left
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AddOffsetsToTxnResponse, (throttle_time_ms_1, error_code_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IHX.pack(body.throttle_time_ms, body.error_code)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
