"""EndTxn (26), versions 0 to 5. Written by scripts/generate_messages.py: do not edit."""

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
_QH = Struct(">qh")
_QHT = Struct(">qh?")
_QHTX = Struct(">qh?x")


class EndTxnRequest(NamedTuple):
    """EndTxn request, v0-5."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False

    @staticmethod
    def response_type() -> type[EndTxnResponse]:
        return EndTxnResponse


EndTxnRequest.API_KEY = 26  # type: ignore[attr-defined]


class EndTxnResponse(NamedTuple):
    """EndTxn response, v0-5."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


EndTxnResponse.API_KEY = 26  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[EndTxnRequest, int]:
    del version
    del left
    transactional_id_1, at = read_string(data, at)
    if transactional_id_1 is None:
        raise null_in("EndTxnRequest.transactional_id")
    producer_id_2, producer_epoch_3, committed_4 = _QHT.unpack_from(data, at)
    at += 11
    return _new(EndTxnRequest, (transactional_id_1, producer_id_2, producer_epoch_3, committed_4)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    write_string(out, body.transactional_id)
    out += _QHT.pack(body.producer_id, body.producer_epoch, body.committed)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[EndTxnRequest, int]:
    del version
    del left
    transactional_id_1, at = read_compact_string(data, at)
    if transactional_id_1 is None:
        raise null_in("EndTxnRequest.transactional_id")
    producer_id_2, producer_epoch_3, committed_4 = _QHT.unpack_from(data, at)
    at += 11
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(EndTxnRequest, (transactional_id_1, producer_id_2, producer_epoch_3, committed_4)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_string(out, body.transactional_id)
    out += _QHTX.pack(body.producer_id, body.producer_epoch, body.committed)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 3 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 3 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[EndTxnResponse, int]:
    del version
    del left
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    return _new(EndTxnResponse, (throttle_time_ms_1, error_code_2, -1, -1)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[EndTxnResponse, int]:
    del left
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    producer_id_3: Any = -1
    producer_epoch_4: Any = -1
    if version >= 5:
        producer_id_3, producer_epoch_4 = _QH.unpack_from(data, at)
        at += 10
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(EndTxnResponse, (throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    if version >= 5:
        out += _QH.pack(body.producer_id, body.producer_epoch)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
