"""WriteTxnMarkers (27), versions 1 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    malformed,
    null_in,
    pack,
    read_compact_count,
    read_compact_string,
    read_tags,
    skip_tags,
    unpack_from,
    write_compact_count,
    write_compact_string,
    write_tags,
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
    leader_epochs: Sequence[int] = ()


class WritableTxnMarker(NamedTuple):
    """WritableTxnMarker of WriteTxnMarkers."""

    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: Sequence[WritableTxnMarkerTopic] = ()
    coordinator_epoch: int = 0
    transaction_version: int = 0
    attempt: int = -1


class WriteTxnMarkersRequest(NamedTuple):
    """WriteTxnMarkers request, v1-2."""

    markers: Sequence[WritableTxnMarker] = ()

    @staticmethod
    def response_type() -> type[WriteTxnMarkersResponse]:
        return WriteTxnMarkersResponse


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
            leader_epochs_10: Any = ()
            if data[at]:
                tags, at = read_tags(data, at)
                for tag11, start, stop in tags:
                    if tag11 == 10000:
                        at = start
                        size, at, left = read_compact_count(
                            data, at, left, 4, "WriteTxnMarkersRequest.leader_epochs"
                        )
                        leader_epochs_10 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
                        at += 4 * max(size, 0)
                        if leader_epochs_10 is None:
                            raise null_in("WriteTxnMarkersRequest.leader_epochs")
                        if at != stop:
                            raise malformed("a tagged field of another length than it says")
                    at = stop
            else:
                at += 1
            item7 = _new(WritableTxnMarkerTopic, (name_8, partition_indexes_9, leader_epochs_10))
            topics_6.append(item7)
        if topics_6 is None:
            raise null_in("WriteTxnMarkersRequest.topics")
        (coordinator_epoch_12,) = _I.unpack_from(data, at)
        at += 4
        transaction_version_13: Any = 0
        if version >= 2:
            (transaction_version_13,) = _B.unpack_from(data, at)
            at += 1
        attempt_14: Any = -1
        if data[at]:
            tags, at = read_tags(data, at)
            for tag15, start, stop in tags:
                if tag15 == 10000:
                    at = start
                    (attempt_14,) = _Q.unpack_from(data, at)
                    at += 8
                    if at != stop:
                        raise malformed("a tagged field of another length than it says")
                at = stop
        else:
            at += 1
        item2 = _new(
            WritableTxnMarker,
            (
                producer_id_3,
                producer_epoch_4,
                transaction_result_5,
                topics_6,
                coordinator_epoch_12,
                transaction_version_13,
                attempt_14,
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
            tags7 = []
            leader_epochs_8 = getattr(item4, "leader_epochs", ())
            if leader_epochs_8:
                whole9, out = out, bytearray()
                leader_epochs_10 = leader_epochs_8
                write_compact_count(out, leader_epochs_10)
                out += pack(f">{len(leader_epochs_10 or ())}i", *(leader_epochs_10 or ()))
                tags7.append((10000, out))
                out = whole9
            write_tags(out, tags7)
        out += _I.pack(item2.coordinator_epoch)
        if version >= 2:
            out += _B.pack(item2.transaction_version)
        tags12 = []
        attempt_13 = getattr(item2, "attempt", -1)
        if attempt_13 != -1:
            whole14, out = out, bytearray()
            out += _Q.pack(attempt_13)
            tags12.append((10000, out))
            out = whole14
        write_tags(out, tags12)
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
