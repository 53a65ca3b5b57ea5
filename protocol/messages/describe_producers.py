"""DescribeProducers (61), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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

_I = Struct(">i")
_IH = Struct(">ih")
_QIIQIQ = Struct(">qiiqiq")
_QIIQIQX = Struct(">qiiqiqx")


class TopicRequest(NamedTuple):
    """TopicRequest of DescribeProducers."""

    name: str = ""
    partition_indexes: Sequence[int] = ()


class DescribeProducersRequest(NamedTuple):
    """DescribeProducers request, v0-0."""

    topics: Sequence[TopicRequest] = ()

    @staticmethod
    def response_type() -> type[DescribeProducersResponse]:
        return DescribeProducersResponse


DescribeProducersRequest.API_KEY = 61  # type: ignore[attr-defined]


class ProducerState(NamedTuple):
    """ProducerState of DescribeProducers."""

    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


class PartitionResponse(NamedTuple):
    """PartitionResponse of DescribeProducers."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: Sequence[ProducerState] = ()


class TopicResponse(NamedTuple):
    """TopicResponse of DescribeProducers."""

    name: str = ""
    partitions: Sequence[PartitionResponse] = ()


class DescribeProducersResponse(NamedTuple):
    """DescribeProducers response, v0-0."""

    throttle_time_ms: int = 0
    topics: Sequence[TopicResponse] = ()


DescribeProducersResponse.API_KEY = 61  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeProducersRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 3, "DescribeProducersRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        name_3, at = read_compact_string(data, at)
        if name_3 is None:
            raise null_in("DescribeProducersRequest.name")
        size, at, left = read_compact_count(data, at, left, 4, "DescribeProducersRequest.partition_indexes")
        partition_indexes_4 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
        at += 4 * max(size, 0)
        if partition_indexes_4 is None:
            raise null_in("DescribeProducersRequest.partition_indexes")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(TopicRequest, (name_3, partition_indexes_4))
        topics_1.append(item2)
    if topics_1 is None:
        raise null_in("DescribeProducersRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeProducersRequest, (topics_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        partition_indexes_3 = item2.partition_indexes
        write_compact_count(out, partition_indexes_3)
        out += pack(f">{len(partition_indexes_3 or ())}i", *(partition_indexes_3 or ()))
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeProducersResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 3, "DescribeProducersResponse.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_compact_string(data, at)
        if name_4 is None:
            raise null_in("DescribeProducersResponse.name")
        size, at, left = read_compact_count(data, at, left, 9, "DescribeProducersResponse.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_7, error_code_8 = _IH.unpack_from(data, at)
            at += 6
            error_message_9, at = read_compact_string(data, at)
            size, at, left = read_compact_count(
                data, at, left, 37, "DescribeProducersResponse.active_producers"
            )
            active_producers_10: Any = None if size < 0 else []
            for _ in range(size):
                (
                    producer_id_12,
                    producer_epoch_13,
                    last_sequence_14,
                    last_timestamp_15,
                    coordinator_epoch_16,
                    current_txn_start_offset_17,
                ) = _QIIQIQ.unpack_from(data, at)
                at += 36
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item11 = _new(
                    ProducerState,
                    (
                        producer_id_12,
                        producer_epoch_13,
                        last_sequence_14,
                        last_timestamp_15,
                        coordinator_epoch_16,
                        current_txn_start_offset_17,
                    ),
                )
                active_producers_10.append(item11)
            if active_producers_10 is None:
                raise null_in("DescribeProducersResponse.active_producers")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(
                PartitionResponse, (partition_index_7, error_code_8, error_message_9, active_producers_10)
            )
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("DescribeProducersResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(TopicResponse, (name_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("DescribeProducersResponse.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeProducersResponse, (throttle_time_ms_1, topics_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IH.pack(item4.partition_index, item4.error_code)
            write_compact_string(out, item4.error_message)
            active_producers_5 = item4.active_producers
            write_compact_count(out, active_producers_5)
            for item6 in active_producers_5 or ():
                out += _QIIQIQX.pack(
                    item6.producer_id,
                    item6.producer_epoch,
                    item6.last_sequence,
                    item6.last_timestamp,
                    item6.coordinator_epoch,
                    item6.current_txn_start_offset,
                )
            out.append(0)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
