"""InitProducerId (22), versions 0 to 6. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    read_compact_string,
    read_string,
    skip_tags,
    write_compact_string,
    write_string,
)

_TT = Struct(">??")
_I = Struct(">i")
_IHQH = Struct(">ihqh")
_QH = Struct(">qh")


class InitProducerIdRequest(NamedTuple):
    """InitProducerId request, v0-6."""

    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable2_pc: bool = False
    keep_prepared_txn: bool = False

    @staticmethod
    def response_type() -> type[InitProducerIdResponse]:
        return InitProducerIdResponse


InitProducerIdRequest.API_KEY = 22  # type: ignore[attr-defined]


class InitProducerIdResponse(NamedTuple):
    """InitProducerId response, v0-6."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1


InitProducerIdResponse.API_KEY = 22  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[InitProducerIdRequest, int]:
    del version
    del left
    transactional_id_1, at = read_string(data, at)
    (transaction_timeout_ms_2,) = _I.unpack_from(data, at)
    at += 4
    return _new(
        InitProducerIdRequest, (transactional_id_1, transaction_timeout_ms_2, -1, -1, False, False)
    ), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    write_string(out, body.transactional_id)
    out += _I.pack(body.transaction_timeout_ms)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[InitProducerIdRequest, int]:
    del left
    transactional_id_1, at = read_compact_string(data, at)
    (transaction_timeout_ms_2,) = _I.unpack_from(data, at)
    at += 4
    producer_id_3: Any = -1
    producer_epoch_4: Any = -1
    if version >= 3:
        producer_id_3, producer_epoch_4 = _QH.unpack_from(data, at)
        at += 10
    enable2_pc_5: Any = False
    keep_prepared_txn_6: Any = False
    if version >= 6:
        enable2_pc_5, keep_prepared_txn_6 = _TT.unpack_from(data, at)
        at += 2
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        InitProducerIdRequest,
        (
            transactional_id_1,
            transaction_timeout_ms_2,
            producer_id_3,
            producer_epoch_4,
            enable2_pc_5,
            keep_prepared_txn_6,
        ),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    write_compact_string(out, body.transactional_id)
    out += _I.pack(body.transaction_timeout_ms)
    if version >= 3:
        out += _QH.pack(body.producer_id, body.producer_epoch)
    if version >= 6:
        out += _TT.pack(body.enable2_pc, body.keep_prepared_txn)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[InitProducerIdResponse, int]:
    del version
    del left
    throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4 = _IHQH.unpack_from(data, at)
    at += 16
    return _new(
        InitProducerIdResponse, (throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4, -1, -1)
    ), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IHQH.pack(body.throttle_time_ms, body.error_code, body.producer_id, body.producer_epoch)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[InitProducerIdResponse, int]:
    del left
    throttle_time_ms_1, error_code_2, producer_id_3, producer_epoch_4 = _IHQH.unpack_from(data, at)
    at += 16
    ongoing_txn_producer_id_5: Any = -1
    ongoing_txn_producer_epoch_6: Any = -1
    if version >= 6:
        ongoing_txn_producer_id_5, ongoing_txn_producer_epoch_6 = _QH.unpack_from(data, at)
        at += 10
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        InitProducerIdResponse,
        (
            throttle_time_ms_1,
            error_code_2,
            producer_id_3,
            producer_epoch_4,
            ongoing_txn_producer_id_5,
            ongoing_txn_producer_epoch_6,
        ),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IHQH.pack(body.throttle_time_ms, body.error_code, body.producer_id, body.producer_epoch)
    if version >= 6:
        out += _QH.pack(body.ongoing_txn_producer_id, body.ongoing_txn_producer_epoch)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
