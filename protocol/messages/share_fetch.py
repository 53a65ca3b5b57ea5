"""ShareFetch (78), versions 1 to 2. Written by scripts/generate_messages.py: do not edit."""

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
    add_records,
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

_BT = Struct(">b?")
_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")
_II = Struct(">ii")
_IIIIII = Struct(">iiiiii")
_IIX = Struct(">iix")
_QQ = Struct(">qq")
_QQH = Struct(">qqh")
_QQHX = Struct(">qqhx")


class AcknowledgementBatch(NamedTuple):
    """AcknowledgementBatch of ShareFetch."""

    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: Sequence[int] = ()


class FetchPartition(NamedTuple):
    """FetchPartition of ShareFetch."""

    partition_index: int = 0
    acknowledgement_batches: Sequence[AcknowledgementBatch] = ()


class FetchTopic(NamedTuple):
    """FetchTopic of ShareFetch."""

    topic_id: UUID | None = None
    partitions: Sequence[FetchPartition] = ()


class ForgottenTopic(NamedTuple):
    """ForgottenTopic of ShareFetch."""

    topic_id: UUID | None = None
    partitions: Sequence[int] = ()


class ShareFetchRequest(NamedTuple):
    """ShareFetch request, v1-2."""

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: Sequence[FetchTopic] = ()
    forgotten_topics_data: Sequence[ForgottenTopic] = ()

    @staticmethod
    def response_type() -> type[ShareFetchResponse]:
        return ShareFetchResponse


ShareFetchRequest.API_KEY = 78  # type: ignore[attr-defined]


class LeaderIdAndEpoch(NamedTuple):
    """LeaderIdAndEpoch of ShareFetch."""

    leader_id: int = 0
    leader_epoch: int = 0


class AcquiredRecords(NamedTuple):
    """AcquiredRecords of ShareFetch."""

    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0


class PartitionData(NamedTuple):
    """PartitionData of ShareFetch."""

    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    records: bytes | memoryview | None = b""
    acquired_records: Sequence[AcquiredRecords] = ()


class ShareFetchableTopicResponse(NamedTuple):
    """ShareFetchableTopicResponse of ShareFetch."""

    topic_id: UUID | None = None
    partitions: Sequence[PartitionData] = ()


class NodeEndpoint(NamedTuple):
    """NodeEndpoint of ShareFetch."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ShareFetchResponse(NamedTuple):
    """ShareFetch response, v1-2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: Sequence[ShareFetchableTopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()


ShareFetchResponse.API_KEY = 78  # type: ignore[attr-defined]


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[ShareFetchRequest, int]:
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
    share_session_epoch_3, max_wait_ms_4, min_bytes_5, max_bytes_6, max_records_7, batch_size_8 = (
        _IIIIII.unpack_from(data, at)
    )
    at += 24
    share_acquire_mode_9: Any = 0
    is_renew_ack_10: Any = False
    if version >= 2:
        share_acquire_mode_9, is_renew_ack_10 = _BT.unpack_from(data, at)
        at += 2
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 18 or left < 0:
            raise too_many("ShareFetchRequest.topics", size, left)
        topics_11: Any = []
        for _ in range(size):
            topic_id_13 = read_uuid(data[at : at + 16])
            at += 16
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("ShareFetchRequest.partitions", size, left)
                partitions_14: Any = []
                for _ in range(size):
                    (partition_index_16,) = _I.unpack_from(data, at)
                    at += 4
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 18 or left < 0:
                            raise too_many("ShareFetchRequest.acknowledgement_batches", size, left)
                        acknowledgement_batches_17: Any = []
                        for _ in range(size):
                            first_offset_19, last_offset_20 = _QQ.unpack_from(data, at)
                            at += 16
                            size = data[at]
                            at += 1
                            if size > 127:
                                size, at = long_varint(data, at - 1)
                            size -= 1
                            if size >= 0:
                                left -= size
                                if size > len(data) - at or left < 0:
                                    raise too_many("ShareFetchRequest.acknowledge_types", size, left)
                                acknowledge_types_21 = list(unpack_from(f">{size}b", data, at))
                                at += 1 * size
                            else:
                                raise null_in("ShareFetchRequest.acknowledge_types")
                            if data[at]:
                                at = skip_tags(data, at)
                            else:
                                at += 1
                            item18 = _new(
                                AcknowledgementBatch, (first_offset_19, last_offset_20, acknowledge_types_21)
                            )
                            acknowledgement_batches_17.append(item18)
                    else:
                        raise null_in("ShareFetchRequest.acknowledgement_batches")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item15 = _new(FetchPartition, (partition_index_16, acknowledgement_batches_17))
                    partitions_14.append(item15)
            else:
                raise null_in("ShareFetchRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item12 = _new(FetchTopic, (topic_id_13, partitions_14))
            topics_11.append(item12)
    else:
        raise null_in("ShareFetchRequest.topics")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 18 or left < 0:
            raise too_many("ShareFetchRequest.forgotten_topics_data", size, left)
        forgotten_topics_data_22: Any = []
        for _ in range(size):
            topic_id_24 = read_uuid(data[at : at + 16])
            at += 16
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("ShareFetchRequest.partitions", size, left)
                partitions_25 = list(unpack_from(f">{size}i", data, at))
                at += 4 * size
            else:
                raise null_in("ShareFetchRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item23 = _new(ForgottenTopic, (topic_id_24, partitions_25))
            forgotten_topics_data_22.append(item23)
    else:
        raise null_in("ShareFetchRequest.forgotten_topics_data")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        ShareFetchRequest,
        (
            group_id_1,
            member_id_2,
            share_session_epoch_3,
            max_wait_ms_4,
            min_bytes_5,
            max_bytes_6,
            max_records_7,
            batch_size_8,
            share_acquire_mode_9,
            is_renew_ack_10,
            topics_11,
            forgotten_topics_data_22,
        ),
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
    out += _IIIIII.pack(
        body.share_session_epoch,
        body.max_wait_ms,
        body.min_bytes,
        body.max_bytes,
        body.max_records,
        body.batch_size,
    )
    if version >= 2:
        out += _BT.pack(body.share_acquire_mode, body.is_renew_ack)
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
    forgotten_topics_data_9 = body.forgotten_topics_data
    if forgotten_topics_data_9 is None:
        out += b"\x00"
    else:
        size = len(forgotten_topics_data_9) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item10 in forgotten_topics_data_9:
            uuid = item10.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
            partitions_11 = item10.partitions
            if partitions_11 is None:
                out += b"\x00"
            else:
                size = len(partitions_11) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += pack(f">{len(partitions_11)}i", *partitions_11)
            out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[ShareFetchResponse, int]:
    del version
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
            raise too_many("ShareFetchResponse.responses", size, left)
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
                if size > (len(data) - at) // 22 or left < 0:
                    raise too_many("ShareFetchResponse.partitions", size, left)
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
                    (acknowledge_error_code_13,) = _H.unpack_from(data, at)
                    at += 2
                    size = data[at]
                    if 0 < size < 128:
                        end = at + size
                        acknowledge_error_message_14 = str(data[at + 1 : end], "utf-8")
                        at = end
                    elif not size:
                        acknowledge_error_message_14 = None
                        at += 1
                    else:
                        acknowledge_error_message_14, at = read_compact_string(data, at)
                    leader_id_16, leader_epoch_17 = _II.unpack_from(data, at)
                    at += 8
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    current_leader_15 = _new(LeaderIdAndEpoch, (leader_id_16, leader_epoch_17))
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        end = at + size
                        records_18 = data[at:end]
                        at = end
                    else:
                        records_18 = None
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 19 or left < 0:
                            raise too_many("ShareFetchResponse.acquired_records", size, left)
                        end = at + 19 * size
                        if size > 1 and data[at + 18 : end : 19] == b"\x00" * size:
                            acquired_records_19: Any = [
                                _new(AcquiredRecords, (first_offset_, last_offset_, delivery_count_))
                                for first_offset_, last_offset_, delivery_count_ in _QQHX.iter_unpack(
                                    data[at:end]
                                )
                            ]
                            at = end
                        else:
                            acquired_records_19 = []
                            for _ in range(size):
                                first_offset_21, last_offset_22, delivery_count_23 = _QQH.unpack_from(
                                    data, at
                                )
                                at += 18
                                if data[at]:
                                    at = skip_tags(data, at)
                                else:
                                    at += 1
                                item20 = _new(
                                    AcquiredRecords, (first_offset_21, last_offset_22, delivery_count_23)
                                )
                                acquired_records_19.append(item20)
                    else:
                        raise null_in("ShareFetchResponse.acquired_records")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item9 = _new(
                        PartitionData,
                        (
                            partition_index_10,
                            error_code_11,
                            error_message_12,
                            acknowledge_error_code_13,
                            acknowledge_error_message_14,
                            current_leader_15,
                            records_18,
                            acquired_records_19,
                        ),
                    )
                    partitions_8.append(item9)
            else:
                raise null_in("ShareFetchResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(ShareFetchableTopicResponse, (topic_id_7, partitions_8))
            responses_5.append(item6)
    else:
        raise null_in("ShareFetchResponse.responses")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 11 or left < 0:
            raise too_many("ShareFetchResponse.node_endpoints", size, left)
        node_endpoints_24: Any = []
        for _ in range(size):
            (node_id_26,) = _I.unpack_from(data, at)
            at += 4
            size = data[at]
            if 0 < size < 128:
                end = at + size
                host_27 = str(data[at + 1 : end], "utf-8")
                at = end
            else:
                host_27, at = read_compact_string(data, at)
                if host_27 is None:
                    raise null_in("ShareFetchResponse.host")
            (port_28,) = _I.unpack_from(data, at)
            at += 4
            size = data[at]
            if 0 < size < 128:
                end = at + size
                rack_29 = str(data[at + 1 : end], "utf-8")
                at = end
            elif not size:
                rack_29 = None
                at += 1
            else:
                rack_29, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item25 = _new(NodeEndpoint, (node_id_26, host_27, port_28, rack_29))
            node_endpoints_24.append(item25)
    else:
        raise null_in("ShareFetchResponse.node_endpoints")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        ShareFetchResponse,
        (
            throttle_time_ms_1,
            error_code_2,
            error_message_3,
            acquisition_lock_timeout_ms_4,
            responses_5,
            node_endpoints_24,
        ),
    ), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    value = body.error_message
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
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
                    out += _H.pack(item4.acknowledge_error_code)
                    value = item4.acknowledge_error_message
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    current_leader_5 = item4.current_leader
                    out += _IIX.pack(current_leader_5.leader_id, current_leader_5.leader_epoch)
                    value = item4.records
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        add_records(out, data)
                    acquired_records_6 = item4.acquired_records
                    if acquired_records_6 is None:
                        out += b"\x00"
                    else:
                        size = len(acquired_records_6) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += b"".join(
                            [
                                _QQHX.pack(item7.first_offset, item7.last_offset, item7.delivery_count)
                                for item7 in acquired_records_6
                            ]
                        )
                    out.append(0)
            out.append(0)
    node_endpoints_8 = body.node_endpoints
    if node_endpoints_8 is None:
        out += b"\x00"
    else:
        size = len(node_endpoints_8) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item9 in node_endpoints_8:
            out += _I.pack(item9.node_id)
            value = item9.host
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            out += _I.pack(item9.port)
            value = item9.rack
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
