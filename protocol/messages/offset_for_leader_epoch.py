"""OffsetForLeaderEpoch (23), versions 2 to 4. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    null_in,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    skip_tags,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
)

_HIIQ = Struct(">hiiq")
_HIIQX = Struct(">hiiqx")
_I = Struct(">i")
_III = Struct(">iii")
_IIIX = Struct(">iiix")


class OffsetForLeaderPartition(NamedTuple):
    """OffsetForLeaderPartition of OffsetForLeaderEpoch."""

    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


class OffsetForLeaderTopic(NamedTuple):
    """OffsetForLeaderTopic of OffsetForLeaderEpoch."""

    topic: str = ""
    partitions: Sequence[OffsetForLeaderPartition] = ()


class OffsetForLeaderEpochRequest(NamedTuple):
    """OffsetForLeaderEpoch request, v2-4."""

    replica_id: int = -2
    topics: Sequence[OffsetForLeaderTopic] = ()

    @staticmethod
    def response_type() -> type[OffsetForLeaderEpochResponse]:
        return OffsetForLeaderEpochResponse


OffsetForLeaderEpochRequest.API_KEY = 23  # type: ignore[attr-defined]


class EpochEndOffset(NamedTuple):
    """EpochEndOffset of OffsetForLeaderEpoch."""

    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


class OffsetForLeaderTopicResult(NamedTuple):
    """OffsetForLeaderTopicResult of OffsetForLeaderEpoch."""

    topic: str = ""
    partitions: Sequence[EpochEndOffset] = ()


class OffsetForLeaderEpochResponse(NamedTuple):
    """OffsetForLeaderEpoch response, v2-4."""

    throttle_time_ms: int = 0
    topics: Sequence[OffsetForLeaderTopicResult] = ()


OffsetForLeaderEpochResponse.API_KEY = 23  # type: ignore[attr-defined]


def _read_request_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[OffsetForLeaderEpochRequest, int]:
    replica_id_1: Any = -2
    if version >= 3:
        (replica_id_1,) = _I.unpack_from(data, at)
        at += 4
    size, at, left = read_count(data, at, left, 6, "OffsetForLeaderEpochRequest.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_4, at = read_string(data, at)
        if topic_4 is None:
            raise null_in("OffsetForLeaderEpochRequest.topic")
        size, at, left = read_count(data, at, left, 12, "OffsetForLeaderEpochRequest.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_7, current_leader_epoch_8, leader_epoch_9 = _III.unpack_from(data, at)
            at += 12
            item6 = _new(OffsetForLeaderPartition, (partition_7, current_leader_epoch_8, leader_epoch_9))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("OffsetForLeaderEpochRequest.partitions")
        item3 = _new(OffsetForLeaderTopic, (topic_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("OffsetForLeaderEpochRequest.topics")
    return _new(OffsetForLeaderEpochRequest, (replica_id_1, topics_2)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 3:
        out += _I.pack(body.replica_id)
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.topic)
        partitions_3 = item2.partitions
        write_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _III.pack(item4.partition, item4.current_leader_epoch, item4.leader_epoch)


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[OffsetForLeaderEpochRequest, int]:
    del version
    (replica_id_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 3, "OffsetForLeaderEpochRequest.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_4, at = read_compact_string(data, at)
        if topic_4 is None:
            raise null_in("OffsetForLeaderEpochRequest.topic")
        size, at, left = read_compact_count(data, at, left, 13, "OffsetForLeaderEpochRequest.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_7, current_leader_epoch_8, leader_epoch_9 = _III.unpack_from(data, at)
            at += 12
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(OffsetForLeaderPartition, (partition_7, current_leader_epoch_8, leader_epoch_9))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("OffsetForLeaderEpochRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(OffsetForLeaderTopic, (topic_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("OffsetForLeaderEpochRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(OffsetForLeaderEpochRequest, (replica_id_1, topics_2)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.replica_id)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.topic)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IIIX.pack(item4.partition, item4.current_leader_epoch, item4.leader_epoch)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 4 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 4 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[OffsetForLeaderEpochResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 6, "OffsetForLeaderEpochResponse.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_4, at = read_string(data, at)
        if topic_4 is None:
            raise null_in("OffsetForLeaderEpochResponse.topic")
        size, at, left = read_count(data, at, left, 18, "OffsetForLeaderEpochResponse.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            error_code_7, partition_8, leader_epoch_9, end_offset_10 = _HIIQ.unpack_from(data, at)
            at += 18
            item6 = _new(EpochEndOffset, (error_code_7, partition_8, leader_epoch_9, end_offset_10))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("OffsetForLeaderEpochResponse.partitions")
        item3 = _new(OffsetForLeaderTopicResult, (topic_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("OffsetForLeaderEpochResponse.topics")
    return _new(OffsetForLeaderEpochResponse, (throttle_time_ms_1, topics_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.topic)
        partitions_3 = item2.partitions
        write_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _HIIQ.pack(item4.error_code, item4.partition, item4.leader_epoch, item4.end_offset)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[OffsetForLeaderEpochResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 3, "OffsetForLeaderEpochResponse.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_4, at = read_compact_string(data, at)
        if topic_4 is None:
            raise null_in("OffsetForLeaderEpochResponse.topic")
        size, at, left = read_compact_count(data, at, left, 19, "OffsetForLeaderEpochResponse.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            error_code_7, partition_8, leader_epoch_9, end_offset_10 = _HIIQ.unpack_from(data, at)
            at += 18
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(EpochEndOffset, (error_code_7, partition_8, leader_epoch_9, end_offset_10))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("OffsetForLeaderEpochResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(OffsetForLeaderTopicResult, (topic_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("OffsetForLeaderEpochResponse.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(OffsetForLeaderEpochResponse, (throttle_time_ms_1, topics_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.topic)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _HIIQX.pack(item4.error_code, item4.partition, item4.leader_epoch, item4.end_offset)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 4 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 4 else _write_response_classic
