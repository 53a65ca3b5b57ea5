"""DescribeTopicPartitions (75), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

from ._wire import (
    _new,
    BYTES,
    long_varint,
    malformed,
    NO_UUID,
    null_in,
    pack,
    read_uuid,
    skip_tags,
    too_many,
    unpack_from,
    varint,
)

_T = Struct(">?")
_H = Struct(">h")
_HIII = Struct(">hiii")
_I = Struct(">i")


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


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeTopicPartitionsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("DescribeTopicPartitionsRequest.topics", size, left)
        topics_1 = []
        for _ in range(size):
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                name_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeTopicPartitionsRequest.name")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(TopicRequest, (name_3,))
            topics_1.append(item2)
    else:
        raise null_in("DescribeTopicPartitionsRequest.topics")
    (response_partition_limit_4,) = _I.unpack_from(data, at)
    at += 4
    present = data[at]
    at += 1
    if present > 127:
        cursor_5 = None
    else:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            if size > 32767:
                raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
            end = at + size
            topic_name_6 = str(data[at:end], "utf-8")
            at = end
        else:
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
            out.append(0)
    out += _I.pack(body.response_partition_limit)
    cursor_3 = body.cursor
    if cursor_3 is None:
        out.append(255)
    else:
        out.append(1)
        value = cursor_3.topic_name
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
        out += _I.pack(cursor_3.partition_index)
        out.append(0)
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
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 26 or left < 0:
            raise too_many("DescribeTopicPartitionsResponse.topics", size, left)
        topics_2 = []
        for _ in range(size):
            (error_code_4,) = _H.unpack_from(data, at)
            at += 2
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                name_5 = str(data[at:end], "utf-8")
                at = end
            elif size == -1:
                name_5 = None
            else:
                raise malformed("a negative length")
            topic_id_6 = read_uuid(data[at : at + 16])
            at += 16
            (is_internal_7,) = _T.unpack_from(data, at)
            at += 1
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 20 or left < 0:
                    raise too_many("DescribeTopicPartitionsResponse.partitions", size, left)
                partitions_8 = []
                for _ in range(size):
                    error_code_10, partition_index_11, leader_id_12, leader_epoch_13 = _HIII.unpack_from(
                        data, at
                    )
                    at += 14
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("DescribeTopicPartitionsResponse.replica_nodes", size, left)
                        replica_nodes_14 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("DescribeTopicPartitionsResponse.replica_nodes")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("DescribeTopicPartitionsResponse.isr_nodes", size, left)
                        isr_nodes_15 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("DescribeTopicPartitionsResponse.isr_nodes")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many(
                                "DescribeTopicPartitionsResponse.eligible_leader_replicas", size, left
                            )
                        eligible_leader_replicas_16 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    elif size == -1:
                        eligible_leader_replicas_16 = None
                    else:
                        raise malformed("a negative length")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("DescribeTopicPartitionsResponse.last_known_elr", size, left)
                        last_known_elr_17 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    elif size == -1:
                        last_known_elr_17 = None
                    else:
                        raise malformed("a negative length")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("DescribeTopicPartitionsResponse.offline_replicas", size, left)
                        offline_replicas_18 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
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
            else:
                raise null_in("DescribeTopicPartitionsResponse.partitions")
            (topic_authorized_operations_19,) = _I.unpack_from(data, at)
            at += 4
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(
                DescribeTopicPartitionsResponseTopic,
                (
                    error_code_4,
                    name_5,
                    topic_id_6,
                    is_internal_7,
                    partitions_8,
                    topic_authorized_operations_19,
                ),
            )
            topics_2.append(item3)
    else:
        raise null_in("DescribeTopicPartitionsResponse.topics")
    present = data[at]
    at += 1
    if present > 127:
        next_cursor_20 = None
    else:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            if size > 32767:
                raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
            end = at + size
            topic_name_21 = str(data[at:end], "utf-8")
            at = end
        else:
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
    if topics_1 is None:
        out += b"\x00"
    else:
        size = len(topics_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topics_1:
            out += _H.pack(item2.error_code)
            value = item2.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            uuid = item2.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
            out += _T.pack(item2.is_internal)
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\x00"
            else:
                size = len(partitions_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in partitions_3:
                    out += _HIII.pack(
                        item4.error_code, item4.partition_index, item4.leader_id, item4.leader_epoch
                    )
                    replica_nodes_5 = item4.replica_nodes
                    if replica_nodes_5 is None:
                        out += b"\x00"
                    else:
                        size = len(replica_nodes_5) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += pack(f">{len(replica_nodes_5)}i", *replica_nodes_5)
                    isr_nodes_7 = item4.isr_nodes
                    if isr_nodes_7 is None:
                        out += b"\x00"
                    else:
                        size = len(isr_nodes_7) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += pack(f">{len(isr_nodes_7)}i", *isr_nodes_7)
                    eligible_leader_replicas_9 = item4.eligible_leader_replicas
                    if eligible_leader_replicas_9 is None:
                        out += b"\x00"
                    else:
                        size = len(eligible_leader_replicas_9) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += pack(f">{len(eligible_leader_replicas_9)}i", *eligible_leader_replicas_9)
                    last_known_elr_11 = item4.last_known_elr
                    if last_known_elr_11 is None:
                        out += b"\x00"
                    else:
                        size = len(last_known_elr_11) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += pack(f">{len(last_known_elr_11)}i", *last_known_elr_11)
                    offline_replicas_13 = item4.offline_replicas
                    if offline_replicas_13 is None:
                        out += b"\x00"
                    else:
                        size = len(offline_replicas_13) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += pack(f">{len(offline_replicas_13)}i", *offline_replicas_13)
                    out.append(0)
            out += _I.pack(item2.topic_authorized_operations)
            out.append(0)
    next_cursor_15 = body.next_cursor
    if next_cursor_15 is None:
        out.append(255)
    else:
        out.append(1)
        value = next_cursor_15.topic_name
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
        out += _I.pack(next_cursor_15.partition_index)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
