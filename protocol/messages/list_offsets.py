"""ListOffsets (2), versions 1 to 11. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    BYTES,
    NamedTuple,
    _new,
    long_varint,
    null_in,
    read_compact_string,
    skip_tags,
    too_many,
    varint,
)

_B = Struct(">b")
_H = Struct(">h")
_I = Struct(">i")
_IB = Struct(">ib")
_IHQQ = Struct(">ihqq")
_IHQQI = Struct(">ihqqi")
_IHQQIX = Struct(">ihqqix")
_IIQ = Struct(">iiq")
_IIQX = Struct(">iiqx")
_Q = Struct(">q")


class ListOffsetsPartition(NamedTuple):
    """ListOffsetsPartition of ListOffsets."""

    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0


class ListOffsetsTopic(NamedTuple):
    """ListOffsetsTopic of ListOffsets."""

    name: str = ""
    partitions: Sequence[ListOffsetsPartition] = ()


class ListOffsetsRequest(NamedTuple):
    """ListOffsets request, v1-11."""

    replica_id: int = 0
    isolation_level: int = 0
    topics: Sequence[ListOffsetsTopic] = ()
    timeout_ms: int = 0

    @staticmethod
    def response_type() -> type[ListOffsetsResponse]:
        return ListOffsetsResponse


ListOffsetsRequest.API_KEY = 2  # type: ignore[attr-defined]


class ListOffsetsPartitionResponse(NamedTuple):
    """ListOffsetsPartitionResponse of ListOffsets."""

    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class ListOffsetsTopicResponse(NamedTuple):
    """ListOffsetsTopicResponse of ListOffsets."""

    name: str = ""
    partitions: Sequence[ListOffsetsPartitionResponse] = ()


class ListOffsetsResponse(NamedTuple):
    """ListOffsets response, v1-11."""

    throttle_time_ms: int = 0
    topics: Sequence[ListOffsetsTopicResponse] = ()


ListOffsetsResponse.API_KEY = 2  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[ListOffsetsRequest, int]:
    (replica_id_1,) = _I.unpack_from(data, at)
    at += 4
    isolation_level_2: Any = 0
    if version >= 2:
        (isolation_level_2,) = _B.unpack_from(data, at)
        at += 1
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("ListOffsetsRequest.topics", size, left)
        topics_3: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListOffsetsRequest.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 12 or left < 0:
                    raise too_many("ListOffsetsRequest.partitions", size, left)
                partitions_6: Any = []
                for _ in range(size):
                    (partition_index_8,) = _I.unpack_from(data, at)
                    at += 4
                    current_leader_epoch_9: Any = -1
                    if version >= 4:
                        (current_leader_epoch_9,) = _I.unpack_from(data, at)
                        at += 4
                    (timestamp_10,) = _Q.unpack_from(data, at)
                    at += 8
                    item7 = _new(
                        ListOffsetsPartition, (partition_index_8, current_leader_epoch_9, timestamp_10)
                    )
                    partitions_6.append(item7)
            else:
                raise null_in("ListOffsetsRequest.partitions")
            item4 = _new(ListOffsetsTopic, (name_5, partitions_6))
            topics_3.append(item4)
    else:
        raise null_in("ListOffsetsRequest.topics")
    return _new(ListOffsetsRequest, (replica_id_1, isolation_level_2, topics_3, 0)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.replica_id)
    if version >= 2:
        out += _B.pack(body.isolation_level)
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(topics_1))
        for item2 in topics_1:
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
                for item4 in partitions_3:
                    out += _I.pack(item4.partition_index)
                    if version >= 4:
                        out += _I.pack(item4.current_leader_epoch)
                    out += _Q.pack(item4.timestamp)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[ListOffsetsRequest, int]:
    replica_id_1, isolation_level_2 = _IB.unpack_from(data, at)
    at += 5
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("ListOffsetsRequest.topics", size, left)
        topics_3: Any = []
        for _ in range(size):
            size = data[at]
            if 0 < size < 128:
                end = at + size
                name_5 = data[at + 1 : end].decode()
                at = end
            else:
                name_5, at = read_compact_string(data, at)
                if name_5 is None:
                    raise null_in("ListOffsetsRequest.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 17 or left < 0:
                    raise too_many("ListOffsetsRequest.partitions", size, left)
                end = at + 17 * size
                if size > 1 and data[at + 16 : end : 17] == b"\x00" * size:
                    partitions_6: Any = [
                        _new(ListOffsetsPartition, (partition_index_, current_leader_epoch_, timestamp_))
                        for partition_index_, current_leader_epoch_, timestamp_ in _IIQX.iter_unpack(
                            data[at:end]
                        )
                    ]
                    at = end
                else:
                    partitions_6 = []
                    for _ in range(size):
                        partition_index_8, current_leader_epoch_9, timestamp_10 = _IIQ.unpack_from(data, at)
                        at += 16
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item7 = _new(
                            ListOffsetsPartition, (partition_index_8, current_leader_epoch_9, timestamp_10)
                        )
                        partitions_6.append(item7)
            else:
                raise null_in("ListOffsetsRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item4 = _new(ListOffsetsTopic, (name_5, partitions_6))
            topics_3.append(item4)
    else:
        raise null_in("ListOffsetsRequest.topics")
    timeout_ms_11: Any = 0
    if version >= 10:
        (timeout_ms_11,) = _I.unpack_from(data, at)
        at += 4
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListOffsetsRequest, (replica_id_1, isolation_level_2, topics_3, timeout_ms_11)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IB.pack(body.replica_id, body.isolation_level)
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
                out += b"".join(
                    [
                        _IIQX.pack(item4.partition_index, item4.current_leader_epoch, item4.timestamp)
                        for item4 in partitions_3
                    ]
                )
            out.append(0)
    if version >= 10:
        out += _I.pack(body.timeout_ms)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 6 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 6 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[ListOffsetsResponse, int]:
    throttle_time_ms_1: Any = 0
    if version >= 2:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("ListOffsetsResponse.topics", size, left)
        topics_2: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ListOffsetsResponse.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 22 or left < 0:
                    raise too_many("ListOffsetsResponse.partitions", size, left)
                partitions_5: Any = []
                for _ in range(size):
                    partition_index_7, error_code_8, timestamp_9, offset_10 = _IHQQ.unpack_from(data, at)
                    at += 22
                    leader_epoch_11: Any = -1
                    if version >= 4:
                        (leader_epoch_11,) = _I.unpack_from(data, at)
                        at += 4
                    item6 = _new(
                        ListOffsetsPartitionResponse,
                        (partition_index_7, error_code_8, timestamp_9, offset_10, leader_epoch_11),
                    )
                    partitions_5.append(item6)
            else:
                raise null_in("ListOffsetsResponse.partitions")
            item3 = _new(ListOffsetsTopicResponse, (name_4, partitions_5))
            topics_2.append(item3)
    else:
        raise null_in("ListOffsetsResponse.topics")
    return _new(ListOffsetsResponse, (throttle_time_ms_1, topics_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 2:
        out += _I.pack(body.throttle_time_ms)
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(topics_1))
        for item2 in topics_1:
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
                for item4 in partitions_3:
                    out += _IHQQ.pack(item4.partition_index, item4.error_code, item4.timestamp, item4.offset)
                    if version >= 4:
                        out += _I.pack(item4.leader_epoch)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[ListOffsetsResponse, int]:
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
            raise too_many("ListOffsetsResponse.topics", size, left)
        topics_2: Any = []
        for _ in range(size):
            size = data[at]
            if 0 < size < 128:
                end = at + size
                name_4 = str(data[at + 1 : end], "utf-8")
                at = end
            else:
                name_4, at = read_compact_string(data, at)
                if name_4 is None:
                    raise null_in("ListOffsetsResponse.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 27 or left < 0:
                    raise too_many("ListOffsetsResponse.partitions", size, left)
                end = at + 27 * size
                if size > 1 and data[at + 26 : end : 27] == b"\x00" * size:
                    partitions_5: Any = [
                        _new(
                            ListOffsetsPartitionResponse,
                            (partition_index_, error_code_, timestamp_, offset_, leader_epoch_),
                        )
                        for partition_index_, error_code_, timestamp_, offset_, leader_epoch_ in _IHQQIX.iter_unpack(
                            data[at:end]
                        )
                    ]
                    at = end
                else:
                    partitions_5 = []
                    for _ in range(size):
                        partition_index_7, error_code_8, timestamp_9, offset_10, leader_epoch_11 = (
                            _IHQQI.unpack_from(data, at)
                        )
                        at += 26
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item6 = _new(
                            ListOffsetsPartitionResponse,
                            (partition_index_7, error_code_8, timestamp_9, offset_10, leader_epoch_11),
                        )
                        partitions_5.append(item6)
            else:
                raise null_in("ListOffsetsResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(ListOffsetsTopicResponse, (name_4, partitions_5))
            topics_2.append(item3)
    else:
        raise null_in("ListOffsetsResponse.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ListOffsetsResponse, (throttle_time_ms_1, topics_2)), at


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
                out += b"".join(
                    [
                        _IHQQIX.pack(
                            item4.partition_index,
                            item4.error_code,
                            item4.timestamp,
                            item4.offset,
                            item4.leader_epoch,
                        )
                        for item4 in partitions_3
                    ]
                )
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 6 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 6 else _write_response_classic
