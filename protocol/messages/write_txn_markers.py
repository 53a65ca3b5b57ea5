"""WriteTxnMarkers (27), versions 1 to 2. Written by scripts/generate_messages.py: do not edit."""

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

_B = Struct(">b")
_I = Struct(">i")
_IH = Struct(">ih")
_Q = Struct(">q")
_QHT = Struct(">qh?")


class WritableTxnMarkerTopic(NamedTuple):
    """WritableTxnMarkerTopic of WriteTxnMarkers."""

    name: str = ""
    partition_indexes: Sequence[int] = ()


class WritableTxnMarker(NamedTuple):
    """WritableTxnMarker of WriteTxnMarkers."""

    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: Sequence[WritableTxnMarkerTopic] = ()
    coordinator_epoch: int = 0
    transaction_version: int = 0


class WriteTxnMarkersRequest(NamedTuple):
    """WriteTxnMarkers request, v1-2."""

    markers: Sequence[WritableTxnMarker] = ()


class WritableTxnMarkerPartitionResult(NamedTuple):
    """WritableTxnMarkerPartitionResult of WriteTxnMarkers."""

    partition_index: int = 0
    error_code: int = 0


class WritableTxnMarkerTopicResult(NamedTuple):
    """WritableTxnMarkerTopicResult of WriteTxnMarkers."""

    name: str = ""
    partitions: Sequence[WritableTxnMarkerPartitionResult] = ()


class WritableTxnMarkerResult(NamedTuple):
    """WritableTxnMarkerResult of WriteTxnMarkers."""

    producer_id: int = 0
    topics: Sequence[WritableTxnMarkerTopicResult] = ()


class WriteTxnMarkersResponse(NamedTuple):
    """WriteTxnMarkers response, v1-2."""

    markers: Sequence[WritableTxnMarkerResult] = ()


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[WriteTxnMarkersRequest, int]:
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 17 or left < 0:
            raise too_many("WriteTxnMarkersRequest.markers", size, left)
        markers_1 = []
        for _ in range(size):
            producer_id_3, producer_epoch_4, transaction_result_5 = _QHT.unpack_from(data, at)
            at += 11
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 3 or left < 0:
                    raise too_many("WriteTxnMarkersRequest.topics", size, left)
                topics_6 = []
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
                        raise null_in("WriteTxnMarkersRequest.name")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("WriteTxnMarkersRequest.partition_indexes", size, left)
                        partition_indexes_9 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("WriteTxnMarkersRequest.partition_indexes")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item7 = _new(WritableTxnMarkerTopic, (name_8, partition_indexes_9))
                    topics_6.append(item7)
            else:
                raise null_in("WriteTxnMarkersRequest.topics")
            (coordinator_epoch_10,) = _I.unpack_from(data, at)
            at += 4
            transaction_version_11 = 0
            if version >= 2:
                (transaction_version_11,) = _B.unpack_from(data, at)
                at += 1
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(
                WritableTxnMarker,
                (
                    producer_id_3,
                    producer_epoch_4,
                    transaction_result_5,
                    topics_6,
                    coordinator_epoch_10,
                    transaction_version_11,
                ),
            )
            markers_1.append(item2)
    else:
        raise null_in("WriteTxnMarkersRequest.markers")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(WriteTxnMarkersRequest, (markers_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    markers_1 = body.markers
    if markers_1 is None:
        out += b"\x00"
    else:
        size = len(markers_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in markers_1:
            out += _QHT.pack(item2.producer_id, item2.producer_epoch, item2.transaction_result)
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
                    partition_indexes_5 = item4.partition_indexes
                    if partition_indexes_5 is None:
                        out += b"\x00"
                    else:
                        size = len(partition_indexes_5) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += pack(f">{len(partition_indexes_5)}i", *partition_indexes_5)
                    out.append(0)
            out += _I.pack(item2.coordinator_epoch)
            if version >= 2:
                out += _B.pack(item2.transaction_version)
            out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[WriteTxnMarkersResponse, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 10 or left < 0:
            raise too_many("WriteTxnMarkersResponse.markers", size, left)
        markers_1 = []
        for _ in range(size):
            (producer_id_3,) = _Q.unpack_from(data, at)
            at += 8
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 3 or left < 0:
                    raise too_many("WriteTxnMarkersResponse.topics", size, left)
                topics_4 = []
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
                        name_6 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("WriteTxnMarkersResponse.name")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 7 or left < 0:
                            raise too_many("WriteTxnMarkersResponse.partitions", size, left)
                        partitions_7 = []
                        for _ in range(size):
                            partition_index_9, error_code_10 = _IH.unpack_from(data, at)
                            at += 6
                            if data[at]:
                                at = skip_tags(data, at)
                            else:
                                at += 1
                            item8 = _new(WritableTxnMarkerPartitionResult, (partition_index_9, error_code_10))
                            partitions_7.append(item8)
                    else:
                        raise null_in("WriteTxnMarkersResponse.partitions")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item5 = _new(WritableTxnMarkerTopicResult, (name_6, partitions_7))
                    topics_4.append(item5)
            else:
                raise null_in("WriteTxnMarkersResponse.topics")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(WritableTxnMarkerResult, (producer_id_3, topics_4))
            markers_1.append(item2)
    else:
        raise null_in("WriteTxnMarkersResponse.markers")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(WriteTxnMarkersResponse, (markers_1,)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    markers_1 = body.markers
    if markers_1 is None:
        out += b"\x00"
    else:
        size = len(markers_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in markers_1:
            out += _Q.pack(item2.producer_id)
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
                        for item6 in partitions_5:
                            out += _IH.pack(item6.partition_index, item6.error_code)
                            out.append(0)
                    out.append(0)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
