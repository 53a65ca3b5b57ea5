"""InitializeShareGroupState (83), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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

_T = Struct(">?")
_I = Struct(">i")
_IH = Struct(">ih")
_IIQ = Struct(">iiq")
_Q = Struct(">q")


class PartitionData(NamedTuple):
    """PartitionData of InitializeShareGroupState."""

    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0
    order: int = -1
    coordinator_epoch: int = -1
    keeps_state: bool = False


class InitializeStateData(NamedTuple):
    """InitializeStateData of InitializeShareGroupState."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class InitializeShareGroupStateRequest(NamedTuple):
    """InitializeShareGroupState request, v0-0."""

    group_id: str = ""
    topics: Sequence[InitializeStateData] = ()

    @staticmethod
    def response_type() -> type[InitializeShareGroupStateResponse]:
        return InitializeShareGroupStateResponse


InitializeShareGroupStateRequest.API_KEY = 83  # type: ignore[attr-defined]


class PartitionResult(NamedTuple):
    """PartitionResult of InitializeShareGroupState."""

    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


class InitializeStateResult(NamedTuple):
    """InitializeStateResult of InitializeShareGroupState."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionResult] = ()


class InitializeShareGroupStateResponse(NamedTuple):
    """InitializeShareGroupState response, v0-0."""

    results: Sequence[InitializeStateResult] = ()


InitializeShareGroupStateResponse.API_KEY = 83  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[InitializeShareGroupStateRequest, int]:
    del version
    group_id_1, at = read_compact_string(data, at)
    if group_id_1 is None:
        raise null_in("InitializeShareGroupStateRequest.group_id")
    size, at, left = read_compact_count(data, at, left, 18, "InitializeShareGroupStateRequest.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_id_4 = read_uuid(data[at : at + 16])
        at += 16
        size, at, left = read_compact_count(data, at, left, 17, "InitializeShareGroupStateRequest.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_7, state_epoch_8, start_offset_9 = _IIQ.unpack_from(data, at)
            at += 16
            order_10: Any = -1
            coordinator_epoch_11: Any = -1
            keeps_state_12: Any = False
            if data[at]:
                tags, at = read_tags(data, at)
                for tag13, start, stop in tags:
                    if tag13 == 10000:
                        at = start
                        (order_10,) = _Q.unpack_from(data, at)
                        at += 8
                        if at != stop:
                            raise malformed("a tagged field of another length than it says")
                    elif tag13 == 10001:
                        at = start
                        (coordinator_epoch_11,) = _I.unpack_from(data, at)
                        at += 4
                        if at != stop:
                            raise malformed("a tagged field of another length than it says")
                    elif tag13 == 10002:
                        at = start
                        (keeps_state_12,) = _T.unpack_from(data, at)
                        at += 1
                        if at != stop:
                            raise malformed("a tagged field of another length than it says")
                    at = stop
            else:
                at += 1
            item6 = _new(
                PartitionData,
                (partition_7, state_epoch_8, start_offset_9, order_10, coordinator_epoch_11, keeps_state_12),
            )
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("InitializeShareGroupStateRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(InitializeStateData, (topic_id_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("InitializeShareGroupStateRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(InitializeShareGroupStateRequest, (group_id_1, topics_2)), at


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
            out += _IIQ.pack(item4.partition, item4.state_epoch, item4.start_offset)
            tags5 = []
            order_6 = getattr(item4, "order", -1)
            if order_6 != -1:
                whole7, out = out, bytearray()
                out += _Q.pack(order_6)
                tags5.append((10000, out))
                out = whole7
            coordinator_epoch_8 = getattr(item4, "coordinator_epoch", -1)
            if coordinator_epoch_8 != -1:
                whole9, out = out, bytearray()
                out += _I.pack(coordinator_epoch_8)
                tags5.append((10001, out))
                out = whole9
            keeps_state_10 = getattr(item4, "keeps_state", False)
            if keeps_state_10:
                whole11, out = out, bytearray()
                out += _T.pack(keeps_state_10)
                tags5.append((10002, out))
                out = whole11
            write_tags(out, tags5)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[InitializeShareGroupStateResponse, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 18, "InitializeShareGroupStateResponse.results")
    results_1: Any = None if size < 0 else []
    for _ in range(size):
        topic_id_3 = read_uuid(data[at : at + 16])
        at += 16
        size, at, left = read_compact_count(data, at, left, 8, "InitializeShareGroupStateResponse.partitions")
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
            raise null_in("InitializeShareGroupStateResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(InitializeStateResult, (topic_id_3, partitions_4))
        results_1.append(item2)
    if results_1 is None:
        raise null_in("InitializeShareGroupStateResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(InitializeShareGroupStateResponse, (results_1,)), at


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
