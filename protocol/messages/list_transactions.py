"""ListTransactions (66), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import (
    _new,
    BYTES,
    long_varint,
    malformed,
    null_in,
    pack,
    skip_tags,
    too_many,
    unpack_from,
    varint,
)

_IH = Struct(">ih")
_Q = Struct(">q")


class ListTransactionsRequest(NamedTuple):
    """ListTransactions request, v0-2."""

    state_filters: Sequence[str] = ()
    producer_id_filters: Sequence[int] = ()
    duration_filter: int = -1
    transactional_id_pattern: str | None = None


class TransactionState(NamedTuple):
    """TransactionState of ListTransactions."""

    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""


class ListTransactionsResponse(NamedTuple):
    """ListTransactions response, v0-2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: Sequence[str] = ()
    transaction_states: Sequence[TransactionState] = ()


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ListTransactionsRequest, int]:
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > len(data) - at or left < 0:
            raise too_many("ListTransactionsRequest.state_filters", size, left)
        state_filters_1 = []
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
                item2 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListTransactionsRequest.state_filters")
            state_filters_1.append(item2)
    else:
        raise null_in("ListTransactionsRequest.state_filters")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 8 or left < 0:
            raise too_many("ListTransactionsRequest.producer_id_filters", size, left)
        producer_id_filters_3 = list(unpack_from(f">{size}q", data, at))
        at += 8 * size
    else:
        raise null_in("ListTransactionsRequest.producer_id_filters")
    duration_filter_4 = -1
    if version >= 1:
        (duration_filter_4,) = _Q.unpack_from(data, at)
        at += 8
    transactional_id_pattern_5 = None
    if version >= 2:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            if size > 32767:
                raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
            end = at + size
            transactional_id_pattern_5 = str(data[at:end], "utf-8")
            at = end
        elif size == -1:
            transactional_id_pattern_5 = None
        else:
            raise malformed("a negative length")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        ListTransactionsRequest,
        (state_filters_1, producer_id_filters_3, duration_filter_4, transactional_id_pattern_5),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    state_filters_1 = body.state_filters
    if state_filters_1 is None:
        out += b"\x00"
    else:
        size = len(state_filters_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in state_filters_1:
            value = item2
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
    producer_id_filters_3 = body.producer_id_filters
    if producer_id_filters_3 is None:
        out += b"\x00"
    else:
        size = len(producer_id_filters_3) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += pack(f">{len(producer_id_filters_3)}q", *producer_id_filters_3)
    if version >= 1:
        out += _Q.pack(body.duration_filter)
    if version >= 2:
        value = body.transactional_id_pattern
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ListTransactionsResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > len(data) - at or left < 0:
            raise too_many("ListTransactionsResponse.unknown_state_filters", size, left)
        unknown_state_filters_3 = []
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
                raise null_in("ListTransactionsResponse.unknown_state_filters")
            unknown_state_filters_3.append(item4)
    else:
        raise null_in("ListTransactionsResponse.unknown_state_filters")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 11 or left < 0:
            raise too_many("ListTransactionsResponse.transaction_states", size, left)
        transaction_states_5 = []
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
                transactional_id_7 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListTransactionsResponse.transactional_id")
            (producer_id_8,) = _Q.unpack_from(data, at)
            at += 8
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                transaction_state_9 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListTransactionsResponse.transaction_state")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(TransactionState, (transactional_id_7, producer_id_8, transaction_state_9))
            transaction_states_5.append(item6)
    else:
        raise null_in("ListTransactionsResponse.transaction_states")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        ListTransactionsResponse,
        (throttle_time_ms_1, error_code_2, unknown_state_filters_3, transaction_states_5),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    unknown_state_filters_1 = body.unknown_state_filters
    if unknown_state_filters_1 is None:
        out += b"\x00"
    else:
        size = len(unknown_state_filters_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in unknown_state_filters_1:
            value = item2
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
    transaction_states_3 = body.transaction_states
    if transaction_states_3 is None:
        out += b"\x00"
    else:
        size = len(transaction_states_3) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item4 in transaction_states_3:
            value = item4.transactional_id
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _Q.pack(item4.producer_id)
            value = item4.transaction_state
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
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
