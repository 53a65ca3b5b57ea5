"""DescribeTransactions (65), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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

_H = Struct(">h")
_I = Struct(">i")
_IQQH = Struct(">iqqh")


class DescribeTransactionsRequest(NamedTuple):
    """DescribeTransactions request, v0-0."""

    transactional_ids: Sequence[str] = ()

    @staticmethod
    def response_type() -> type[DescribeTransactionsResponse]:
        return DescribeTransactionsResponse


DescribeTransactionsRequest.API_KEY = 65  # type: ignore[attr-defined]


class TopicData(NamedTuple):
    """TopicData of DescribeTransactions."""

    topic: str = ""
    partitions: Sequence[int] = ()


class TransactionState(NamedTuple):
    """TransactionState of DescribeTransactions."""

    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: Sequence[TopicData] = ()


class DescribeTransactionsResponse(NamedTuple):
    """DescribeTransactions response, v0-0."""

    throttle_time_ms: int = 0
    transaction_states: Sequence[TransactionState] = ()


DescribeTransactionsResponse.API_KEY = 65  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeTransactionsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 1, "DescribeTransactionsRequest.transactional_ids")
    transactional_ids_1: Any = None if size < 0 else []
    for _ in range(size):
        item2, at = read_compact_string(data, at)
        if item2 is None:
            raise null_in("DescribeTransactionsRequest.transactional_ids")
        transactional_ids_1.append(item2)
    if transactional_ids_1 is None:
        raise null_in("DescribeTransactionsRequest.transactional_ids")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeTransactionsRequest, (transactional_ids_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    transactional_ids_1 = body.transactional_ids
    write_compact_count(out, transactional_ids_1)
    for item2 in transactional_ids_1 or ():
        write_compact_string(out, item2)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeTransactionsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 28, "DescribeTransactionsResponse.transaction_states")
    transaction_states_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        transactional_id_5, at = read_compact_string(data, at)
        if transactional_id_5 is None:
            raise null_in("DescribeTransactionsResponse.transactional_id")
        transaction_state_6, at = read_compact_string(data, at)
        if transaction_state_6 is None:
            raise null_in("DescribeTransactionsResponse.transaction_state")
        transaction_timeout_ms_7, transaction_start_time_ms_8, producer_id_9, producer_epoch_10 = (
            _IQQH.unpack_from(data, at)
        )
        at += 22
        size, at, left = read_compact_count(data, at, left, 3, "DescribeTransactionsResponse.topics")
        topics_11: Any = None if size < 0 else []
        for _ in range(size):
            topic_13, at = read_compact_string(data, at)
            if topic_13 is None:
                raise null_in("DescribeTransactionsResponse.topic")
            size, at, left = read_compact_count(data, at, left, 4, "DescribeTransactionsResponse.partitions")
            partitions_14 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if partitions_14 is None:
                raise null_in("DescribeTransactionsResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item12 = _new(TopicData, (topic_13, partitions_14))
            topics_11.append(item12)
        if topics_11 is None:
            raise null_in("DescribeTransactionsResponse.topics")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(
            TransactionState,
            (
                error_code_4,
                transactional_id_5,
                transaction_state_6,
                transaction_timeout_ms_7,
                transaction_start_time_ms_8,
                producer_id_9,
                producer_epoch_10,
                topics_11,
            ),
        )
        transaction_states_2.append(item3)
    if transaction_states_2 is None:
        raise null_in("DescribeTransactionsResponse.transaction_states")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeTransactionsResponse, (throttle_time_ms_1, transaction_states_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    transaction_states_1 = body.transaction_states
    write_compact_count(out, transaction_states_1)
    for item2 in transaction_states_1 or ():
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.transactional_id)
        write_compact_string(out, item2.transaction_state)
        out += _IQQH.pack(
            item2.transaction_timeout_ms,
            item2.transaction_start_time_ms,
            item2.producer_id,
            item2.producer_epoch,
        )
        topics_3 = item2.topics
        write_compact_count(out, topics_3)
        for item4 in topics_3 or ():
            write_compact_string(out, item4.topic)
            partitions_5 = item4.partitions
            write_compact_count(out, partitions_5)
            out += pack(f">{len(partitions_5 or ())}i", *(partitions_5 or ()))
            out.append(0)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
