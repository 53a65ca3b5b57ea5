"""DescribeProducers (61), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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

_I = Struct(">i")
_IH = Struct(">ih")
_QIIQIQ = Struct(">qiiqiq")


class TopicRequest(NamedTuple):
    """TopicRequest of DescribeProducers."""

    name: str = ""
    partition_indexes: Sequence[int] = ()


class DescribeProducersRequest(NamedTuple):
    """DescribeProducers request, v0-0."""

    topics: Sequence[TopicRequest] = ()


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


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeProducersRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("DescribeProducersRequest.topics", size, left)
        topics_1 = []
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
                name_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeProducersRequest.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("DescribeProducersRequest.partition_indexes", size, left)
                partition_indexes_4 = list(unpack_from(f">{size}i", data, at))
                at += 4 * size
            else:
                raise null_in("DescribeProducersRequest.partition_indexes")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(TopicRequest, (name_3, partition_indexes_4))
            topics_1.append(item2)
    else:
        raise null_in("DescribeProducersRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeProducersRequest, (topics_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\x00"
    else:
        size = len(topics_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topics_1:
            value = item2.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            partition_indexes_3 = item2.partition_indexes
            if partition_indexes_3 is None:
                out += b"\x00"
            else:
                size = len(partition_indexes_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += pack(f">{len(partition_indexes_3)}i", *partition_indexes_3)
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
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("DescribeProducersResponse.topics", size, left)
        topics_2 = []
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
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeProducersResponse.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 9 or left < 0:
                    raise too_many("DescribeProducersResponse.partitions", size, left)
                partitions_5 = []
                for _ in range(size):
                    partition_index_7, error_code_8 = _IH.unpack_from(data, at)
                    at += 6
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        error_message_9 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        error_message_9 = None
                    else:
                        raise malformed("a negative length")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 37 or left < 0:
                            raise too_many("DescribeProducersResponse.active_producers", size, left)
                        active_producers_10 = []
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
                    else:
                        raise null_in("DescribeProducersResponse.active_producers")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item6 = _new(
                        PartitionResponse,
                        (partition_index_7, error_code_8, error_message_9, active_producers_10),
                    )
                    partitions_5.append(item6)
            else:
                raise null_in("DescribeProducersResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(TopicResponse, (name_4, partitions_5))
            topics_2.append(item3)
    else:
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
    if topics_1 is None:
        out += b"\x00"
    else:
        size = len(topics_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topics_1:
            value = item2.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\x00"
            else:
                size = len(partitions_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in partitions_3:
                    out += _IH.pack(item4.partition_index, item4.error_code)
                    value = item4.error_message
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    active_producers_5 = item4.active_producers
                    if active_producers_5 is None:
                        out += b"\x00"
                    else:
                        size = len(active_producers_5) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        for item6 in active_producers_5:
                            out += _QIIQIQ.pack(
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
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
