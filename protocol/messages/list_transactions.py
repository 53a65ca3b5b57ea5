"""ListTransactions (66), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    null_in,
    pack,
    read_compact_count,
    read_compact_string,
    skip_tags,
    unpack_from,
    write_compact_count,
    write_compact_string,
)

_IH = Struct(">ih")
_Q = Struct(">q")


class ListTransactionsRequest(NamedTuple):
    """ListTransactions request, v0-2."""

    state_filters: Sequence[str] = ()
    producer_id_filters: Sequence[int] = ()
    duration_filter: int = -1
    transactional_id_pattern: str | None = None

    @staticmethod
    def response_type() -> type[ListTransactionsResponse]:
        return ListTransactionsResponse


ListTransactionsRequest.API_KEY = 66  # type: ignore[attr-defined]


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


ListTransactionsResponse.API_KEY = 66  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ListTransactionsRequest, int]:
    size, at, left = read_compact_count(data, at, left, 1, "ListTransactionsRequest.state_filters")
    state_filters_1: Any = None if size < 0 else []
    for _ in range(size):
        item2, at = read_compact_string(data, at)
        if item2 is None:
            raise null_in("ListTransactionsRequest.state_filters")
        state_filters_1.append(item2)
    if state_filters_1 is None:
        raise null_in("ListTransactionsRequest.state_filters")
    size, at, left = read_compact_count(data, at, left, 8, "ListTransactionsRequest.producer_id_filters")
    producer_id_filters_3 = None if size < 0 else list(unpack_from(f">{size}q", data, at))
    at += 8 * max(size, 0)
    if producer_id_filters_3 is None:
        raise null_in("ListTransactionsRequest.producer_id_filters")
    duration_filter_4: Any = -1
    if version >= 1:
        (duration_filter_4,) = _Q.unpack_from(data, at)
        at += 8
    transactional_id_pattern_5: Any = None
    if version >= 2:
        transactional_id_pattern_5, at = read_compact_string(data, at)
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
    write_compact_count(out, state_filters_1)
    for item2 in state_filters_1 or ():
        write_compact_string(out, item2)
    producer_id_filters_3 = body.producer_id_filters
    write_compact_count(out, producer_id_filters_3)
    out += pack(f">{len(producer_id_filters_3 or ())}q", *(producer_id_filters_3 or ()))
    if version >= 1:
        out += _Q.pack(body.duration_filter)
    if version >= 2:
        write_compact_string(out, body.transactional_id_pattern)
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
    size, at, left = read_compact_count(data, at, left, 1, "ListTransactionsResponse.unknown_state_filters")
    unknown_state_filters_3: Any = None if size < 0 else []
    for _ in range(size):
        item4, at = read_compact_string(data, at)
        if item4 is None:
            raise null_in("ListTransactionsResponse.unknown_state_filters")
        unknown_state_filters_3.append(item4)
    if unknown_state_filters_3 is None:
        raise null_in("ListTransactionsResponse.unknown_state_filters")
    size, at, left = read_compact_count(data, at, left, 11, "ListTransactionsResponse.transaction_states")
    transaction_states_5: Any = None if size < 0 else []
    for _ in range(size):
        transactional_id_7, at = read_compact_string(data, at)
        if transactional_id_7 is None:
            raise null_in("ListTransactionsResponse.transactional_id")
        (producer_id_8,) = _Q.unpack_from(data, at)
        at += 8
        transaction_state_9, at = read_compact_string(data, at)
        if transaction_state_9 is None:
            raise null_in("ListTransactionsResponse.transaction_state")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item6 = _new(TransactionState, (transactional_id_7, producer_id_8, transaction_state_9))
        transaction_states_5.append(item6)
    if transaction_states_5 is None:
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
    write_compact_count(out, unknown_state_filters_1)
    for item2 in unknown_state_filters_1 or ():
        write_compact_string(out, item2)
    transaction_states_3 = body.transaction_states
    write_compact_count(out, transaction_states_3)
    for item4 in transaction_states_3 or ():
        write_compact_string(out, item4.transactional_id)
        out += _Q.pack(item4.producer_id)
        write_compact_string(out, item4.transaction_state)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
