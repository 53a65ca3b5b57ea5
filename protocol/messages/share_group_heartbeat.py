"""ShareGroupHeartbeat (76), versions 1 to 1. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any
from uuid import UUID

from .wire import (
    NO_UUID,
    NamedTuple,
    _new,
    null_in,
    pack,
    read_compact_count,
    read_compact_string,
    read_uuid,
    skip_tags,
    unpack_from,
    write_compact_count,
    write_compact_string,
)

_I = Struct(">i")
_IH = Struct(">ih")
_II = Struct(">ii")


class ShareGroupHeartbeatRequest(NamedTuple):
    """ShareGroupHeartbeat request, v1-1."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    rack_id: str | None = None
    subscribed_topic_names: Sequence[str] | None = None

    @staticmethod
    def response_type() -> type[ShareGroupHeartbeatResponse]:
        return ShareGroupHeartbeatResponse


ShareGroupHeartbeatRequest.API_KEY = 76  # type: ignore[attr-defined]


class TopicPartitions(NamedTuple):
    """TopicPartitions of ShareGroupHeartbeat."""

    topic_id: UUID | None = None
    partitions: Sequence[int] = ()


class Assignment(NamedTuple):
    """Assignment of ShareGroupHeartbeat."""

    topic_partitions: Sequence[TopicPartitions] = ()


class ShareGroupHeartbeatResponse(NamedTuple):
    """ShareGroupHeartbeat response, v1-1."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


ShareGroupHeartbeatResponse.API_KEY = 76  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ShareGroupHeartbeatRequest, int]:
    del version
    group_id_1, at = read_compact_string(data, at)
    if group_id_1 is None:
        raise null_in("ShareGroupHeartbeatRequest.group_id")
    member_id_2, at = read_compact_string(data, at)
    if member_id_2 is None:
        raise null_in("ShareGroupHeartbeatRequest.member_id")
    (member_epoch_3,) = _I.unpack_from(data, at)
    at += 4
    rack_id_4, at = read_compact_string(data, at)
    size, at, left = read_compact_count(
        data, at, left, 1, "ShareGroupHeartbeatRequest.subscribed_topic_names"
    )
    subscribed_topic_names_5: Any = None if size < 0 else []
    for _ in range(size):
        item6, at = read_compact_string(data, at)
        if item6 is None:
            raise null_in("ShareGroupHeartbeatRequest.subscribed_topic_names")
        subscribed_topic_names_5.append(item6)
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        ShareGroupHeartbeatRequest,
        (group_id_1, member_id_2, member_epoch_3, rack_id_4, subscribed_topic_names_5),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_string(out, body.group_id)
    write_compact_string(out, body.member_id)
    out += _I.pack(body.member_epoch)
    write_compact_string(out, body.rack_id)
    subscribed_topic_names_1 = body.subscribed_topic_names
    write_compact_count(out, subscribed_topic_names_1)
    for item2 in subscribed_topic_names_1 or ():
        write_compact_string(out, item2)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ShareGroupHeartbeatResponse, int]:
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
            data, at, left, 18, "ShareGroupHeartbeatResponse.topic_partitions"
        )
        topic_partitions_8: Any = None if size < 0 else []
        for _ in range(size):
            topic_id_10 = read_uuid(data[at : at + 16])
            at += 16
            size, at, left = read_compact_count(data, at, left, 4, "ShareGroupHeartbeatResponse.partitions")
            partitions_11 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if partitions_11 is None:
                raise null_in("ShareGroupHeartbeatResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item9 = _new(TopicPartitions, (topic_id_10, partitions_11))
            topic_partitions_8.append(item9)
        if topic_partitions_8 is None:
            raise null_in("ShareGroupHeartbeatResponse.topic_partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        assignment_7 = _new(Assignment, (topic_partitions_8,))
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        ShareGroupHeartbeatResponse,
        (
            throttle_time_ms_1,
            error_code_2,
            error_message_3,
            member_id_4,
            member_epoch_5,
            heartbeat_interval_ms_6,
            assignment_7,
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
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
