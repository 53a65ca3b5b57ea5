"""ShareAcknowledge (79), versions 1 to 2. Written by scripts/generate_messages.py: do not edit."""

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
)

_T = Struct(">?")
_I = Struct(">i")
_IH = Struct(">ih")
_II = Struct(">ii")
_IIX = Struct(">iix")
_QQ = Struct(">qq")


class AcknowledgementBatch(NamedTuple):
    """AcknowledgementBatch of ShareAcknowledge."""

    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: Sequence[int] = ()


class AcknowledgePartition(NamedTuple):
    """AcknowledgePartition of ShareAcknowledge."""

    partition_index: int = 0
    acknowledgement_batches: Sequence[AcknowledgementBatch] = ()


class AcknowledgeTopic(NamedTuple):
    """AcknowledgeTopic of ShareAcknowledge."""

    topic_id: UUID | None = None
    partitions: Sequence[AcknowledgePartition] = ()


class ShareAcknowledgeRequest(NamedTuple):
    """ShareAcknowledge request, v1-2."""

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: Sequence[AcknowledgeTopic] = ()

    @staticmethod
    def response_type() -> type[ShareAcknowledgeResponse]:
        return ShareAcknowledgeResponse


ShareAcknowledgeRequest.API_KEY = 79  # type: ignore[attr-defined]


class LeaderIdAndEpoch(NamedTuple):
    """LeaderIdAndEpoch of ShareAcknowledge."""

    leader_id: int = 0
    leader_epoch: int = 0


class PartitionData(NamedTuple):
    """PartitionData of ShareAcknowledge."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


class ShareAcknowledgeTopicResponse(NamedTuple):
    """ShareAcknowledgeTopicResponse of ShareAcknowledge."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class NodeEndpoint(NamedTuple):
    """NodeEndpoint of ShareAcknowledge."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ShareAcknowledgeResponse(NamedTuple):
    """ShareAcknowledge response, v1-2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: Sequence[ShareAcknowledgeTopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


ShareAcknowledgeResponse.API_KEY = 79  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ShareAcknowledgeRequest, int]:
    size = data[at]
    if 0 < size < 128:
        end = at + size
        group_id_1 = data[at + 1 : end].decode()
        at = end
    elif not size:
        group_id_1 = None
        at += 1
    else:
        group_id_1, at = read_compact_string(data, at)
    size = data[at]
    if 0 < size < 128:
        end = at + size
        member_id_2 = data[at + 1 : end].decode()
        at = end
    elif not size:
        member_id_2 = None
        at += 1
    else:
        member_id_2, at = read_compact_string(data, at)
    (share_session_epoch_3,) = _I.unpack_from(data, at)
    at += 4
    is_renew_ack_4: Any = False
    if version >= 2:
        (is_renew_ack_4,) = _T.unpack_from(data, at)
        at += 1
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 18 or left < 0:
            raise too_many("ShareAcknowledgeRequest.topics", size, left)
        topics_5: Any = []
        for _ in range(size):
            topic_id_7 = read_uuid(data[at : at + 16])
            at += 16
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("ShareAcknowledgeRequest.partitions", size, left)
                partitions_8: Any = []
                for _ in range(size):
                    (partition_index_10,) = _I.unpack_from(data, at)
                    at += 4
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 18 or left < 0:
                            raise too_many("ShareAcknowledgeRequest.acknowledgement_batches", size, left)
                        acknowledgement_batches_11: Any = []
                        for _ in range(size):
                            first_offset_13, last_offset_14 = _QQ.unpack_from(data, at)
                            at += 16
                            size = data[at]
                            at += 1
                            if size > 127:
                                size, at = long_varint(data, at - 1)
                            size -= 1
                            if size >= 0:
                                left -= size
                                if size > len(data) - at or left < 0:
                                    raise too_many("ShareAcknowledgeRequest.acknowledge_types", size, left)
                                acknowledge_types_15 = list(unpack_from(f">{size}b", data, at))
                                at += 1 * size
                            else:
                                raise null_in("ShareAcknowledgeRequest.acknowledge_types")
                            if data[at]:
                                at = skip_tags(data, at)
                            else:
                                at += 1
                            item12 = _new(
                                AcknowledgementBatch, (first_offset_13, last_offset_14, acknowledge_types_15)
                            )
                            acknowledgement_batches_11.append(item12)
                    else:
                        raise null_in("ShareAcknowledgeRequest.acknowledgement_batches")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item9 = _new(AcknowledgePartition, (partition_index_10, acknowledgement_batches_11))
                    partitions_8.append(item9)
            else:
                raise null_in("ShareAcknowledgeRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(AcknowledgeTopic, (topic_id_7, partitions_8))
            topics_5.append(item6)
    else:
        raise null_in("ShareAcknowledgeRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        ShareAcknowledgeRequest, (group_id_1, member_id_2, share_session_epoch_3, is_renew_ack_4, topics_5)
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    value = body.group_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    value = body.member_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out += _I.pack(body.share_session_epoch)
    if version >= 2:
        out += _T.pack(body.is_renew_ack)
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\x00"
    else:
        size = len(topics_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topics_1:
            uuid = item2.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\x00"
            else:
                size = len(partitions_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in partitions_3:
                    out += _I.pack(item4.partition_index)
                    acknowledgement_batches_5 = item4.acknowledgement_batches
                    if acknowledgement_batches_5 is None:
                        out += b"\x00"
                    else:
                        size = len(acknowledgement_batches_5) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        for item6 in acknowledgement_batches_5:
                            out += _QQ.pack(item6.first_offset, item6.last_offset)
                            acknowledge_types_7 = item6.acknowledge_types
                            if acknowledge_types_7 is None:
                                out += b"\x00"
                            else:
                                size = len(acknowledge_types_7) + 1
                                out += varint(size) if size > 127 else BYTES[size]
                                out += pack(f">{len(acknowledge_types_7)}b", *acknowledge_types_7)
                            out.append(0)
                    out.append(0)
            out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ShareAcknowledgeResponse, int]:
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size = data[at]
    if 0 < size < 128:
        end = at + size
        error_message_3 = str(data[at + 1 : end], "utf-8")
        at = end
    elif not size:
        error_message_3 = None
        at += 1
    else:
        error_message_3, at = read_compact_string(data, at)
    acquisition_lock_timeout_ms_4: Any = 0
    if version >= 2:
        (acquisition_lock_timeout_ms_4,) = _I.unpack_from(data, at)
        at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 18 or left < 0:
            raise too_many("ShareAcknowledgeResponse.responses", size, left)
        responses_5: Any = []
        for _ in range(size):
            topic_id_7 = read_uuid(data[at : at + 16])
            at += 16
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 17 or left < 0:
                    raise too_many("ShareAcknowledgeResponse.partitions", size, left)
                partitions_8: Any = []
                for _ in range(size):
                    partition_index_10, error_code_11 = _IH.unpack_from(data, at)
                    at += 6
                    size = data[at]
                    if 0 < size < 128:
                        end = at + size
                        error_message_12 = str(data[at + 1 : end], "utf-8")
                        at = end
                    elif not size:
                        error_message_12 = None
                        at += 1
                    else:
                        error_message_12, at = read_compact_string(data, at)
                    leader_id_14, leader_epoch_15 = _II.unpack_from(data, at)
                    at += 8
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    current_leader_13 = _new(LeaderIdAndEpoch, (leader_id_14, leader_epoch_15))
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item9 = _new(
                        PartitionData,
                        (partition_index_10, error_code_11, error_message_12, current_leader_13),
                    )
                    partitions_8.append(item9)
            else:
                raise null_in("ShareAcknowledgeResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(ShareAcknowledgeTopicResponse, (topic_id_7, partitions_8))
            responses_5.append(item6)
    else:
        raise null_in("ShareAcknowledgeResponse.responses")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 11 or left < 0:
            raise too_many("ShareAcknowledgeResponse.node_endpoints", size, left)
        node_endpoints_16: Any = []
        for _ in range(size):
            (node_id_18,) = _I.unpack_from(data, at)
            at += 4
            size = data[at]
            if 0 < size < 128:
                end = at + size
                host_19 = str(data[at + 1 : end], "utf-8")
                at = end
            else:
                host_19, at = read_compact_string(data, at)
                if host_19 is None:
                    raise null_in("ShareAcknowledgeResponse.host")
            (port_20,) = _I.unpack_from(data, at)
            at += 4
            size = data[at]
            if 0 < size < 128:
                end = at + size
                rack_21 = str(data[at + 1 : end], "utf-8")
                at = end
            elif not size:
                rack_21 = None
                at += 1
            else:
                rack_21, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item17 = _new(NodeEndpoint, (node_id_18, host_19, port_20, rack_21))
            node_endpoints_16.append(item17)
    else:
        raise null_in("ShareAcknowledgeResponse.node_endpoints")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        ShareAcknowledgeResponse,
        (
            throttle_time_ms_1,
            error_code_2,
            error_message_3,
            acquisition_lock_timeout_ms_4,
            responses_5,
            node_endpoints_16,
        ),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    value = body.error_message
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    if version >= 2:
        out += _I.pack(body.acquisition_lock_timeout_ms)
    responses_1 = body.responses
    if responses_1 is None:
        out += b"\x00"
    else:
        size = len(responses_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in responses_1:
            uuid = item2.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\x00"
            else:
                size = len(partitions_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in partitions_3:
                    out += _IH.pack(item4.partition_index, item4.error_code)
                    value = item4.error_message
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    current_leader_5 = item4.current_leader
                    out += _IIX.pack(current_leader_5.leader_id, current_leader_5.leader_epoch)
                    out.append(0)
            out.append(0)
    node_endpoints_6 = body.node_endpoints
    if node_endpoints_6 is None:
        out += b"\x00"
    else:
        size = len(node_endpoints_6) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item7 in node_endpoints_6:
            out += _I.pack(item7.node_id)
            value = item7.host
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _I.pack(item7.port)
            value = item7.rack
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
