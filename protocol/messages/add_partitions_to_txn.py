"""AddPartitionsToTxn (24), versions 0 to 5. Written by scripts/generate_messages.py: do not edit."""

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
_IH = Struct(">ih")
_QH = Struct(">qh")
_QHT = Struct(">qh?")


class AddPartitionsToTxnTopic(NamedTuple):
    """AddPartitionsToTxnTopic of AddPartitionsToTxn."""

    name: str = ""
    partitions: Sequence[int] = ()


class AddPartitionsToTxnTransaction(NamedTuple):
    """AddPartitionsToTxnTransaction of AddPartitionsToTxn."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: Sequence[AddPartitionsToTxnTopic] = ()


class AddPartitionsToTxnRequest(NamedTuple):
    """AddPartitionsToTxn request, v0-5."""

    transactions: Sequence[AddPartitionsToTxnTransaction] = ()
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = ()


class AddPartitionsToTxnPartitionResult(NamedTuple):
    """AddPartitionsToTxnPartitionResult of AddPartitionsToTxn."""

    partition_index: int = 0
    partition_error_code: int = 0


class AddPartitionsToTxnTopicResult(NamedTuple):
    """AddPartitionsToTxnTopicResult of AddPartitionsToTxn."""

    name: str = ""
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = ()


class AddPartitionsToTxnResult(NamedTuple):
    """AddPartitionsToTxnResult of AddPartitionsToTxn."""

    transactional_id: str = ""
    topic_results: Sequence[AddPartitionsToTxnTopicResult] = ()


class AddPartitionsToTxnResponse(NamedTuple):
    """AddPartitionsToTxn response, v0-5."""

    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: Sequence[AddPartitionsToTxnResult] = ()
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = ()


def _read_request_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[AddPartitionsToTxnRequest, int]:
    del version
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        v3_and_below_transactional_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("AddPartitionsToTxnRequest.v3_and_below_transactional_id")
    v3_and_below_producer_id_2, v3_and_below_producer_epoch_3 = _QH.unpack_from(data, at)
    at += 10
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("AddPartitionsToTxnRequest.v3_and_below_topics", size, left)
        v3_and_below_topics_4 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("AddPartitionsToTxnRequest.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("AddPartitionsToTxnRequest.partitions", size, left)
                partitions_7 = list(unpack_from(f">{size}i", data, at))
                at += 4 * size
            else:
                raise null_in("AddPartitionsToTxnRequest.partitions")
            item5 = _new(AddPartitionsToTxnTopic, (name_6, partitions_7))
            v3_and_below_topics_4.append(item5)
    else:
        raise null_in("AddPartitionsToTxnRequest.v3_and_below_topics")
    return _new(
        AddPartitionsToTxnRequest,
        (
            (),
            v3_and_below_transactional_id_1,
            v3_and_below_producer_id_2,
            v3_and_below_producer_epoch_3,
            v3_and_below_topics_4,
        ),
    ), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    value = body.v3_and_below_transactional_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    out += _QH.pack(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
    v3_and_below_topics_1 = body.v3_and_below_topics
    if v3_and_below_topics_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(v3_and_below_topics_1))
        for item2 in v3_and_below_topics_1:
            value = item2.name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(partitions_3))
                out += pack(f">{len(partitions_3)}i", *partitions_3)


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AddPartitionsToTxnRequest, int]:
    transactions_1 = ()
    if version >= 4:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 14 or left < 0:
                raise too_many("AddPartitionsToTxnRequest.transactions", size, left)
            transactions_1 = []
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
                    transactional_id_3 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("AddPartitionsToTxnRequest.transactional_id")
                producer_id_4, producer_epoch_5, verify_only_6 = _QHT.unpack_from(data, at)
                at += 11
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    left -= size
                    if size > (len(data) - at) // 3 or left < 0:
                        raise too_many("AddPartitionsToTxnRequest.topics", size, left)
                    topics_7 = []
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
                            name_9 = str(data[at:end], "utf-8")
                            at = end
                        else:
                            raise null_in("AddPartitionsToTxnRequest.name")
                        size = data[at]
                        at += 1
                        if size > 127:
                            size, at = long_varint(data, at - 1)
                        size -= 1
                        if size >= 0:
                            left -= size
                            if size > (len(data) - at) // 4 or left < 0:
                                raise too_many("AddPartitionsToTxnRequest.partitions", size, left)
                            partitions_10 = list(unpack_from(f">{size}i", data, at))
                            at += 4 * size
                        else:
                            raise null_in("AddPartitionsToTxnRequest.partitions")
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item8 = _new(AddPartitionsToTxnTopic, (name_9, partitions_10))
                        topics_7.append(item8)
                else:
                    raise null_in("AddPartitionsToTxnRequest.topics")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item2 = _new(
                    AddPartitionsToTxnTransaction,
                    (transactional_id_3, producer_id_4, producer_epoch_5, verify_only_6, topics_7),
                )
                transactions_1.append(item2)
        else:
            raise null_in("AddPartitionsToTxnRequest.transactions")
    v3_and_below_transactional_id_11 = ""
    if version <= 3:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            if size > 32767:
                raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
            end = at + size
            v3_and_below_transactional_id_11 = str(data[at:end], "utf-8")
            at = end
        else:
            raise null_in("AddPartitionsToTxnRequest.v3_and_below_transactional_id")
    v3_and_below_producer_id_12 = 0
    v3_and_below_producer_epoch_13 = 0
    if version <= 3:
        v3_and_below_producer_id_12, v3_and_below_producer_epoch_13 = _QH.unpack_from(data, at)
        at += 10
    v3_and_below_topics_14 = ()
    if version <= 3:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 3 or left < 0:
                raise too_many("AddPartitionsToTxnRequest.v3_and_below_topics", size, left)
            v3_and_below_topics_14 = []
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
                    name_16 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("AddPartitionsToTxnRequest.name")
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    left -= size
                    if size > (len(data) - at) // 4 or left < 0:
                        raise too_many("AddPartitionsToTxnRequest.partitions", size, left)
                    partitions_17 = list(unpack_from(f">{size}i", data, at))
                    at += 4 * size
                else:
                    raise null_in("AddPartitionsToTxnRequest.partitions")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item15 = _new(AddPartitionsToTxnTopic, (name_16, partitions_17))
                v3_and_below_topics_14.append(item15)
        else:
            raise null_in("AddPartitionsToTxnRequest.v3_and_below_topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        AddPartitionsToTxnRequest,
        (
            transactions_1,
            v3_and_below_transactional_id_11,
            v3_and_below_producer_id_12,
            v3_and_below_producer_epoch_13,
            v3_and_below_topics_14,
        ),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    if version >= 4:
        transactions_1 = body.transactions
        if transactions_1 is None:
            out += b"\x00"
        else:
            size = len(transactions_1) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item2 in transactions_1:
                value = item2.transactional_id
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                out += _QHT.pack(item2.producer_id, item2.producer_epoch, item2.verify_only)
                topics_3 = item2.topics
                if topics_3 is None:
                    out += b"\x00"
                else:
                    size = len(topics_3) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    for item4 in topics_3:
                        value = item4.name
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
    if version <= 3:
        value = body.v3_and_below_transactional_id
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    if version <= 3:
        out += _QH.pack(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
    if version <= 3:
        v3_and_below_topics_7 = body.v3_and_below_topics
        if v3_and_below_topics_7 is None:
            out += b"\x00"
        else:
            size = len(v3_and_below_topics_7) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item8 in v3_and_below_topics_7:
                value = item8.name
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                partitions_9 = item8.partitions
                if partitions_9 is None:
                    out += b"\x00"
                else:
                    size = len(partitions_9) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += pack(f">{len(partitions_9)}i", *partitions_9)
                out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 3 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 3 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[AddPartitionsToTxnResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("AddPartitionsToTxnResponse.results_by_topic_v3_and_below", size, left)
        results_by_topic_v3_and_below_2 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("AddPartitionsToTxnResponse.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("AddPartitionsToTxnResponse.results_by_partition", size, left)
                results_by_partition_5 = []
                for _ in range(size):
                    partition_index_7, partition_error_code_8 = _IH.unpack_from(data, at)
                    at += 6
                    item6 = _new(
                        AddPartitionsToTxnPartitionResult, (partition_index_7, partition_error_code_8)
                    )
                    results_by_partition_5.append(item6)
            else:
                raise null_in("AddPartitionsToTxnResponse.results_by_partition")
            item3 = _new(AddPartitionsToTxnTopicResult, (name_4, results_by_partition_5))
            results_by_topic_v3_and_below_2.append(item3)
    else:
        raise null_in("AddPartitionsToTxnResponse.results_by_topic_v3_and_below")
    return _new(AddPartitionsToTxnResponse, (throttle_time_ms_1, 0, (), results_by_topic_v3_and_below_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_by_topic_v3_and_below_1 = body.results_by_topic_v3_and_below
    if results_by_topic_v3_and_below_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(results_by_topic_v3_and_below_1))
        for item2 in results_by_topic_v3_and_below_1:
            value = item2.name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            results_by_partition_3 = item2.results_by_partition
            if results_by_partition_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(results_by_partition_3))
                for item4 in results_by_partition_3:
                    out += _IH.pack(item4.partition_index, item4.partition_error_code)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AddPartitionsToTxnResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    error_code_2 = 0
    if version >= 4:
        (error_code_2,) = _H.unpack_from(data, at)
        at += 2
    results_by_transaction_3 = ()
    if version >= 4:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 3 or left < 0:
                raise too_many("AddPartitionsToTxnResponse.results_by_transaction", size, left)
            results_by_transaction_3 = []
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
                    transactional_id_5 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("AddPartitionsToTxnResponse.transactional_id")
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    left -= size
                    if size > (len(data) - at) // 3 or left < 0:
                        raise too_many("AddPartitionsToTxnResponse.topic_results", size, left)
                    topic_results_6 = []
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
                            name_8 = str(data[at:end], "utf-8")
                            at = end
                        else:
                            raise null_in("AddPartitionsToTxnResponse.name")
                        size = data[at]
                        at += 1
                        if size > 127:
                            size, at = long_varint(data, at - 1)
                        size -= 1
                        if size >= 0:
                            left -= size
                            if size > (len(data) - at) // 7 or left < 0:
                                raise too_many("AddPartitionsToTxnResponse.results_by_partition", size, left)
                            results_by_partition_9 = []
                            for _ in range(size):
                                partition_index_11, partition_error_code_12 = _IH.unpack_from(data, at)
                                at += 6
                                if data[at]:
                                    at = skip_tags(data, at)
                                else:
                                    at += 1
                                item10 = _new(
                                    AddPartitionsToTxnPartitionResult,
                                    (partition_index_11, partition_error_code_12),
                                )
                                results_by_partition_9.append(item10)
                        else:
                            raise null_in("AddPartitionsToTxnResponse.results_by_partition")
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item7 = _new(AddPartitionsToTxnTopicResult, (name_8, results_by_partition_9))
                        topic_results_6.append(item7)
                else:
                    raise null_in("AddPartitionsToTxnResponse.topic_results")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item4 = _new(AddPartitionsToTxnResult, (transactional_id_5, topic_results_6))
                results_by_transaction_3.append(item4)
        else:
            raise null_in("AddPartitionsToTxnResponse.results_by_transaction")
    results_by_topic_v3_and_below_13 = ()
    if version <= 3:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 3 or left < 0:
                raise too_many("AddPartitionsToTxnResponse.results_by_topic_v3_and_below", size, left)
            results_by_topic_v3_and_below_13 = []
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
                    name_15 = str(data[at:end], "utf-8")
                    at = end
                else:
                    raise null_in("AddPartitionsToTxnResponse.name")
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    left -= size
                    if size > (len(data) - at) // 7 or left < 0:
                        raise too_many("AddPartitionsToTxnResponse.results_by_partition", size, left)
                    results_by_partition_16 = []
                    for _ in range(size):
                        partition_index_18, partition_error_code_19 = _IH.unpack_from(data, at)
                        at += 6
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item17 = _new(
                            AddPartitionsToTxnPartitionResult, (partition_index_18, partition_error_code_19)
                        )
                        results_by_partition_16.append(item17)
                else:
                    raise null_in("AddPartitionsToTxnResponse.results_by_partition")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item14 = _new(AddPartitionsToTxnTopicResult, (name_15, results_by_partition_16))
                results_by_topic_v3_and_below_13.append(item14)
        else:
            raise null_in("AddPartitionsToTxnResponse.results_by_topic_v3_and_below")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        AddPartitionsToTxnResponse,
        (throttle_time_ms_1, error_code_2, results_by_transaction_3, results_by_topic_v3_and_below_13),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    if version >= 4:
        out += _H.pack(body.error_code)
    if version >= 4:
        results_by_transaction_1 = body.results_by_transaction
        if results_by_transaction_1 is None:
            out += b"\x00"
        else:
            size = len(results_by_transaction_1) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item2 in results_by_transaction_1:
                value = item2.transactional_id
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                topic_results_3 = item2.topic_results
                if topic_results_3 is None:
                    out += b"\x00"
                else:
                    size = len(topic_results_3) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    for item4 in topic_results_3:
                        value = item4.name
                        if value is None:
                            out += b"\x00"
                        else:
                            data = value.encode()
                            size = len(data) + 1
                            out += varint(size) if size > 127 else BYTES[size]
                            out += data
                        results_by_partition_5 = item4.results_by_partition
                        if results_by_partition_5 is None:
                            out += b"\x00"
                        else:
                            size = len(results_by_partition_5) + 1
                            out += varint(size) if size > 127 else BYTES[size]
                            for item6 in results_by_partition_5:
                                out += _IH.pack(item6.partition_index, item6.partition_error_code)
                                out.append(0)
                        out.append(0)
                out.append(0)
    if version <= 3:
        results_by_topic_v3_and_below_7 = body.results_by_topic_v3_and_below
        if results_by_topic_v3_and_below_7 is None:
            out += b"\x00"
        else:
            size = len(results_by_topic_v3_and_below_7) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item8 in results_by_topic_v3_and_below_7:
                value = item8.name
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                results_by_partition_9 = item8.results_by_partition
                if results_by_partition_9 is None:
                    out += b"\x00"
                else:
                    size = len(results_by_partition_9) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    for item10 in results_by_partition_9:
                        out += _IH.pack(item10.partition_index, item10.partition_error_code)
                        out.append(0)
                out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
