"""DescribeQuorum (55), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

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
    read_compact_count,
    read_compact_string,
    read_uuid,
    skip_tags,
    write_compact_count,
    write_compact_string,
)

_U = Struct(">H")
_UX = Struct(">Hx")
_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")
_IIQ = Struct(">iiq")
_IX = Struct(">ix")
_Q = Struct(">q")
_QQ = Struct(">qq")


class RequestPartitionData(NamedTuple):
    """RequestPartitionData of DescribeQuorum."""

    partition_index: int = 0


class RequestTopicData(NamedTuple):
    """RequestTopicData of DescribeQuorum."""

    topic_name: str = ""
    partitions: Sequence[RequestPartitionData] = ()


class DescribeQuorumRequest(NamedTuple):
    """DescribeQuorum request, v0-2."""

    topics: Sequence[RequestTopicData] = ()

    @staticmethod
    def response_type() -> type[DescribeQuorumResponse]:
        return DescribeQuorumResponse


DescribeQuorumRequest.API_KEY = 55  # type: ignore[attr-defined]


class ReplicaState(NamedTuple):
    """ReplicaState of DescribeQuorum."""

    replica_id: int = 0
    replica_directory_id: UUID | None = None
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


class ResponsePartitionData(NamedTuple):
    """ResponsePartitionData of DescribeQuorum."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: Sequence[ReplicaState] = ()
    observers: Sequence[ReplicaState] = ()


class ResponseTopicData(NamedTuple):
    """ResponseTopicData of DescribeQuorum."""

    topic_name: str = ""
    partitions: Sequence[ResponsePartitionData] = ()


class Listener(NamedTuple):
    """Listener of DescribeQuorum."""

    name: str = ""
    host: str = ""
    port: int = 0


class Node(NamedTuple):
    """Node of DescribeQuorum."""

    node_id: int = 0
    listeners: Sequence[Listener] = ()


class DescribeQuorumResponse(NamedTuple):
    """DescribeQuorum response, v0-2."""

    error_code: int = 0
    error_message: str | None = ""
    topics: Sequence[ResponseTopicData] = ()
    nodes: Sequence[Node] = ()


DescribeQuorumResponse.API_KEY = 55  # type: ignore[attr-defined]


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeQuorumRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 3, "DescribeQuorumRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        topic_name_3, at = read_compact_string(data, at)
        if topic_name_3 is None:
            raise null_in("DescribeQuorumRequest.topic_name")
        size, at, left = read_compact_count(data, at, left, 5, "DescribeQuorumRequest.partitions")
        partitions_4: Any = None if size < 0 else []
        for _ in range(size):
            (partition_index_6,) = _I.unpack_from(data, at)
            at += 4
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(RequestPartitionData, (partition_index_6,))
            partitions_4.append(item5)
        if partitions_4 is None:
            raise null_in("DescribeQuorumRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(RequestTopicData, (topic_name_3, partitions_4))
        topics_1.append(item2)
    if topics_1 is None:
        raise null_in("DescribeQuorumRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeQuorumRequest, (topics_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.topic_name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IX.pack(item4.partition_index)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeQuorumResponse, int]:
    (error_code_1,) = _H.unpack_from(data, at)
    at += 2
    error_message_2: Any = ""
    if version >= 2:
        error_message_2, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 3, "DescribeQuorumResponse.topics")
    topics_3: Any = None if size < 0 else []
    for _ in range(size):
        topic_name_5, at = read_compact_string(data, at)
        if topic_name_5 is None:
            raise null_in("DescribeQuorumResponse.topic_name")
        size, at, left = read_compact_count(data, at, left, 25, "DescribeQuorumResponse.partitions")
        partitions_6: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_8, error_code_9 = _IH.unpack_from(data, at)
            at += 6
            error_message_10: Any = ""
            if version >= 2:
                error_message_10, at = read_compact_string(data, at)
            leader_id_11, leader_epoch_12, high_watermark_13 = _IIQ.unpack_from(data, at)
            at += 16
            size, at, left = read_compact_count(data, at, left, 13, "DescribeQuorumResponse.current_voters")
            current_voters_14: Any = None if size < 0 else []
            for _ in range(size):
                (replica_id_16,) = _I.unpack_from(data, at)
                at += 4
                replica_directory_id_17: Any = None
                if version >= 2:
                    replica_directory_id_17 = read_uuid(data[at : at + 16])
                    at += 16
                (log_end_offset_18,) = _Q.unpack_from(data, at)
                at += 8
                last_fetch_timestamp_19: Any = -1
                last_caught_up_timestamp_20: Any = -1
                if version >= 1:
                    last_fetch_timestamp_19, last_caught_up_timestamp_20 = _QQ.unpack_from(data, at)
                    at += 16
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item15 = _new(
                    ReplicaState,
                    (
                        replica_id_16,
                        replica_directory_id_17,
                        log_end_offset_18,
                        last_fetch_timestamp_19,
                        last_caught_up_timestamp_20,
                    ),
                )
                current_voters_14.append(item15)
            if current_voters_14 is None:
                raise null_in("DescribeQuorumResponse.current_voters")
            size, at, left = read_compact_count(data, at, left, 13, "DescribeQuorumResponse.observers")
            observers_21: Any = None if size < 0 else []
            for _ in range(size):
                (replica_id_23,) = _I.unpack_from(data, at)
                at += 4
                replica_directory_id_24: Any = None
                if version >= 2:
                    replica_directory_id_24 = read_uuid(data[at : at + 16])
                    at += 16
                (log_end_offset_25,) = _Q.unpack_from(data, at)
                at += 8
                last_fetch_timestamp_26: Any = -1
                last_caught_up_timestamp_27: Any = -1
                if version >= 1:
                    last_fetch_timestamp_26, last_caught_up_timestamp_27 = _QQ.unpack_from(data, at)
                    at += 16
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item22 = _new(
                    ReplicaState,
                    (
                        replica_id_23,
                        replica_directory_id_24,
                        log_end_offset_25,
                        last_fetch_timestamp_26,
                        last_caught_up_timestamp_27,
                    ),
                )
                observers_21.append(item22)
            if observers_21 is None:
                raise null_in("DescribeQuorumResponse.observers")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item7 = _new(
                ResponsePartitionData,
                (
                    partition_index_8,
                    error_code_9,
                    error_message_10,
                    leader_id_11,
                    leader_epoch_12,
                    high_watermark_13,
                    current_voters_14,
                    observers_21,
                ),
            )
            partitions_6.append(item7)
        if partitions_6 is None:
            raise null_in("DescribeQuorumResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item4 = _new(ResponseTopicData, (topic_name_5, partitions_6))
        topics_3.append(item4)
    if topics_3 is None:
        raise null_in("DescribeQuorumResponse.topics")
    nodes_28: Any = ()
    if version >= 2:
        size, at, left = read_compact_count(data, at, left, 6, "DescribeQuorumResponse.nodes")
        nodes_28 = None if size < 0 else []
        for _ in range(size):
            (node_id_30,) = _I.unpack_from(data, at)
            at += 4
            size, at, left = read_compact_count(data, at, left, 5, "DescribeQuorumResponse.listeners")
            listeners_31: Any = None if size < 0 else []
            for _ in range(size):
                name_33, at = read_compact_string(data, at)
                if name_33 is None:
                    raise null_in("DescribeQuorumResponse.name")
                host_34, at = read_compact_string(data, at)
                if host_34 is None:
                    raise null_in("DescribeQuorumResponse.host")
                (port_35,) = _U.unpack_from(data, at)
                at += 2
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item32 = _new(Listener, (name_33, host_34, port_35))
                listeners_31.append(item32)
            if listeners_31 is None:
                raise null_in("DescribeQuorumResponse.listeners")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item29 = _new(Node, (node_id_30, listeners_31))
            nodes_28.append(item29)
        if nodes_28 is None:
            raise null_in("DescribeQuorumResponse.nodes")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeQuorumResponse, (error_code_1, error_message_2, topics_3, nodes_28)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _H.pack(body.error_code)
    if version >= 2:
        write_compact_string(out, body.error_message)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.topic_name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IH.pack(item4.partition_index, item4.error_code)
            if version >= 2:
                write_compact_string(out, item4.error_message)
            out += _IIQ.pack(item4.leader_id, item4.leader_epoch, item4.high_watermark)
            current_voters_5 = item4.current_voters
            write_compact_count(out, current_voters_5)
            for item6 in current_voters_5 or ():
                out += _I.pack(item6.replica_id)
                if version >= 2:
                    uuid = item6.replica_directory_id
                    out += NO_UUID if uuid is None else uuid.bytes
                out += _Q.pack(item6.log_end_offset)
                if version >= 1:
                    out += _QQ.pack(item6.last_fetch_timestamp, item6.last_caught_up_timestamp)
                out.append(0)
            observers_7 = item4.observers
            write_compact_count(out, observers_7)
            for item8 in observers_7 or ():
                out += _I.pack(item8.replica_id)
                if version >= 2:
                    uuid = item8.replica_directory_id
                    out += NO_UUID if uuid is None else uuid.bytes
                out += _Q.pack(item8.log_end_offset)
                if version >= 1:
                    out += _QQ.pack(item8.last_fetch_timestamp, item8.last_caught_up_timestamp)
                out.append(0)
            out.append(0)
        out.append(0)
    if version >= 2:
        nodes_9 = body.nodes
        write_compact_count(out, nodes_9)
        for item10 in nodes_9 or ():
            out += _I.pack(item10.node_id)
            listeners_11 = item10.listeners
            write_compact_count(out, listeners_11)
            for item12 in listeners_11 or ():
                write_compact_string(out, item12.name)
                write_compact_string(out, item12.host)
                out += _UX.pack(item12.port)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
