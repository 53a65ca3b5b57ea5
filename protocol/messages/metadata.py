"""Metadata (3), versions 0 to 13. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any
from uuid import UUID

from .wire import (
    BYTES,
    NO_UUID,
    NamedTuple,
    _new,
    long_varint,
    null_in,
    pack,
    read_compact_string,
    read_uuid,
    skip_tags,
    too_many,
    unpack_from,
    varint,
    write_array,
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

    @staticmethod
    def response_type() -> type[MetadataResponse]:
        return MetadataResponse


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
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("MetadataRequest.topics", size, left)
        topics_1: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("MetadataRequest.name")
            item2 = _new(MetadataRequestTopic, (None, name_3))
            topics_1.append(item2)
    elif version >= 1:
        topics_1 = None
    else:
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
    if topics_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(topics_1))
        for item2 in topics_1:
            value = item2.name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
    if version >= 4:
        out += _T.pack(body.allow_auto_topic_creation)
    if version >= 8:
        out += _TT.pack(body.include_cluster_authorized_operations, body.include_topic_authorized_operations)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[MetadataRequest, int]:
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("MetadataRequest.topics", size, left)
        topics_1: Any = []
        for _ in range(size):
            topic_id_3: Any = None
            if version >= 10:
                topic_id_3 = read_uuid(data[at : at + 16])
                at += 16
            size = data[at]
            if 0 < size < 128:
                end = at + size
                name_4 = data[at + 1 : end].decode()
                at = end
            else:
                name_4, at = read_compact_string(data, at)
                if name_4 is None and not (version >= 10):
                    raise null_in("MetadataRequest.name")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(MetadataRequestTopic, (topic_id_3, name_4))
            topics_1.append(item2)
    else:
        topics_1 = None
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
    if topics_1 is None:
        out += b"\x00"
    else:
        size = len(topics_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topics_1:
            if version >= 10:
                uuid = item2.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
            value = item2.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
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
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 10 or left < 0:
            raise too_many("MetadataResponse.brokers", size, left)
        brokers_2: Any = []
        for _ in range(size):
            (node_id_4,) = _I.unpack_from(data, at)
            at += 4
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                host_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("MetadataResponse.host")
            (port_6,) = _I.unpack_from(data, at)
            at += 4
            rack_7: Any = None
            if version >= 1:
                (size,) = _H.unpack_from(data, at)
                at += 2
                if size >= 0:
                    end = at + size
                    rack_7 = str(data[at:end], "utf-8")
                    at = end
                else:
                    rack_7 = None
            item3 = _new(MetadataResponseBroker, (node_id_4, host_5, port_6, rack_7))
            brokers_2.append(item3)
    else:
        raise null_in("MetadataResponse.brokers")
    cluster_id_8: Any = None
    if version >= 2:
        (size,) = _H.unpack_from(data, at)
        at += 2
        if size >= 0:
            end = at + size
            cluster_id_8 = str(data[at:end], "utf-8")
            at = end
        else:
            cluster_id_8 = None
    controller_id_9: Any = -1
    if version >= 1:
        (controller_id_9,) = _I.unpack_from(data, at)
        at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 8 or left < 0:
            raise too_many("MetadataResponse.topics", size, left)
        topics_10: Any = []
        for _ in range(size):
            (error_code_12,) = _H.unpack_from(data, at)
            at += 2
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_13 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("MetadataResponse.name")
            is_internal_14: Any = False
            if version >= 1:
                (is_internal_14,) = _T.unpack_from(data, at)
                at += 1
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 18 or left < 0:
                    raise too_many("MetadataResponse.partitions", size, left)
                partitions_15: Any = []
                for _ in range(size):
                    error_code_17, partition_index_18, leader_id_19 = _HII.unpack_from(data, at)
                    at += 10
                    leader_epoch_20: Any = -1
                    if version >= 7:
                        (leader_epoch_20,) = _I.unpack_from(data, at)
                        at += 4
                    (size,) = _I.unpack_from(data, at)
                    at += 4
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("MetadataResponse.replica_nodes", size, left)
                        replica_nodes_21 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("MetadataResponse.replica_nodes")
                    (size,) = _I.unpack_from(data, at)
                    at += 4
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("MetadataResponse.isr_nodes", size, left)
                        isr_nodes_22 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("MetadataResponse.isr_nodes")
                    offline_replicas_23: Any = ()
                    if version >= 5:
                        (size,) = _I.unpack_from(data, at)
                        at += 4
                        if size >= 0:
                            left -= size
                            if size > (len(data) - at) // 4 or left < 0:
                                raise too_many("MetadataResponse.offline_replicas", size, left)
                            offline_replicas_23 = list(unpack_from(f">{size}i", data, at))
                            at += 4 * size
                        else:
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
            else:
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
    else:
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
    if partitions_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(partitions_1))
        for item2 in partitions_1:
            out += _HII.pack(item2.error_code, item2.partition_index, item2.leader_id)
            if version >= 7:
                out += _I.pack(item2.leader_epoch)
            replica_nodes_3 = item2.replica_nodes
            if replica_nodes_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(replica_nodes_3))
                out += pack(f">{len(replica_nodes_3)}i", *replica_nodes_3)
            isr_nodes_5 = item2.isr_nodes
            if isr_nodes_5 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(isr_nodes_5))
                out += pack(f">{len(isr_nodes_5)}i", *isr_nodes_5)
            if version >= 5:
                offline_replicas_7 = item2.offline_replicas
                if offline_replicas_7 is None:
                    out += b"\xff\xff\xff\xff"
                else:
                    out += _I.pack(len(offline_replicas_7))
                    out += pack(f">{len(offline_replicas_7)}i", *offline_replicas_7)


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 3:
        out += _I.pack(body.throttle_time_ms)
    brokers_1 = body.brokers
    if brokers_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(brokers_1))
        for item2 in brokers_1:
            out += _I.pack(item2.node_id)
            value = item2.host
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            out += _I.pack(item2.port)
            if version >= 1:
                value = item2.rack
                if value is None:
                    out += b"\xff\xff"
                else:
                    data = value.encode()
                    out += _H.pack(len(data))
                    out += data
    if version >= 2:
        value = body.cluster_id
        if value is None:
            out += b"\xff\xff"
        else:
            data = value.encode()
            out += _H.pack(len(data))
            out += data
    if version >= 1:
        out += _I.pack(body.controller_id)
    topics_3 = body.topics
    if topics_3 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(topics_3))
        for item4 in topics_3:
            out += _H.pack(item4.error_code)
            value = item4.name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
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
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 11 or left < 0:
            raise too_many("MetadataResponse.brokers", size, left)
        brokers_2: Any = []
        for _ in range(size):
            (node_id_4,) = _I.unpack_from(data, at)
            at += 4
            size = data[at]
            if 0 < size < 128:
                end = at + size
                host_5 = str(data[at + 1 : end], "utf-8")
                at = end
            else:
                host_5, at = read_compact_string(data, at)
                if host_5 is None:
                    raise null_in("MetadataResponse.host")
            (port_6,) = _I.unpack_from(data, at)
            at += 4
            size = data[at]
            if 0 < size < 128:
                end = at + size
                rack_7 = str(data[at + 1 : end], "utf-8")
                at = end
            elif not size:
                rack_7 = None
                at += 1
            else:
                rack_7, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(MetadataResponseBroker, (node_id_4, host_5, port_6, rack_7))
            brokers_2.append(item3)
    else:
        raise null_in("MetadataResponse.brokers")
    size = data[at]
    if 0 < size < 128:
        end = at + size
        cluster_id_8 = str(data[at + 1 : end], "utf-8")
        at = end
    elif not size:
        cluster_id_8 = None
        at += 1
    else:
        cluster_id_8, at = read_compact_string(data, at)
    (controller_id_9,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 10 or left < 0:
            raise too_many("MetadataResponse.topics", size, left)
        topics_10: Any = []
        for _ in range(size):
            (error_code_12,) = _H.unpack_from(data, at)
            at += 2
            size = data[at]
            if 0 < size < 128:
                end = at + size
                name_13 = str(data[at + 1 : end], "utf-8")
                at = end
            else:
                name_13, at = read_compact_string(data, at)
                if name_13 is None and not (version >= 12):
                    raise null_in("MetadataResponse.name")
            topic_id_14: Any = None
            if version >= 10:
                topic_id_14 = read_uuid(data[at : at + 16])
                at += 16
            (is_internal_15,) = _T.unpack_from(data, at)
            at += 1
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 18 or left < 0:
                    raise too_many("MetadataResponse.partitions", size, left)
                partitions_16: Any = []
                for _ in range(size):
                    error_code_18, partition_index_19, leader_id_20, leader_epoch_21 = _HIII.unpack_from(
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
                            raise too_many("MetadataResponse.replica_nodes", size, left)
                        replica_nodes_22 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("MetadataResponse.replica_nodes")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("MetadataResponse.isr_nodes", size, left)
                        isr_nodes_23 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("MetadataResponse.isr_nodes")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("MetadataResponse.offline_replicas", size, left)
                        offline_replicas_24 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
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
            else:
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
    else:
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
    if partitions_1 is None:
        out += b"\x00"
    else:
        size = len(partitions_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in partitions_1:
            out += _HIII.pack(item2.error_code, item2.partition_index, item2.leader_id, item2.leader_epoch)
            replica_nodes_3 = item2.replica_nodes
            if replica_nodes_3 is None:
                out += b"\x00"
            else:
                size = len(replica_nodes_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += pack(f">{len(replica_nodes_3)}i", *replica_nodes_3)
            isr_nodes_5 = item2.isr_nodes
            if isr_nodes_5 is None:
                out += b"\x00"
            else:
                size = len(isr_nodes_5) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += pack(f">{len(isr_nodes_5)}i", *isr_nodes_5)
            offline_replicas_7 = item2.offline_replicas
            if offline_replicas_7 is None:
                out += b"\x00"
            else:
                size = len(offline_replicas_7) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += pack(f">{len(offline_replicas_7)}i", *offline_replicas_7)
            out.append(0)


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    brokers_1 = body.brokers
    if brokers_1 is None:
        out += b"\x00"
    else:
        size = len(brokers_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in brokers_1:
            out += _I.pack(item2.node_id)
            value = item2.host
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _I.pack(item2.port)
            value = item2.rack
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out.append(0)
    value = body.cluster_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out += _I.pack(body.controller_id)
    topics_3 = body.topics
    if topics_3 is None:
        out += b"\x00"
    else:
        size = len(topics_3) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item4 in topics_3:
            out += _H.pack(item4.error_code)
            value = item4.name
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
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
