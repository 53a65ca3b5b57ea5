"""WriteTxnMarkers (27), versions 1 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from ._wire import (
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

_B = Struct(">b")
_I = Struct(">i")
_IH = Struct(">ih")
_IHX = Struct(">ihx")
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


WriteTxnMarkersRequest.API_KEY = 27  # type: ignore[attr-defined]


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


WriteTxnMarkersResponse.API_KEY = 27  # type: ignore[attr-defined]


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[WriteTxnMarkersRequest, int]:
    size, at, left = read_compact_count(data, at, left, 17, "WriteTxnMarkersRequest.markers")
    markers_1: Any = None if size < 0 else []
    for _ in range(size):
        producer_id_3, producer_epoch_4, transaction_result_5 = _QHT.unpack_from(data, at)
        at += 11
        size, at, left = read_compact_count(data, at, left, 3, "WriteTxnMarkersRequest.topics")
        topics_6: Any = None if size < 0 else []
        for _ in range(size):
            name_8, at = read_compact_string(data, at)
            if name_8 is None:
                raise null_in("WriteTxnMarkersRequest.name")
            size, at, left = read_compact_count(data, at, left, 4, "WriteTxnMarkersRequest.partition_indexes")
            partition_indexes_9 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if partition_indexes_9 is None:
                raise null_in("WriteTxnMarkersRequest.partition_indexes")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item7 = _new(WritableTxnMarkerTopic, (name_8, partition_indexes_9))
            topics_6.append(item7)
        if topics_6 is None:
            raise null_in("WriteTxnMarkersRequest.topics")
        (coordinator_epoch_10,) = _I.unpack_from(data, at)
        at += 4
        transaction_version_11: Any = 0
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
    if markers_1 is None:
        raise null_in("WriteTxnMarkersRequest.markers")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(WriteTxnMarkersRequest, (markers_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    markers_1 = body.markers
    write_compact_count(out, markers_1)
    for item2 in markers_1 or ():
        out += _QHT.pack(item2.producer_id, item2.producer_epoch, item2.transaction_result)
        topics_3 = item2.topics
        write_compact_count(out, topics_3)
        for item4 in topics_3 or ():
            write_compact_string(out, item4.name)
            partition_indexes_5 = item4.partition_indexes
            write_compact_count(out, partition_indexes_5)
            out += pack(f">{len(partition_indexes_5 or ())}i", *(partition_indexes_5 or ()))
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
    size, at, left = read_compact_count(data, at, left, 10, "WriteTxnMarkersResponse.markers")
    markers_1: Any = None if size < 0 else []
    for _ in range(size):
        (producer_id_3,) = _Q.unpack_from(data, at)
        at += 8
        size, at, left = read_compact_count(data, at, left, 3, "WriteTxnMarkersResponse.topics")
        topics_4: Any = None if size < 0 else []
        for _ in range(size):
            name_6, at = read_compact_string(data, at)
            if name_6 is None:
                raise null_in("WriteTxnMarkersResponse.name")
            size, at, left = read_compact_count(data, at, left, 7, "WriteTxnMarkersResponse.partitions")
            partitions_7: Any = None if size < 0 else []
            for _ in range(size):
                partition_index_9, error_code_10 = _IH.unpack_from(data, at)
                at += 6
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item8 = _new(WritableTxnMarkerPartitionResult, (partition_index_9, error_code_10))
                partitions_7.append(item8)
            if partitions_7 is None:
                raise null_in("WriteTxnMarkersResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(WritableTxnMarkerTopicResult, (name_6, partitions_7))
            topics_4.append(item5)
        if topics_4 is None:
            raise null_in("WriteTxnMarkersResponse.topics")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(WritableTxnMarkerResult, (producer_id_3, topics_4))
        markers_1.append(item2)
    if markers_1 is None:
        raise null_in("WriteTxnMarkersResponse.markers")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(WriteTxnMarkersResponse, (markers_1,)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    markers_1 = body.markers
    write_compact_count(out, markers_1)
    for item2 in markers_1 or ():
        out += _Q.pack(item2.producer_id)
        topics_3 = item2.topics
        write_compact_count(out, topics_3)
        for item4 in topics_3 or ():
            write_compact_string(out, item4.name)
            partitions_5 = item4.partitions
            write_compact_count(out, partitions_5)
            for item6 in partitions_5 or ():
                out += _IHX.pack(item6.partition_index, item6.error_code)
            out.append(0)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
