"""ReadShareGroupState (84), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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

_IH = Struct(">ih")
_II = Struct(">ii")
_IIX = Struct(">iix")
_IQ = Struct(">iq")
_Q = Struct(">q")
_QQBH = Struct(">qqbh")
_QQBHX = Struct(">qqbhx")


class PartitionData(NamedTuple):
    """PartitionData of ReadShareGroupState."""

    partition: int = 0
    leader_epoch: int = 0


class ReadStateData(NamedTuple):
    """ReadStateData of ReadShareGroupState."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class ReadShareGroupStateRequest(NamedTuple):
    """ReadShareGroupState request, v0-0."""

    group_id: str = ""
    topics: Sequence[ReadStateData] = ()

    @staticmethod
    def response_type() -> type[ReadShareGroupStateResponse]:
        return ReadShareGroupStateResponse


ReadShareGroupStateRequest.API_KEY = 84  # type: ignore[attr-defined]


class StateBatch(NamedTuple):
    """StateBatch of ReadShareGroupState."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


class PartitionResult(NamedTuple):
    """PartitionResult of ReadShareGroupState."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: Sequence[StateBatch] = ()
    created_ms: int = -1


class ReadStateResult(NamedTuple):
    """ReadStateResult of ReadShareGroupState."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionResult] = ()


class ReadShareGroupStateResponse(NamedTuple):
    """ReadShareGroupState response, v0-0."""

    results: Sequence[ReadStateResult] = ()


ReadShareGroupStateResponse.API_KEY = 84  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ReadShareGroupStateRequest, int]:
    del version
    group_id_1, at = read_compact_string(data, at)
    if group_id_1 is None:
        raise null_in("ReadShareGroupStateRequest.group_id")
    size, at, left = read_compact_count(data, at, left, 18, "ReadShareGroupStateRequest.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_id_4 = read_uuid(data[at : at + 16])
        at += 16
        size, at, left = read_compact_count(data, at, left, 9, "ReadShareGroupStateRequest.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_7, leader_epoch_8 = _II.unpack_from(data, at)
            at += 8
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(PartitionData, (partition_7, leader_epoch_8))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("ReadShareGroupStateRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(ReadStateData, (topic_id_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("ReadShareGroupStateRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ReadShareGroupStateRequest, (group_id_1, topics_2)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_string(out, body.group_id)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        uuid = item2.topic_id
        out += NO_UUID if uuid is None else uuid.bytes
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IIX.pack(item4.partition, item4.leader_epoch)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ReadShareGroupStateResponse, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 18, "ReadShareGroupStateResponse.results")
    results_1: Any = None if size < 0 else []
    for _ in range(size):
        topic_id_3 = read_uuid(data[at : at + 16])
        at += 16
        size, at, left = read_compact_count(data, at, left, 21, "ReadShareGroupStateResponse.partitions")
        partitions_4: Any = None if size < 0 else []
        for _ in range(size):
            partition_6, error_code_7 = _IH.unpack_from(data, at)
            at += 6
            error_message_8, at = read_compact_string(data, at)
            state_epoch_9, start_offset_10 = _IQ.unpack_from(data, at)
            at += 12
            size, at, left = read_compact_count(
                data, at, left, 20, "ReadShareGroupStateResponse.state_batches"
            )
            state_batches_11: Any = None if size < 0 else []
            for _ in range(size):
                first_offset_13, last_offset_14, delivery_state_15, delivery_count_16 = _QQBH.unpack_from(
                    data, at
                )
                at += 19
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item12 = _new(
                    StateBatch, (first_offset_13, last_offset_14, delivery_state_15, delivery_count_16)
                )
                state_batches_11.append(item12)
            if state_batches_11 is None:
                raise null_in("ReadShareGroupStateResponse.state_batches")
            created_ms_17: Any = -1
            if data[at]:
                tags, at = read_tags(data, at)
                for tag18, start, stop in tags:
                    if tag18 == 10000:
                        at = start
                        (created_ms_17,) = _Q.unpack_from(data, at)
                        at += 8
                        if at != stop:
                            raise malformed("a tagged field of another length than it says")
                    at = stop
            else:
                at += 1
            item5 = _new(
                PartitionResult,
                (
                    partition_6,
                    error_code_7,
                    error_message_8,
                    state_epoch_9,
                    start_offset_10,
                    state_batches_11,
                    created_ms_17,
                ),
            )
            partitions_4.append(item5)
        if partitions_4 is None:
            raise null_in("ReadShareGroupStateResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(ReadStateResult, (topic_id_3, partitions_4))
        results_1.append(item2)
    if results_1 is None:
        raise null_in("ReadShareGroupStateResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ReadShareGroupStateResponse, (results_1,)), at


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
            out += _IQ.pack(item4.state_epoch, item4.start_offset)
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


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
