"""AddPartitionsToTxn (24), versions 0 to 5. Written by scripts/generate_messages.py: do not edit."""

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
    read_count,
    read_string,
    skip_tags,
    unpack_from,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
)

_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")
_IHX = Struct(">ihx")
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

    @staticmethod
    def response_type() -> type[AddPartitionsToTxnResponse]:
        return AddPartitionsToTxnResponse


AddPartitionsToTxnRequest.API_KEY = 24  # type: ignore[attr-defined]


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


AddPartitionsToTxnResponse.API_KEY = 24  # type: ignore[attr-defined]


def _read_request_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[AddPartitionsToTxnRequest, int]:
    del version
    v3_and_below_transactional_id_1, at = read_string(data, at)
    if v3_and_below_transactional_id_1 is None:
        raise null_in("AddPartitionsToTxnRequest.v3_and_below_transactional_id")
    v3_and_below_producer_id_2, v3_and_below_producer_epoch_3 = _QH.unpack_from(data, at)
    at += 10
    size, at, left = read_count(data, at, left, 6, "AddPartitionsToTxnRequest.v3_and_below_topics")
    v3_and_below_topics_4: Any = None if size < 0 else []
    for _ in range(size):
        name_6, at = read_string(data, at)
        if name_6 is None:
            raise null_in("AddPartitionsToTxnRequest.name")
        size, at, left = read_count(data, at, left, 4, "AddPartitionsToTxnRequest.partitions")
        partitions_7 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
        at += 4 * max(size, 0)
        if partitions_7 is None:
            raise null_in("AddPartitionsToTxnRequest.partitions")
        item5 = _new(AddPartitionsToTxnTopic, (name_6, partitions_7))
        v3_and_below_topics_4.append(item5)
    if v3_and_below_topics_4 is None:
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
    write_string(out, body.v3_and_below_transactional_id)
    out += _QH.pack(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
    v3_and_below_topics_1 = body.v3_and_below_topics
    write_count(out, v3_and_below_topics_1)
    for item2 in v3_and_below_topics_1 or ():
        write_string(out, item2.name)
        partitions_3 = item2.partitions
        write_count(out, partitions_3)
        out += pack(f">{len(partitions_3 or ())}i", *(partitions_3 or ()))


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AddPartitionsToTxnRequest, int]:
    transactions_1: Any = ()
    if version >= 4:
        size, at, left = read_compact_count(data, at, left, 14, "AddPartitionsToTxnRequest.transactions")
        transactions_1 = None if size < 0 else []
        for _ in range(size):
            transactional_id_3, at = read_compact_string(data, at)
            if transactional_id_3 is None:
                raise null_in("AddPartitionsToTxnRequest.transactional_id")
            producer_id_4, producer_epoch_5, verify_only_6 = _QHT.unpack_from(data, at)
            at += 11
            size, at, left = read_compact_count(data, at, left, 3, "AddPartitionsToTxnRequest.topics")
            topics_7: Any = None if size < 0 else []
            for _ in range(size):
                name_9, at = read_compact_string(data, at)
                if name_9 is None:
                    raise null_in("AddPartitionsToTxnRequest.name")
                size, at, left = read_compact_count(data, at, left, 4, "AddPartitionsToTxnRequest.partitions")
                partitions_10 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
                at += 4 * max(size, 0)
                if partitions_10 is None:
                    raise null_in("AddPartitionsToTxnRequest.partitions")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item8 = _new(AddPartitionsToTxnTopic, (name_9, partitions_10))
                topics_7.append(item8)
            if topics_7 is None:
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
        if transactions_1 is None:
            raise null_in("AddPartitionsToTxnRequest.transactions")
    v3_and_below_transactional_id_11: Any = ""
    if version <= 3:
        v3_and_below_transactional_id_11, at = read_compact_string(data, at)
        if v3_and_below_transactional_id_11 is None:
            raise null_in("AddPartitionsToTxnRequest.v3_and_below_transactional_id")
    v3_and_below_producer_id_12: Any = 0
    v3_and_below_producer_epoch_13: Any = 0
    if version <= 3:
        v3_and_below_producer_id_12, v3_and_below_producer_epoch_13 = _QH.unpack_from(data, at)
        at += 10
    v3_and_below_topics_14: Any = ()
    if version <= 3:
        size, at, left = read_compact_count(
            data, at, left, 3, "AddPartitionsToTxnRequest.v3_and_below_topics"
        )
        v3_and_below_topics_14 = None if size < 0 else []
        for _ in range(size):
            name_16, at = read_compact_string(data, at)
            if name_16 is None:
                raise null_in("AddPartitionsToTxnRequest.name")
            size, at, left = read_compact_count(data, at, left, 4, "AddPartitionsToTxnRequest.partitions")
            partitions_17 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if partitions_17 is None:
                raise null_in("AddPartitionsToTxnRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item15 = _new(AddPartitionsToTxnTopic, (name_16, partitions_17))
            v3_and_below_topics_14.append(item15)
        if v3_and_below_topics_14 is None:
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
        write_compact_count(out, transactions_1)
        for item2 in transactions_1 or ():
            write_compact_string(out, item2.transactional_id)
            out += _QHT.pack(item2.producer_id, item2.producer_epoch, item2.verify_only)
            topics_3 = item2.topics
            write_compact_count(out, topics_3)
            for item4 in topics_3 or ():
                write_compact_string(out, item4.name)
                partitions_5 = item4.partitions
                write_compact_count(out, partitions_5)
                out += pack(f">{len(partitions_5 or ())}i", *(partitions_5 or ()))
                out.append(0)
            out.append(0)
    if version <= 3:
        write_compact_string(out, body.v3_and_below_transactional_id)
    if version <= 3:
        out += _QH.pack(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch)
    if version <= 3:
        v3_and_below_topics_7 = body.v3_and_below_topics
        write_compact_count(out, v3_and_below_topics_7)
        for item8 in v3_and_below_topics_7 or ():
            write_compact_string(out, item8.name)
            partitions_9 = item8.partitions
            write_compact_count(out, partitions_9)
            out += pack(f">{len(partitions_9 or ())}i", *(partitions_9 or ()))
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
    size, at, left = read_count(data, at, left, 6, "AddPartitionsToTxnResponse.results_by_topic_v3_and_below")
    results_by_topic_v3_and_below_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_string(data, at)
        if name_4 is None:
            raise null_in("AddPartitionsToTxnResponse.name")
        size, at, left = read_count(data, at, left, 6, "AddPartitionsToTxnResponse.results_by_partition")
        results_by_partition_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_7, partition_error_code_8 = _IH.unpack_from(data, at)
            at += 6
            item6 = _new(AddPartitionsToTxnPartitionResult, (partition_index_7, partition_error_code_8))
            results_by_partition_5.append(item6)
        if results_by_partition_5 is None:
            raise null_in("AddPartitionsToTxnResponse.results_by_partition")
        item3 = _new(AddPartitionsToTxnTopicResult, (name_4, results_by_partition_5))
        results_by_topic_v3_and_below_2.append(item3)
    if results_by_topic_v3_and_below_2 is None:
        raise null_in("AddPartitionsToTxnResponse.results_by_topic_v3_and_below")
    return _new(AddPartitionsToTxnResponse, (throttle_time_ms_1, 0, (), results_by_topic_v3_and_below_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_by_topic_v3_and_below_1 = body.results_by_topic_v3_and_below
    write_count(out, results_by_topic_v3_and_below_1)
    for item2 in results_by_topic_v3_and_below_1 or ():
        write_string(out, item2.name)
        results_by_partition_3 = item2.results_by_partition
        write_count(out, results_by_partition_3)
        for item4 in results_by_partition_3 or ():
            out += _IH.pack(item4.partition_index, item4.partition_error_code)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AddPartitionsToTxnResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    error_code_2: Any = 0
    if version >= 4:
        (error_code_2,) = _H.unpack_from(data, at)
        at += 2
    results_by_transaction_3: Any = ()
    if version >= 4:
        size, at, left = read_compact_count(
            data, at, left, 3, "AddPartitionsToTxnResponse.results_by_transaction"
        )
        results_by_transaction_3 = None if size < 0 else []
        for _ in range(size):
            transactional_id_5, at = read_compact_string(data, at)
            if transactional_id_5 is None:
                raise null_in("AddPartitionsToTxnResponse.transactional_id")
            size, at, left = read_compact_count(data, at, left, 3, "AddPartitionsToTxnResponse.topic_results")
            topic_results_6: Any = None if size < 0 else []
            for _ in range(size):
                name_8, at = read_compact_string(data, at)
                if name_8 is None:
                    raise null_in("AddPartitionsToTxnResponse.name")
                size, at, left = read_compact_count(
                    data, at, left, 7, "AddPartitionsToTxnResponse.results_by_partition"
                )
                results_by_partition_9: Any = None if size < 0 else []
                for _ in range(size):
                    partition_index_11, partition_error_code_12 = _IH.unpack_from(data, at)
                    at += 6
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item10 = _new(
                        AddPartitionsToTxnPartitionResult, (partition_index_11, partition_error_code_12)
                    )
                    results_by_partition_9.append(item10)
                if results_by_partition_9 is None:
                    raise null_in("AddPartitionsToTxnResponse.results_by_partition")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item7 = _new(AddPartitionsToTxnTopicResult, (name_8, results_by_partition_9))
                topic_results_6.append(item7)
            if topic_results_6 is None:
                raise null_in("AddPartitionsToTxnResponse.topic_results")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item4 = _new(AddPartitionsToTxnResult, (transactional_id_5, topic_results_6))
            results_by_transaction_3.append(item4)
        if results_by_transaction_3 is None:
            raise null_in("AddPartitionsToTxnResponse.results_by_transaction")
    results_by_topic_v3_and_below_13: Any = ()
    if version <= 3:
        size, at, left = read_compact_count(
            data, at, left, 3, "AddPartitionsToTxnResponse.results_by_topic_v3_and_below"
        )
        results_by_topic_v3_and_below_13 = None if size < 0 else []
        for _ in range(size):
            name_15, at = read_compact_string(data, at)
            if name_15 is None:
                raise null_in("AddPartitionsToTxnResponse.name")
            size, at, left = read_compact_count(
                data, at, left, 7, "AddPartitionsToTxnResponse.results_by_partition"
            )
            results_by_partition_16: Any = None if size < 0 else []
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
            if results_by_partition_16 is None:
                raise null_in("AddPartitionsToTxnResponse.results_by_partition")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item14 = _new(AddPartitionsToTxnTopicResult, (name_15, results_by_partition_16))
            results_by_topic_v3_and_below_13.append(item14)
        if results_by_topic_v3_and_below_13 is None:
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
        write_compact_count(out, results_by_transaction_1)
        for item2 in results_by_transaction_1 or ():
            write_compact_string(out, item2.transactional_id)
            topic_results_3 = item2.topic_results
            write_compact_count(out, topic_results_3)
            for item4 in topic_results_3 or ():
                write_compact_string(out, item4.name)
                results_by_partition_5 = item4.results_by_partition
                write_compact_count(out, results_by_partition_5)
                for item6 in results_by_partition_5 or ():
                    out += _IHX.pack(item6.partition_index, item6.partition_error_code)
                out.append(0)
            out.append(0)
    if version <= 3:
        results_by_topic_v3_and_below_7 = body.results_by_topic_v3_and_below
        write_compact_count(out, results_by_topic_v3_and_below_7)
        for item8 in results_by_topic_v3_and_below_7 or ():
            write_compact_string(out, item8.name)
            results_by_partition_9 = item8.results_by_partition
            write_compact_count(out, results_by_partition_9)
            for item10 in results_by_partition_9 or ():
                out += _IHX.pack(item10.partition_index, item10.partition_error_code)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
