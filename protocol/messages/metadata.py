"""Metadata (3), versions 0 to 13. Written by scripts/generate_messages.py: do not edit."""

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
    read_count,
    read_string,
    read_uuid,
    skip_tags,
    unpack_from,
    write_array,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
)

_T = Struct(">?")
_TT = Struct(">??")
_TX = Struct(">?x")
_H = Struct(">h")
_HII = Struct(">hii")
_HIII = Struct(">hiii")
_I = Struct(">i")
_IX = Struct(">ix")


class MetadataRequestTopic(NamedTuple):
    """MetadataRequestTopic of Metadata."""

    topic_id: UUID | None = None
    name: str | None = ""


class MetadataRequest(NamedTuple):
    """Metadata request, v0-13."""

    topics: Sequence[MetadataRequestTopic] | None = ()
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


MetadataRequest.API_KEY = 3  # type: ignore[attr-defined]


class MetadataResponseBroker(NamedTuple):
    """MetadataResponseBroker of Metadata."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class MetadataResponsePartition(NamedTuple):
    """MetadataResponsePartition of Metadata."""

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    offline_replicas: Sequence[int] = ()


class MetadataResponseTopic(NamedTuple):
    """MetadataResponseTopic of Metadata."""

    error_code: int = 0
    name: str | None = ""
    topic_id: UUID | None = None
    is_internal: bool = False
    partitions: Sequence[MetadataResponsePartition] = ()
    topic_authorized_operations: int = -2147483648


class MetadataResponse(NamedTuple):
    """Metadata response, v0-13."""

    throttle_time_ms: int = 0
    brokers: Sequence[MetadataResponseBroker] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: Sequence[MetadataResponseTopic] = ()
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0


MetadataResponse.API_KEY = 3  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[MetadataRequest, int]:
    size, at, left = read_count(data, at, left, 2, "MetadataRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        name_3, at = read_string(data, at)
        if name_3 is None:
            raise null_in("MetadataRequest.name")
        item2 = _new(MetadataRequestTopic, (None, name_3))
        topics_1.append(item2)
    if topics_1 is None and not (version >= 1):
        raise null_in("MetadataRequest.topics")
    allow_auto_topic_creation_4: Any = True
    if version >= 4:
        (allow_auto_topic_creation_4,) = _T.unpack_from(data, at)
        at += 1
    include_cluster_authorized_operations_5: Any = False
    include_topic_authorized_operations_6: Any = False
    if version >= 8:
        include_cluster_authorized_operations_5, include_topic_authorized_operations_6 = _TT.unpack_from(
            data, at
        )
        at += 2
    return _new(
        MetadataRequest,
        (
            topics_1,
            allow_auto_topic_creation_4,
            include_cluster_authorized_operations_5,
            include_topic_authorized_operations_6,
        ),
    ), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.name)
    if version >= 4:
        out += _T.pack(body.allow_auto_topic_creation)
    if version >= 8:
        out += _TT.pack(body.include_cluster_authorized_operations, body.include_topic_authorized_operations)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[MetadataRequest, int]:
    size, at, left = read_compact_count(data, at, left, 2, "MetadataRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        topic_id_3: Any = None
        if version >= 10:
            topic_id_3 = read_uuid(data[at : at + 16])
            at += 16
        name_4, at = read_compact_string(data, at)
        if name_4 is None and not (version >= 10):
            raise null_in("MetadataRequest.name")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(MetadataRequestTopic, (topic_id_3, name_4))
        topics_1.append(item2)
    (allow_auto_topic_creation_5,) = _T.unpack_from(data, at)
    at += 1
    include_cluster_authorized_operations_6: Any = False
    if version <= 10:
        (include_cluster_authorized_operations_6,) = _T.unpack_from(data, at)
        at += 1
    (include_topic_authorized_operations_7,) = _T.unpack_from(data, at)
    at += 1
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        MetadataRequest,
        (
            topics_1,
            allow_auto_topic_creation_5,
            include_cluster_authorized_operations_6,
            include_topic_authorized_operations_7,
        ),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        if version >= 10:
            uuid = item2.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
        write_compact_string(out, item2.name)
        out.append(0)
    out += _T.pack(body.allow_auto_topic_creation)
    if version <= 10:
        out += _T.pack(body.include_cluster_authorized_operations)
    out += _TX.pack(body.include_topic_authorized_operations)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 9 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 9 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[MetadataResponse, int]:
    throttle_time_ms_1: Any = 0
    if version >= 3:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    size, at, left = read_count(data, at, left, 10, "MetadataResponse.brokers")
    brokers_2: Any = None if size < 0 else []
    for _ in range(size):
        (node_id_4,) = _I.unpack_from(data, at)
        at += 4
        host_5, at = read_string(data, at)
        if host_5 is None:
            raise null_in("MetadataResponse.host")
        (port_6,) = _I.unpack_from(data, at)
        at += 4
        rack_7: Any = None
        if version >= 1:
            rack_7, at = read_string(data, at)
        item3 = _new(MetadataResponseBroker, (node_id_4, host_5, port_6, rack_7))
        brokers_2.append(item3)
    if brokers_2 is None:
        raise null_in("MetadataResponse.brokers")
    cluster_id_8: Any = None
    if version >= 2:
        cluster_id_8, at = read_string(data, at)
    controller_id_9: Any = -1
    if version >= 1:
        (controller_id_9,) = _I.unpack_from(data, at)
        at += 4
    size, at, left = read_count(data, at, left, 8, "MetadataResponse.topics")
    topics_10: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_12,) = _H.unpack_from(data, at)
        at += 2
        name_13, at = read_string(data, at)
        if name_13 is None:
            raise null_in("MetadataResponse.name")
        is_internal_14: Any = False
        if version >= 1:
            (is_internal_14,) = _T.unpack_from(data, at)
            at += 1
        size, at, left = read_count(data, at, left, 18, "MetadataResponse.partitions")
        partitions_15: Any = None if size < 0 else []
        for _ in range(size):
            error_code_17, partition_index_18, leader_id_19 = _HII.unpack_from(data, at)
            at += 10
            leader_epoch_20: Any = -1
            if version >= 7:
                (leader_epoch_20,) = _I.unpack_from(data, at)
                at += 4
            size, at, left = read_count(data, at, left, 4, "MetadataResponse.replica_nodes")
            replica_nodes_21 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if replica_nodes_21 is None:
                raise null_in("MetadataResponse.replica_nodes")
            size, at, left = read_count(data, at, left, 4, "MetadataResponse.isr_nodes")
            isr_nodes_22 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if isr_nodes_22 is None:
                raise null_in("MetadataResponse.isr_nodes")
            offline_replicas_23: Any = ()
            if version >= 5:
                size, at, left = read_count(data, at, left, 4, "MetadataResponse.offline_replicas")
                offline_replicas_23 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
                at += 4 * max(size, 0)
                if offline_replicas_23 is None:
                    raise null_in("MetadataResponse.offline_replicas")
            item16 = _new(
                MetadataResponsePartition,
                (
                    error_code_17,
                    partition_index_18,
                    leader_id_19,
                    leader_epoch_20,
                    replica_nodes_21,
                    isr_nodes_22,
                    offline_replicas_23,
                ),
            )
            partitions_15.append(item16)
        if partitions_15 is None:
            raise null_in("MetadataResponse.partitions")
        topic_authorized_operations_24: Any = -2147483648
        if version >= 8:
            (topic_authorized_operations_24,) = _I.unpack_from(data, at)
            at += 4
        item11 = _new(
            MetadataResponseTopic,
            (error_code_12, name_13, None, is_internal_14, partitions_15, topic_authorized_operations_24),
        )
        topics_10.append(item11)
    if topics_10 is None:
        raise null_in("MetadataResponse.topics")
    cluster_authorized_operations_25: Any = -2147483648
    if version >= 8:
        (cluster_authorized_operations_25,) = _I.unpack_from(data, at)
        at += 4
    return _new(
        MetadataResponse,
        (
            throttle_time_ms_1,
            brokers_2,
            cluster_id_8,
            controller_id_9,
            topics_10,
            cluster_authorized_operations_25,
            0,
        ),
    ), at


def _write_response_classic_partitions(out: bytearray, items: Any, version: int) -> None:
    partitions_1 = items
    write_count(out, partitions_1)
    for item2 in partitions_1 or ():
        out += _HII.pack(item2.error_code, item2.partition_index, item2.leader_id)
        if version >= 7:
            out += _I.pack(item2.leader_epoch)
        replica_nodes_3 = item2.replica_nodes
        write_count(out, replica_nodes_3)
        out += pack(f">{len(replica_nodes_3 or ())}i", *(replica_nodes_3 or ()))
        isr_nodes_5 = item2.isr_nodes
        write_count(out, isr_nodes_5)
        out += pack(f">{len(isr_nodes_5 or ())}i", *(isr_nodes_5 or ()))
        if version >= 5:
            offline_replicas_7 = item2.offline_replicas
            write_count(out, offline_replicas_7)
            out += pack(f">{len(offline_replicas_7 or ())}i", *(offline_replicas_7 or ()))


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 3:
        out += _I.pack(body.throttle_time_ms)
    brokers_1 = body.brokers
    write_count(out, brokers_1)
    for item2 in brokers_1 or ():
        out += _I.pack(item2.node_id)
        write_string(out, item2.host)
        out += _I.pack(item2.port)
        if version >= 1:
            write_string(out, item2.rack)
    if version >= 2:
        write_string(out, body.cluster_id)
    if version >= 1:
        out += _I.pack(body.controller_id)
    topics_3 = body.topics
    write_count(out, topics_3)
    for item4 in topics_3 or ():
        out += _H.pack(item4.error_code)
        write_string(out, item4.name)
        if version >= 1:
            out += _T.pack(item4.is_internal)
        write_array(out, item4.partitions, version, _write_response_classic_partitions)
        if version >= 8:
            out += _I.pack(item4.topic_authorized_operations)
    if version >= 8:
        out += _I.pack(body.cluster_authorized_operations)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[MetadataResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 11, "MetadataResponse.brokers")
    brokers_2: Any = None if size < 0 else []
    for _ in range(size):
        (node_id_4,) = _I.unpack_from(data, at)
        at += 4
        host_5, at = read_compact_string(data, at)
        if host_5 is None:
            raise null_in("MetadataResponse.host")
        (port_6,) = _I.unpack_from(data, at)
        at += 4
        rack_7, at = read_compact_string(data, at)
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(MetadataResponseBroker, (node_id_4, host_5, port_6, rack_7))
        brokers_2.append(item3)
    if brokers_2 is None:
        raise null_in("MetadataResponse.brokers")
    cluster_id_8, at = read_compact_string(data, at)
    (controller_id_9,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 10, "MetadataResponse.topics")
    topics_10: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_12,) = _H.unpack_from(data, at)
        at += 2
        name_13, at = read_compact_string(data, at)
        if name_13 is None and not (version >= 12):
            raise null_in("MetadataResponse.name")
        topic_id_14: Any = None
        if version >= 10:
            topic_id_14 = read_uuid(data[at : at + 16])
            at += 16
        (is_internal_15,) = _T.unpack_from(data, at)
        at += 1
        size, at, left = read_compact_count(data, at, left, 18, "MetadataResponse.partitions")
        partitions_16: Any = None if size < 0 else []
        for _ in range(size):
            error_code_18, partition_index_19, leader_id_20, leader_epoch_21 = _HIII.unpack_from(data, at)
            at += 14
            size, at, left = read_compact_count(data, at, left, 4, "MetadataResponse.replica_nodes")
            replica_nodes_22 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if replica_nodes_22 is None:
                raise null_in("MetadataResponse.replica_nodes")
            size, at, left = read_compact_count(data, at, left, 4, "MetadataResponse.isr_nodes")
            isr_nodes_23 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if isr_nodes_23 is None:
                raise null_in("MetadataResponse.isr_nodes")
            size, at, left = read_compact_count(data, at, left, 4, "MetadataResponse.offline_replicas")
            offline_replicas_24 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if offline_replicas_24 is None:
                raise null_in("MetadataResponse.offline_replicas")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item17 = _new(
                MetadataResponsePartition,
                (
                    error_code_18,
                    partition_index_19,
                    leader_id_20,
                    leader_epoch_21,
                    replica_nodes_22,
                    isr_nodes_23,
                    offline_replicas_24,
                ),
            )
            partitions_16.append(item17)
        if partitions_16 is None:
            raise null_in("MetadataResponse.partitions")
        (topic_authorized_operations_25,) = _I.unpack_from(data, at)
        at += 4
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item11 = _new(
            MetadataResponseTopic,
            (
                error_code_12,
                name_13,
                topic_id_14,
                is_internal_15,
                partitions_16,
                topic_authorized_operations_25,
            ),
        )
        topics_10.append(item11)
    if topics_10 is None:
        raise null_in("MetadataResponse.topics")
    cluster_authorized_operations_26: Any = -2147483648
    if version <= 10:
        (cluster_authorized_operations_26,) = _I.unpack_from(data, at)
        at += 4
    error_code_27: Any = 0
    if version >= 13:
        (error_code_27,) = _H.unpack_from(data, at)
        at += 2
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        MetadataResponse,
        (
            throttle_time_ms_1,
            brokers_2,
            cluster_id_8,
            controller_id_9,
            topics_10,
            cluster_authorized_operations_26,
            error_code_27,
        ),
    ), at


def _write_response_flexible_partitions(out: bytearray, items: Any, version: int) -> None:
    del version
    partitions_1 = items
    write_compact_count(out, partitions_1)
    for item2 in partitions_1 or ():
        out += _HIII.pack(item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch)
        replica_nodes_3 = item2.replica_nodes
        write_compact_count(out, replica_nodes_3)
        out += pack(f">{len(replica_nodes_3 or ())}i", *(replica_nodes_3 or ()))
        isr_nodes_5 = item2.isr_nodes
        write_compact_count(out, isr_nodes_5)
        out += pack(f">{len(isr_nodes_5 or ())}i", *(isr_nodes_5 or ()))
        offline_replicas_7 = item2.offline_replicas
        write_compact_count(out, offline_replicas_7)
        out += pack(f">{len(offline_replicas_7 or ())}i", *(offline_replicas_7 or ()))
        out.append(0)


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    brokers_1 = body.brokers
    write_compact_count(out, brokers_1)
    for item2 in brokers_1 or ():
        out += _I.pack(item2.node_id)
        write_compact_string(out, item2.host)
        out += _I.pack(item2.port)
        write_compact_string(out, item2.rack)
        out.append(0)
    write_compact_string(out, body.cluster_id)
    out += _I.pack(body.controller_id)
    topics_3 = body.topics
    write_compact_count(out, topics_3)
    for item4 in topics_3 or ():
        out += _H.pack(item4.error_code)
        write_compact_string(out, item4.name)
        if version >= 10:
            uuid = item4.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
        out += _T.pack(item4.is_internal)
        write_array(out, item4.partitions, version, _write_response_flexible_partitions)
        out += _IX.pack(item4.topic_authorized_operations)
    if version <= 10:
        out += _I.pack(body.cluster_authorized_operations)
    if version >= 13:
        out += _H.pack(body.error_code)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 9 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 9 else _write_response_classic
