"""DescribeTransactions (65), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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

_H = Struct(">h")
_I = Struct(">i")
_IQQH = Struct(">iqqh")


class DescribeTransactionsRequest(NamedTuple):
    """DescribeTransactions request, v0-0."""

    transactional_ids: Sequence[str] = ()


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


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeTransactionsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > len(data) - at or left < 0:
            raise too_many("DescribeTransactionsRequest.transactional_ids", size, left)
        transactional_ids_1 = []
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
                raise null_in("DescribeTransactionsRequest.transactional_ids")
            transactional_ids_1.append(item2)
    else:
        raise null_in("DescribeTransactionsRequest.transactional_ids")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeTransactionsRequest, (transactional_ids_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    transactional_ids_1 = body.transactional_ids
    if transactional_ids_1 is None:
        out += b"\x00"
    else:
        size = len(transactional_ids_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in transactional_ids_1:
            value = item2
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
) -> tuple[DescribeTransactionsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 28 or left < 0:
            raise too_many("DescribeTransactionsResponse.transaction_states", size, left)
        transaction_states_2 = []
        for _ in range(size):
            (error_code_4,) = _H.unpack_from(data, at)
            at += 2
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                transactional_id_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeTransactionsResponse.transactional_id")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                transaction_state_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeTransactionsResponse.transaction_state")
            transaction_timeout_ms_7, transaction_start_time_ms_8, producer_id_9, producer_epoch_10 = (
                _IQQH.unpack_from(data, at)
            )
            at += 22
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 3 or left < 0:
                    raise too_many("DescribeTransactionsResponse.topics", size, left)
                topics_11 = []
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
                        topic_13 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeTransactionsResponse.topic")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("DescribeTransactionsResponse.partitions", size, left)
                        partitions_14 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("DescribeTransactionsResponse.partitions")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item12 = _new(TopicData, (topic_13, partitions_14))
                    topics_11.append(item12)
            else:
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
    else:
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
    if transaction_states_1 is None:
        out += b"\x00"
    else:
        size = len(transaction_states_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in transaction_states_1:
            out += _H.pack(item2.error_code)
            value = item2.transactional_id
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            value = item2.transaction_state
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _IQQH.pack(
                item2.transaction_timeout_ms,
                item2.transaction_start_time_ms,
                item2.producer_id,
                item2.producer_epoch,
            )
            topics_3 = item2.topics
            if topics_3 is None:
                out += b"\x00"
            else:
                size = len(topics_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in topics_3:
                    value = item4.topic
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    partitions_5 = item4.partitions
                    if partitions_5 is None:
                        out += b"\x00"
                    else:
                        size = len(partitions_5) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += pack(f">{len(partitions_5)}i", *partitions_5)
                    out.append(0)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
