"""ConsumerGroupHeartbeat (68), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

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
    pack,
    read_compact_count,
    read_compact_string,
    read_tags,
    read_uuid,
    skip_tags,
    unpack_from,
    write_compact_count,
    write_compact_string,
    write_tags,
)

_T = Struct(">?")
_I = Struct(">i")
_IH = Struct(">ih")
_II = Struct(">ii")
_IQI = Struct(">iqi")


class TopicPartitions(NamedTuple):
    """TopicPartitions of ConsumerGroupHeartbeat."""

    topic_id: UUID | None = None
    partitions: Sequence[int] = ()


class GivenUpPartition(NamedTuple):
    """GivenUpPartition of ConsumerGroupHeartbeat."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


class GivenUpTopic(NamedTuple):
    """GivenUpTopic of ConsumerGroupHeartbeat."""

    topic_id: UUID | None = None
    partitions: Sequence[GivenUpPartition] = ()


class ConsumerGroupHeartbeatRequest(NamedTuple):
    """ConsumerGroupHeartbeat request, v0-1."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: Sequence[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: Sequence[TopicPartitions] | None = None
    hold_ms: int = 0
    wants_offsets: bool = False
    gives_up: Sequence[GivenUpTopic] = ()

    @staticmethod
    def response_type() -> type[ConsumerGroupHeartbeatResponse]:
        return ConsumerGroupHeartbeatResponse


ConsumerGroupHeartbeatRequest.API_KEY = 68  # type: ignore[attr-defined]


class Assignment(NamedTuple):
    """Assignment of ConsumerGroupHeartbeat."""

    topic_partitions: Sequence[TopicPartitions] = ()


class PartitionOffset(NamedTuple):
    """PartitionOffset of ConsumerGroupHeartbeat."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""


class TopicOffsets(NamedTuple):
    """TopicOffsets of ConsumerGroupHeartbeat."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionOffset] = ()


class ConsumerGroupHeartbeatResponse(NamedTuple):
    """ConsumerGroupHeartbeat response, v0-1."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
    offsets: Sequence[TopicOffsets] = ()


ConsumerGroupHeartbeatResponse.API_KEY = 68  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ConsumerGroupHeartbeatRequest, int]:
    group_id_1, at = read_compact_string(data, at)
    if group_id_1 is None:
        raise null_in("ConsumerGroupHeartbeatRequest.group_id")
    member_id_2, at = read_compact_string(data, at)
    if member_id_2 is None:
        raise null_in("ConsumerGroupHeartbeatRequest.member_id")
    (member_epoch_3,) = _I.unpack_from(data, at)
    at += 4
    instance_id_4, at = read_compact_string(data, at)
    rack_id_5, at = read_compact_string(data, at)
    (rebalance_timeout_ms_6,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(
        data, at, left, 1, "ConsumerGroupHeartbeatRequest.subscribed_topic_names"
    )
    subscribed_topic_names_7: Any = None if size < 0 else []
    for _ in range(size):
        item8, at = read_compact_string(data, at)
        if item8 is None:
            raise null_in("ConsumerGroupHeartbeatRequest.subscribed_topic_names")
        subscribed_topic_names_7.append(item8)
    subscribed_topic_regex_9: Any = None
    if version >= 1:
        subscribed_topic_regex_9, at = read_compact_string(data, at)
    server_assignor_10, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 18, "ConsumerGroupHeartbeatRequest.topic_partitions")
    topic_partitions_11: Any = None if size < 0 else []
    for _ in range(size):
        topic_id_13 = read_uuid(data[at : at + 16])
        at += 16
        size, at, left = read_compact_count(data, at, left, 4, "ConsumerGroupHeartbeatRequest.partitions")
        partitions_14 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
        at += 4 * max(size, 0)
        if partitions_14 is None:
            raise null_in("ConsumerGroupHeartbeatRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item12 = _new(TopicPartitions, (topic_id_13, partitions_14))
        topic_partitions_11.append(item12)
    hold_ms_15: Any = 0
    wants_offsets_16: Any = False
    gives_up_17: Any = ()
    if data[at]:
        tags, at = read_tags(data, at)
        for tag18, start, stop in tags:
            if tag18 == 10000:
                at = start
                (hold_ms_15,) = _I.unpack_from(data, at)
                at += 4
                if at != stop:
                    raise malformed("a tagged field of another length than it says")
            elif tag18 == 10001:
                at = start
                (wants_offsets_16,) = _T.unpack_from(data, at)
                at += 1
                if at != stop:
                    raise malformed("a tagged field of another length than it says")
            elif tag18 == 10002:
                at = start
                size, at, left = read_compact_count(
                    data, at, left, 18, "ConsumerGroupHeartbeatRequest.gives_up"
                )
                gives_up_17 = None if size < 0 else []
                for _ in range(size):
                    topic_id_20 = read_uuid(data[at : at + 16])
                    at += 16
                    size, at, left = read_compact_count(
                        data, at, left, 18, "ConsumerGroupHeartbeatRequest.partitions"
                    )
                    partitions_21: Any = None if size < 0 else []
                    for _ in range(size):
                        partition_index_23, committed_offset_24, committed_leader_epoch_25 = _IQI.unpack_from(
                            data, at
                        )
                        at += 16
                        committed_metadata_26, at = read_compact_string(data, at)
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item22 = _new(
                            GivenUpPartition,
                            (
                                partition_index_23,
                                committed_offset_24,
                                committed_leader_epoch_25,
                                committed_metadata_26,
                            ),
                        )
                        partitions_21.append(item22)
                    if partitions_21 is None:
                        raise null_in("ConsumerGroupHeartbeatRequest.partitions")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item19 = _new(GivenUpTopic, (topic_id_20, partitions_21))
                    gives_up_17.append(item19)
                if gives_up_17 is None:
                    raise null_in("ConsumerGroupHeartbeatRequest.gives_up")
                if at != stop:
                    raise malformed("a tagged field of another length than it says")
            at = stop
    else:
        at += 1
    return _new(
        ConsumerGroupHeartbeatRequest,
        (
            group_id_1,
            member_id_2,
            member_epoch_3,
            instance_id_4,
            rack_id_5,
            rebalance_timeout_ms_6,
            subscribed_topic_names_7,
            subscribed_topic_regex_9,
            server_assignor_10,
            topic_partitions_11,
            hold_ms_15,
            wants_offsets_16,
            gives_up_17,
        ),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    write_compact_string(out, body.group_id)
    write_compact_string(out, body.member_id)
    out += _I.pack(body.member_epoch)
    write_compact_string(out, body.instance_id)
    write_compact_string(out, body.rack_id)
    out += _I.pack(body.rebalance_timeout_ms)
    subscribed_topic_names_1 = body.subscribed_topic_names
    write_compact_count(out, subscribed_topic_names_1)
    for item2 in subscribed_topic_names_1 or ():
        write_compact_string(out, item2)
    if version >= 1:
        write_compact_string(out, body.subscribed_topic_regex)
    write_compact_string(out, body.server_assignor)
    topic_partitions_3 = body.topic_partitions
    write_compact_count(out, topic_partitions_3)
    for item4 in topic_partitions_3 or ():
        uuid = item4.topic_id
        out += NO_UUID if uuid is None else uuid.bytes
        partitions_5 = item4.partitions
        write_compact_count(out, partitions_5)
        out += pack(f">{len(partitions_5 or ())}i", *(partitions_5 or ()))
        out.append(0)
    tags7 = []
    hold_ms_8 = getattr(body, "hold_ms", 0)
    if hold_ms_8 != 0:
        whole9, out = out, bytearray()
        out += _I.pack(hold_ms_8)
        tags7.append((10000, out))
        out = whole9
    wants_offsets_10 = getattr(body, "wants_offsets", False)
    if wants_offsets_10:
        whole11, out = out, bytearray()
        out += _T.pack(wants_offsets_10)
        tags7.append((10001, out))
        out = whole11
    gives_up_12 = getattr(body, "gives_up", ())
    if gives_up_12:
        whole13, out = out, bytearray()
        gives_up_14 = gives_up_12
        write_compact_count(out, gives_up_14)
        for item15 in gives_up_14 or ():
            uuid = item15.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
            partitions_16 = item15.partitions
            write_compact_count(out, partitions_16)
            for item17 in partitions_16 or ():
                out += _IQI.pack(
                    item17.partition_index, item17.committed_offset, item17.committed_leader_epoch
                )
                write_compact_string(out, item17.committed_metadata)
                out.append(0)
            out.append(0)
        tags7.append((10002, out))
        out = whole13
    write_tags(out, tags7)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ConsumerGroupHeartbeatResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    error_message_3, at = read_compact_string(data, at)
    member_id_4, at = read_compact_string(data, at)
    member_epoch_5, heartbeat_interval_ms_6 = _II.unpack_from(data, at)
    at += 8
    present = data[at]
    at += 1
    if present > 127:
        assignment_7 = None
    else:
        size, at, left = read_compact_count(
            data, at, left, 18, "ConsumerGroupHeartbeatResponse.topic_partitions"
        )
        topic_partitions_8: Any = None if size < 0 else []
        for _ in range(size):
            topic_id_10 = read_uuid(data[at : at + 16])
            at += 16
            size, at, left = read_compact_count(
                data, at, left, 4, "ConsumerGroupHeartbeatResponse.partitions"
            )
            partitions_11 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if partitions_11 is None:
                raise null_in("ConsumerGroupHeartbeatResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item9 = _new(TopicPartitions, (topic_id_10, partitions_11))
            topic_partitions_8.append(item9)
        if topic_partitions_8 is None:
            raise null_in("ConsumerGroupHeartbeatResponse.topic_partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        assignment_7 = _new(Assignment, (topic_partitions_8,))
    offsets_12: Any = ()
    if data[at]:
        tags, at = read_tags(data, at)
        for tag13, start, stop in tags:
            if tag13 == 10000:
                at = start
                size, at, left = read_compact_count(
                    data, at, left, 18, "ConsumerGroupHeartbeatResponse.offsets"
                )
                offsets_12 = None if size < 0 else []
                for _ in range(size):
                    topic_id_15 = read_uuid(data[at : at + 16])
                    at += 16
                    size, at, left = read_compact_count(
                        data, at, left, 18, "ConsumerGroupHeartbeatResponse.partitions"
                    )
                    partitions_16: Any = None if size < 0 else []
                    for _ in range(size):
                        partition_index_18, committed_offset_19, committed_leader_epoch_20 = _IQI.unpack_from(
                            data, at
                        )
                        at += 16
                        metadata_21, at = read_compact_string(data, at)
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item17 = _new(
                            PartitionOffset,
                            (partition_index_18, committed_offset_19, committed_leader_epoch_20, metadata_21),
                        )
                        partitions_16.append(item17)
                    if partitions_16 is None:
                        raise null_in("ConsumerGroupHeartbeatResponse.partitions")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item14 = _new(TopicOffsets, (topic_id_15, partitions_16))
                    offsets_12.append(item14)
                if offsets_12 is None:
                    raise null_in("ConsumerGroupHeartbeatResponse.offsets")
                if at != stop:
                    raise malformed("a tagged field of another length than it says")
            at = stop
    else:
        at += 1
    return _new(
        ConsumerGroupHeartbeatResponse,
        (
            throttle_time_ms_1,
            error_code_2,
            error_message_3,
            member_id_4,
            member_epoch_5,
            heartbeat_interval_ms_6,
            assignment_7,
            offsets_12,
        ),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    write_compact_string(out, body.error_message)
    write_compact_string(out, body.member_id)
    out += _II.pack(body.member_epoch, body.heartbeat_interval_ms)
    assignment_1 = body.assignment
    if assignment_1 is None:
        out.append(255)
    else:
        out.append(1)
        topic_partitions_2 = assignment_1.topic_partitions
        write_compact_count(out, topic_partitions_2)
        for item3 in topic_partitions_2 or ():
            uuid = item3.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
            partitions_4 = item3.partitions
            write_compact_count(out, partitions_4)
            out += pack(f">{len(partitions_4 or ())}i", *(partitions_4 or ()))
            out.append(0)
        out.append(0)
    tags6 = []
    offsets_7 = getattr(body, "offsets", ())
    if offsets_7:
        whole8, out = out, bytearray()
        offsets_9 = offsets_7
        write_compact_count(out, offsets_9)
        for item10 in offsets_9 or ():
            uuid = item10.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
            partitions_11 = item10.partitions
            write_compact_count(out, partitions_11)
            for item12 in partitions_11 or ():
                out += _IQI.pack(
                    item12.partition_index, item12.committed_offset, item12.committed_leader_epoch
                )
                write_compact_string(out, item12.metadata)
                out.append(0)
            out.append(0)
        tags6.append((10000, out))
        out = whole8
    write_tags(out, tags6)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
