"""DescribeTopicPartitions (75), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

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

_T = Struct(">?")
_H = Struct(">h")
_HIII = Struct(">hiii")
_I = Struct(">i")
_IX = Struct(">ix")


class TopicRequest(NamedTuple):
    """TopicRequest of DescribeTopicPartitions."""

    name: str = ""


class Cursor(NamedTuple):
    """Cursor of DescribeTopicPartitions."""

    topic_name: str = ""
    partition_index: int = 0


class DescribeTopicPartitionsRequest(NamedTuple):
    """DescribeTopicPartitions request, v0-0."""

    topics: Sequence[TopicRequest] = ()
    response_partition_limit: int = 2000
    cursor: Cursor | None = None

    @staticmethod
    def response_type() -> type[DescribeTopicPartitionsResponse]:
        return DescribeTopicPartitionsResponse


DescribeTopicPartitionsRequest.API_KEY = 75  # type: ignore[attr-defined]


class DescribeTopicPartitionsResponsePartition(NamedTuple):
    """DescribeTopicPartitionsResponsePartition of DescribeTopicPartitions."""

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    eligible_leader_replicas: Sequence[int] | None = None
    last_known_elr: Sequence[int] | None = None
    offline_replicas: Sequence[int] = ()


class DescribeTopicPartitionsResponseTopic(NamedTuple):
    """DescribeTopicPartitionsResponseTopic of DescribeTopicPartitions."""

    error_code: int = 0
    name: str | None = ""
    topic_id: UUID | None = None
    is_internal: bool = False
    partitions: Sequence[DescribeTopicPartitionsResponsePartition] = ()
    topic_authorized_operations: int = -2147483648


class DescribeTopicPartitionsResponse(NamedTuple):
    """DescribeTopicPartitions response, v0-0."""

    throttle_time_ms: int = 0
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = ()
    next_cursor: Cursor | None = None


DescribeTopicPartitionsResponse.API_KEY = 75  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeTopicPartitionsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 2, "DescribeTopicPartitionsRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        name_3, at = read_compact_string(data, at)
        if name_3 is None:
            raise null_in("DescribeTopicPartitionsRequest.name")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(TopicRequest, (name_3,))
        topics_1.append(item2)
    if topics_1 is None:
        raise null_in("DescribeTopicPartitionsRequest.topics")
    (response_partition_limit_4,) = _I.unpack_from(data, at)
    at += 4
    present = data[at]
    at += 1
    if present > 127:
        cursor_5 = None
    else:
        topic_name_6, at = read_compact_string(data, at)
        if topic_name_6 is None:
            raise null_in("DescribeTopicPartitionsRequest.topic_name")
        (partition_index_7,) = _I.unpack_from(data, at)
        at += 4
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        cursor_5 = _new(Cursor, (topic_name_6, partition_index_7))
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeTopicPartitionsRequest, (topics_1, response_partition_limit_4, cursor_5)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        out.append(0)
    out += _I.pack(body.response_partition_limit)
    cursor_3 = body.cursor
    if cursor_3 is None:
        out.append(255)
    else:
        out.append(1)
        write_compact_string(out, cursor_3.topic_name)
        out += _IX.pack(cursor_3.partition_index)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeTopicPartitionsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 26, "DescribeTopicPartitionsResponse.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        name_5, at = read_compact_string(data, at)
        topic_id_6 = read_uuid(data[at : at + 16])
        at += 16
        (is_internal_7,) = _T.unpack_from(data, at)
        at += 1
        size, at, left = read_compact_count(data, at, left, 20, "DescribeTopicPartitionsResponse.partitions")
        partitions_8: Any = None if size < 0 else []
        for _ in range(size):
            error_code_10, partition_index_11, leader_id_12, leader_epoch_13 = _HIII.unpack_from(data, at)
            at += 14
            size, at, left = read_compact_count(
                data, at, left, 4, "DescribeTopicPartitionsResponse.replica_nodes"
            )
            replica_nodes_14 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if replica_nodes_14 is None:
                raise null_in("DescribeTopicPartitionsResponse.replica_nodes")
            size, at, left = read_compact_count(
                data, at, left, 4, "DescribeTopicPartitionsResponse.isr_nodes"
            )
            isr_nodes_15 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if isr_nodes_15 is None:
                raise null_in("DescribeTopicPartitionsResponse.isr_nodes")
            size, at, left = read_compact_count(
                data, at, left, 4, "DescribeTopicPartitionsResponse.eligible_leader_replicas"
            )
            eligible_leader_replicas_16 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            size, at, left = read_compact_count(
                data, at, left, 4, "DescribeTopicPartitionsResponse.last_known_elr"
            )
            last_known_elr_17 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            size, at, left = read_compact_count(
                data, at, left, 4, "DescribeTopicPartitionsResponse.offline_replicas"
            )
            offline_replicas_18 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if offline_replicas_18 is None:
                raise null_in("DescribeTopicPartitionsResponse.offline_replicas")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item9 = _new(
                DescribeTopicPartitionsResponsePartition,
                (
                    error_code_10,
                    partition_index_11,
                    leader_id_12,
                    leader_epoch_13,
                    replica_nodes_14,
                    isr_nodes_15,
                    eligible_leader_replicas_16,
                    last_known_elr_17,
                    offline_replicas_18,
                ),
            )
            partitions_8.append(item9)
        if partitions_8 is None:
            raise null_in("DescribeTopicPartitionsResponse.partitions")
        (topic_authorized_operations_19,) = _I.unpack_from(data, at)
        at += 4
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(
            DescribeTopicPartitionsResponseTopic,
            (error_code_4, name_5, topic_id_6, is_internal_7, partitions_8, topic_authorized_operations_19),
        )
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("DescribeTopicPartitionsResponse.topics")
    present = data[at]
    at += 1
    if present > 127:
        next_cursor_20 = None
    else:
        topic_name_21, at = read_compact_string(data, at)
        if topic_name_21 is None:
            raise null_in("DescribeTopicPartitionsResponse.topic_name")
        (partition_index_22,) = _I.unpack_from(data, at)
        at += 4
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        next_cursor_20 = _new(Cursor, (topic_name_21, partition_index_22))
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeTopicPartitionsResponse, (throttle_time_ms_1, topics_2, next_cursor_20)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.name)
        uuid = item2.topic_id
        out += NO_UUID if uuid is None else uuid.bytes
        out += _T.pack(item2.is_internal)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _HIII.pack(item4.error_code, item4.partition_index, item4.leader_id, item4.leader_epoch)
            replica_nodes_5 = item4.replica_nodes
            write_compact_count(out, replica_nodes_5)
            out += pack(f">{len(replica_nodes_5 or ())}i", *(replica_nodes_5 or ()))
            isr_nodes_7 = item4.isr_nodes
            write_compact_count(out, isr_nodes_7)
            out += pack(f">{len(isr_nodes_7 or ())}i", *(isr_nodes_7 or ()))
            eligible_leader_replicas_9 = item4.eligible_leader_replicas
            write_compact_count(out, eligible_leader_replicas_9)
            out += pack(f">{len(eligible_leader_replicas_9 or ())}i", *(eligible_leader_replicas_9 or ()))
            last_known_elr_11 = item4.last_known_elr
            write_compact_count(out, last_known_elr_11)
            out += pack(f">{len(last_known_elr_11 or ())}i", *(last_known_elr_11 or ()))
            offline_replicas_13 = item4.offline_replicas
            write_compact_count(out, offline_replicas_13)
            out += pack(f">{len(offline_replicas_13 or ())}i", *(offline_replicas_13 or ()))
            out.append(0)
        out += _IX.pack(item2.topic_authorized_operations)
    next_cursor_15 = body.next_cursor
    if next_cursor_15 is None:
        out.append(255)
    else:
        out.append(1)
        write_compact_string(out, next_cursor_15.topic_name)
        out += _IX.pack(next_cursor_15.partition_index)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
