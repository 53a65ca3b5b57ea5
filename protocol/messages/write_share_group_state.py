"""WriteShareGroupState (85), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any
from uuid import UUID

from .wire import (
    NO_UUID,
    NamedTuple,
    _new,
    malformed,
    null_in,
    read_compact_count,
    read_compact_string,
    read_tags,
    read_uuid,
    skip_tags,
    write_compact_count,
    write_compact_string,
    write_tags,
)

_I = Struct(">i")
_IH = Struct(">ih")
_IIIQ = Struct(">iiiq")
_Q = Struct(">q")
_QQBH = Struct(">qqbh")
_QQBHX = Struct(">qqbhx")


class StateBatch(NamedTuple):
    """StateBatch of WriteShareGroupState."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


class PartitionData(NamedTuple):
    """PartitionData of WriteShareGroupState."""

    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: Sequence[StateBatch] = ()
    created_ms: int = -1


class WriteStateData(NamedTuple):
    """WriteStateData of WriteShareGroupState."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class WriteShareGroupStateRequest(NamedTuple):
    """WriteShareGroupState request, v0-1."""

    group_id: str = ""
    topics: Sequence[WriteStateData] = ()

    @staticmethod
    def response_type() -> type[WriteShareGroupStateResponse]:
        return WriteShareGroupStateResponse


WriteShareGroupStateRequest.API_KEY = 85  # type: ignore[attr-defined]


class PartitionResult(NamedTuple):
    """PartitionResult of WriteShareGroupState."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


class WriteStateResult(NamedTuple):
    """WriteStateResult of WriteShareGroupState."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionResult] = ()


class WriteShareGroupStateResponse(NamedTuple):
    """WriteShareGroupState response, v0-1."""

    results: Sequence[WriteStateResult] = ()


WriteShareGroupStateResponse.API_KEY = 85  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[WriteShareGroupStateRequest, int]:
    group_id_1, at = read_compact_string(data, at)
    if group_id_1 is None:
        raise null_in("WriteShareGroupStateRequest.group_id")
    size, at, left = read_compact_count(data, at, left, 18, "WriteShareGroupStateRequest.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_id_4 = read_uuid(data[at : at + 16])
        at += 16
        size, at, left = read_compact_count(data, at, left, 22, "WriteShareGroupStateRequest.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_7, state_epoch_8, leader_epoch_9, start_offset_10 = _IIIQ.unpack_from(data, at)
            at += 20
            delivery_complete_count_11: Any = -1
            if version >= 1:
                (delivery_complete_count_11,) = _I.unpack_from(data, at)
                at += 4
            size, at, left = read_compact_count(
                data, at, left, 20, "WriteShareGroupStateRequest.state_batches"
            )
            state_batches_12: Any = None if size < 0 else []
            for _ in range(size):
                first_offset_14, last_offset_15, delivery_state_16, delivery_count_17 = _QQBH.unpack_from(
                    data, at
                )
                at += 19
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item13 = _new(
                    StateBatch, (first_offset_14, last_offset_15, delivery_state_16, delivery_count_17)
                )
                state_batches_12.append(item13)
            if state_batches_12 is None:
                raise null_in("WriteShareGroupStateRequest.state_batches")
            created_ms_18: Any = -1
            if data[at]:
                tags, at = read_tags(data, at)
                for tag19, start, stop in tags:
                    if tag19 == 10000:
                        at = start
                        (created_ms_18,) = _Q.unpack_from(data, at)
                        at += 8
                        if at != stop:
                            raise malformed("a tagged field of another length than it says")
                    at = stop
            else:
                at += 1
            item6 = _new(
                PartitionData,
                (
                    partition_7,
                    state_epoch_8,
                    leader_epoch_9,
                    start_offset_10,
                    delivery_complete_count_11,
                    state_batches_12,
                    created_ms_18,
                ),
            )
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("WriteShareGroupStateRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(WriteStateData, (topic_id_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("WriteShareGroupStateRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(WriteShareGroupStateRequest, (group_id_1, topics_2)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    write_compact_string(out, body.group_id)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        uuid = item2.topic_id
        out += NO_UUID if uuid is None else uuid.bytes
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IIIQ.pack(item4.partition, item4.state_epoch, item4.leader_epoch, item4.start_offset)
            if version >= 1:
                out += _I.pack(item4.delivery_complete_count)
            state_batches_5 = item4.state_batches
            write_compact_count(out, state_batches_5)
            for item6 in state_batches_5 or ():
                out += _QQBHX.pack(
                    item6.first_offset, item6.last_offset, item6.delivery_state, item6.delivery_count
                )
            tags7 = []
            created_ms_8 = getattr(item4, "created_ms", -1)
            if created_ms_8 != -1:
                whole9, out = out, bytearray()
                out += _Q.pack(created_ms_8)
                tags7.append((10000, out))
                out = whole9
            write_tags(out, tags7)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[WriteShareGroupStateResponse, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 18, "WriteShareGroupStateResponse.results")
    results_1: Any = None if size < 0 else []
    for _ in range(size):
        topic_id_3 = read_uuid(data[at : at + 16])
        at += 16
        size, at, left = read_compact_count(data, at, left, 8, "WriteShareGroupStateResponse.partitions")
        partitions_4: Any = None if size < 0 else []
        for _ in range(size):
            partition_6, error_code_7 = _IH.unpack_from(data, at)
            at += 6
            error_message_8, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(PartitionResult, (partition_6, error_code_7, error_message_8))
            partitions_4.append(item5)
        if partitions_4 is None:
            raise null_in("WriteShareGroupStateResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(WriteStateResult, (topic_id_3, partitions_4))
        results_1.append(item2)
    if results_1 is None:
        raise null_in("WriteShareGroupStateResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(WriteShareGroupStateResponse, (results_1,)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    results_1 = body.results
    write_compact_count(out, results_1)
    for item2 in results_1 or ():
        uuid = item2.topic_id
        out += NO_UUID if uuid is None else uuid.bytes
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IH.pack(item4.partition, item4.error_code)
            write_compact_string(out, item4.error_message)
            out.append(0)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
