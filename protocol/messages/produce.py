"""Produce (0), versions 3 to 13. Written by scripts/generate_messages.py: do not edit."""

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
    malformed,
    null_in,
    read_compact_string,
    read_tags,
    read_uuid,
    skip_tags,
    too_many,
    varint,
    write_tags,
)

_H = Struct(">h")
_HI = Struct(">hi")
_I = Struct(">i")
_IHQQ = Struct(">ihqq")
_IHQQQ = Struct(">ihqqq")
_II = Struct(">ii")
_IIX = Struct(">iix")
_IXX = Struct(">ixx")
_Q = Struct(">q")


class PartitionProduceData(NamedTuple):
    """PartitionProduceData of Produce."""

    index: int = 0  # type: ignore[assignment]
    records: bytes | memoryview | None = b""


class TopicProduceData(NamedTuple):
    """TopicProduceData of Produce."""

    name: str = ""
    topic_id: UUID | None = None
    partition_data: Sequence[PartitionProduceData] = ()


class ProduceRequest(NamedTuple):
    """Produce request, v3-13."""

    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: Sequence[TopicProduceData] = ()

    @staticmethod
    def response_type() -> type[ProduceResponse]:
        return ProduceResponse


ProduceRequest.API_KEY = 0  # type: ignore[attr-defined]


class BatchIndexAndErrorMessage(NamedTuple):
    """BatchIndexAndErrorMessage of Produce."""

    batch_index: int = 0
    batch_index_error_message: str | None = None


class LeaderIdAndEpoch(NamedTuple):
    """LeaderIdAndEpoch of Produce."""

    leader_id: int = -1
    leader_epoch: int = -1


class PartitionProduceResponse(NamedTuple):
    """PartitionProduceResponse of Produce."""

    index: int = 0  # type: ignore[assignment]
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[BatchIndexAndErrorMessage] = ()
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch | None = None


class TopicProduceResponse(NamedTuple):
    """TopicProduceResponse of Produce."""

    name: str = ""
    topic_id: UUID | None = None
    partition_responses: Sequence[PartitionProduceResponse] = ()


class NodeEndpoint(NamedTuple):
    """NodeEndpoint of Produce."""

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ProduceResponse(NamedTuple):
    """Produce response, v3-13."""

    responses: Sequence[TopicProduceResponse] = ()
    throttle_time_ms: int = 0
    node_endpoints: Sequence[NodeEndpoint] = ()


ProduceResponse.API_KEY = 0  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[ProduceRequest, int]:
    del version
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        transactional_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        transactional_id_1 = None
    acks_2, timeout_ms_3 = _HI.unpack_from(data, at)
    at += 6
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("ProduceRequest.topic_data", size, left)
        topic_data_4: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ProduceRequest.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 8 or left < 0:
                    raise too_many("ProduceRequest.partition_data", size, left)
                partition_data_7: Any = []
                for _ in range(size):
                    (index_9,) = _I.unpack_from(data, at)
                    at += 4
                    (size,) = _I.unpack_from(data, at)
                    at += 4
                    if size >= 0:
                        end = at + size
                        records_10 = data[at:end]
                        at = end
                    else:
                        records_10 = None
                    item8 = _new(PartitionProduceData, (index_9, records_10))
                    partition_data_7.append(item8)
            else:
                raise null_in("ProduceRequest.partition_data")
            item5 = _new(TopicProduceData, (name_6, None, partition_data_7))
            topic_data_4.append(item5)
    else:
        raise null_in("ProduceRequest.topic_data")
    return _new(ProduceRequest, (transactional_id_1, acks_2, timeout_ms_3, topic_data_4)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    value = body.transactional_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    out += _HI.pack(body.acks, body.timeout_ms)
    topic_data_1 = body.topic_data
    if topic_data_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(topic_data_1))
        for item2 in topic_data_1:
            value = item2.name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            partition_data_3 = item2.partition_data
            if partition_data_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(partition_data_3))
                for item4 in partition_data_3:
                    out += _I.pack(item4.index)
                    value = item4.records
                    if value is None:
                        out += b"\xff\xff\xff\xff"
                    else:
                        data = value
                        out += _I.pack(len(data))
                        add_records(out, data)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[ProduceRequest, int]:
    size = data[at]
    if 0 < size < 128:
        end = at + size
        transactional_id_1 = data[at + 1 : end].decode()
        at = end
    elif not size:
        transactional_id_1 = None
        at += 1
    else:
        transactional_id_1, at = read_compact_string(data, at)
    acks_2, timeout_ms_3 = _HI.unpack_from(data, at)
    at += 6
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("ProduceRequest.topic_data", size, left)
        topic_data_4: Any = []
        for _ in range(size):
            name_6: Any = ""
            if version <= 12:
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    name_6 = data[at + 1 : end].decode()
                    at = end
                else:
                    name_6, at = read_compact_string(data, at)
                    if name_6 is None:
                        raise null_in("ProduceRequest.name")
            topic_id_7: Any = None
            if version >= 13:
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
                    raise too_many("ProduceRequest.partition_data", size, left)
                partition_data_8: Any = []
                for _ in range(size):
                    (index_10,) = _I.unpack_from(data, at)
                    at += 4
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        end = at + size
                        records_11 = data[at:end]
                        at = end
                    else:
                        records_11 = None
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item9 = _new(PartitionProduceData, (index_10, records_11))
                    partition_data_8.append(item9)
            else:
                raise null_in("ProduceRequest.partition_data")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(TopicProduceData, (name_6, topic_id_7, partition_data_8))
            topic_data_4.append(item5)
    else:
        raise null_in("ProduceRequest.topic_data")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ProduceRequest, (transactional_id_1, acks_2, timeout_ms_3, topic_data_4)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    value = body.transactional_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out += _HI.pack(body.acks, body.timeout_ms)
    topic_data_1 = body.topic_data
    if topic_data_1 is None:
        out += b"\x00"
    else:
        size = len(topic_data_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topic_data_1:
            if version <= 12:
                value = item2.name
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
            if version >= 13:
                uuid = item2.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
            partition_data_3 = item2.partition_data
            if partition_data_3 is None:
                out += b"\x00"
            else:
                size = len(partition_data_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in partition_data_3:
                    out += _I.pack(item4.index)
                    value = item4.records
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        add_records(out, data)
                    out.append(0)
            out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 9 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 9 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[ProduceResponse, int]:
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("ProduceResponse.responses", size, left)
        responses_1: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ProduceResponse.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 22 or left < 0:
                    raise too_many("ProduceResponse.partition_responses", size, left)
                partition_responses_4: Any = []
                for _ in range(size):
                    index_6, error_code_7, base_offset_8, log_append_time_ms_9 = _IHQQ.unpack_from(data, at)
                    at += 22
                    log_start_offset_10: Any = -1
                    if version >= 5:
                        (log_start_offset_10,) = _Q.unpack_from(data, at)
                        at += 8
                    record_errors_11: Any = ()
                    if version >= 8:
                        (size,) = _I.unpack_from(data, at)
                        at += 4
                        if size >= 0:
                            left -= size
                            if size > (len(data) - at) // 6 or left < 0:
                                raise too_many("ProduceResponse.record_errors", size, left)
                            record_errors_11 = []
                            for _ in range(size):
                                (batch_index_13,) = _I.unpack_from(data, at)
                                at += 4
                                (size,) = _H.unpack_from(data, at)
                                at += 2
                                if size >= 0:
                                    end = at + size
                                    batch_index_error_message_14 = str(data[at:end], "utf-8")
                                    at = end
                                else:
                                    batch_index_error_message_14 = None
                                item12 = _new(
                                    BatchIndexAndErrorMessage, (batch_index_13, batch_index_error_message_14)
                                )
                                record_errors_11.append(item12)
                        else:
                            raise null_in("ProduceResponse.record_errors")
                    error_message_15: Any = None
                    if version >= 8:
                        (size,) = _H.unpack_from(data, at)
                        at += 2
                        if size >= 0:
                            end = at + size
                            error_message_15 = str(data[at:end], "utf-8")
                            at = end
                        else:
                            error_message_15 = None
                    item5 = _new(
                        PartitionProduceResponse,
                        (
                            index_6,
                            error_code_7,
                            base_offset_8,
                            log_append_time_ms_9,
                            log_start_offset_10,
                            record_errors_11,
                            error_message_15,
                            None,
                        ),
                    )
                    partition_responses_4.append(item5)
            else:
                raise null_in("ProduceResponse.partition_responses")
            item2 = _new(TopicProduceResponse, (name_3, None, partition_responses_4))
            responses_1.append(item2)
    else:
        raise null_in("ProduceResponse.responses")
    (throttle_time_ms_16,) = _I.unpack_from(data, at)
    at += 4
    return _new(ProduceResponse, (responses_1, throttle_time_ms_16, ())), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    responses_1 = body.responses
    if responses_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(responses_1))
        for item2 in responses_1:
            value = item2.name
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            partition_responses_3 = item2.partition_responses
            if partition_responses_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(partition_responses_3))
                for item4 in partition_responses_3:
                    out += _IHQQ.pack(
                        item4.index, item4.error_code, item4.base_offset, item4.log_append_time_ms
                    )
                    if version >= 5:
                        out += _Q.pack(item4.log_start_offset)
                    if version >= 8:
                        record_errors_5 = item4.record_errors
                        if record_errors_5 is None:
                            out += b"\xff\xff\xff\xff"
                        else:
                            out += _I.pack(len(record_errors_5))
                            for item6 in record_errors_5:
                                out += _I.pack(item6.batch_index)
                                value = item6.batch_index_error_message
                                if value is None:
                                    out += b"\xff\xff"
                                else:
                                    data = value.encode()
                                    out += _H.pack(len(data))
                                    out += data
                    if version >= 8:
                        value = item4.error_message
                        if value is None:
                            out += b"\xff\xff"
                        else:
                            data = value.encode()
                            out += _H.pack(len(data))
                            out += data
    out += _I.pack(body.throttle_time_ms)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[ProduceResponse, int]:
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("ProduceResponse.responses", size, left)
        responses_1: Any = []
        for _ in range(size):
            name_3: Any = ""
            if version <= 12:
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    name_3 = str(data[at + 1 : end], "utf-8")
                    at = end
                else:
                    name_3, at = read_compact_string(data, at)
                    if name_3 is None:
                        raise null_in("ProduceResponse.name")
            topic_id_4: Any = None
            if version >= 13:
                topic_id_4 = read_uuid(data[at : at + 16])
                at += 16
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 33 or left < 0:
                    raise too_many("ProduceResponse.partition_responses", size, left)
                partition_responses_5: Any = []
                for _ in range(size):
                    index_7, error_code_8, base_offset_9, log_append_time_ms_10, log_start_offset_11 = (
                        _IHQQQ.unpack_from(data, at)
                    )
                    at += 30
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 6 or left < 0:
                            raise too_many("ProduceResponse.record_errors", size, left)
                        end = at + 6 * size
                        if (
                            size > 1
                            and data[at + 4 : end : 6] == b"\x00" * size
                            and data[at + 5 : end : 6] == b"\x00" * size
                        ):
                            record_errors_12: Any = [
                                _new(BatchIndexAndErrorMessage, (batch_index_, None))
                                for (batch_index_,) in _IXX.iter_unpack(data[at:end])
                            ]
                            at = end
                        else:
                            record_errors_12 = []
                            for _ in range(size):
                                (batch_index_14,) = _I.unpack_from(data, at)
                                at += 4
                                size = data[at]
                                if 0 < size < 128:
                                    end = at + size
                                    batch_index_error_message_15 = str(data[at + 1 : end], "utf-8")
                                    at = end
                                elif not size:
                                    batch_index_error_message_15 = None
                                    at += 1
                                else:
                                    batch_index_error_message_15, at = read_compact_string(data, at)
                                if data[at]:
                                    at = skip_tags(data, at)
                                else:
                                    at += 1
                                item13 = _new(
                                    BatchIndexAndErrorMessage, (batch_index_14, batch_index_error_message_15)
                                )
                                record_errors_12.append(item13)
                    else:
                        raise null_in("ProduceResponse.record_errors")
                    size = data[at]
                    if 0 < size < 128:
                        end = at + size
                        error_message_16 = str(data[at + 1 : end], "utf-8")
                        at = end
                    elif not size:
                        error_message_16 = None
                        at += 1
                    else:
                        error_message_16, at = read_compact_string(data, at)
                    current_leader_17: Any = None
                    if data[at]:
                        tags, at = read_tags(data, at)
                        for tag18, start, stop in tags:
                            if tag18 == 0 and version >= 10:
                                at = start
                                leader_id_19, leader_epoch_20 = _II.unpack_from(data, at)
                                at += 8
                                if data[at]:
                                    at = skip_tags(data, at)
                                else:
                                    at += 1
                                current_leader_17 = _new(LeaderIdAndEpoch, (leader_id_19, leader_epoch_20))
                                if at != stop:
                                    raise malformed("a tagged field of another length than it says")
                            at = stop
                    else:
                        at += 1
                    item6 = _new(
                        PartitionProduceResponse,
                        (
                            index_7,
                            error_code_8,
                            base_offset_9,
                            log_append_time_ms_10,
                            log_start_offset_11,
                            record_errors_12,
                            error_message_16,
                            current_leader_17,
                        ),
                    )
                    partition_responses_5.append(item6)
            else:
                raise null_in("ProduceResponse.partition_responses")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(TopicProduceResponse, (name_3, topic_id_4, partition_responses_5))
            responses_1.append(item2)
    else:
        raise null_in("ProduceResponse.responses")
    (throttle_time_ms_21,) = _I.unpack_from(data, at)
    at += 4
    node_endpoints_22: Any = ()
    if data[at]:
        tags, at = read_tags(data, at)
        for tag23, start, stop in tags:
            if tag23 == 0 and version >= 10:
                at = start
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    left -= size
                    if size > (len(data) - at) // 11 or left < 0:
                        raise too_many("ProduceResponse.node_endpoints", size, left)
                    node_endpoints_22 = []
                    for _ in range(size):
                        (node_id_25,) = _I.unpack_from(data, at)
                        at += 4
                        size = data[at]
                        if 0 < size < 128:
                            end = at + size
                            host_26 = str(data[at + 1 : end], "utf-8")
                            at = end
                        else:
                            host_26, at = read_compact_string(data, at)
                            if host_26 is None:
                                raise null_in("ProduceResponse.host")
                        (port_27,) = _I.unpack_from(data, at)
                        at += 4
                        size = data[at]
                        if 0 < size < 128:
                            end = at + size
                            rack_28 = str(data[at + 1 : end], "utf-8")
                            at = end
                        elif not size:
                            rack_28 = None
                            at += 1
                        else:
                            rack_28, at = read_compact_string(data, at)
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item24 = _new(NodeEndpoint, (node_id_25, host_26, port_27, rack_28))
                        node_endpoints_22.append(item24)
                else:
                    raise null_in("ProduceResponse.node_endpoints")
                if at != stop:
                    raise malformed("a tagged field of another length than it says")
            at = stop
    else:
        at += 1
    return _new(ProduceResponse, (responses_1, throttle_time_ms_21, node_endpoints_22)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    responses_1 = body.responses
    if responses_1 is None:
        out += b"\x00"
    else:
        size = len(responses_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in responses_1:
            if version <= 12:
                value = item2.name
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
            if version >= 13:
                uuid = item2.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
            partition_responses_3 = item2.partition_responses
            if partition_responses_3 is None:
                out += b"\x00"
            else:
                size = len(partition_responses_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in partition_responses_3:
                    out += _IHQQQ.pack(
                        item4.index,
                        item4.error_code,
                        item4.base_offset,
                        item4.log_append_time_ms,
                        item4.log_start_offset,
                    )
                    record_errors_5 = item4.record_errors
                    if record_errors_5 is None:
                        out += b"\x00"
                    else:
                        size = len(record_errors_5) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        for item6 in record_errors_5:
                            out += _I.pack(item6.batch_index)
                            value = item6.batch_index_error_message
                            if value is None:
                                out += b"\x00"
                            else:
                                data = value.encode()
                                size = len(data) + 1
                                out += varint(size) if size > 127 else BYTES[size]
                                out += data
                            out.append(0)
                    value = item4.error_message
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    tags7 = []
                    current_leader_8 = getattr(item4, "current_leader", None)
                    if current_leader_8 is not None and (version >= 10):
                        whole9, out = out, bytearray()
                        current_leader_10 = current_leader_8
                        out += _IIX.pack(current_leader_10.leader_id, current_leader_10.leader_epoch)
                        tags7.append((0, out))
                        out = whole9
                    write_tags(out, tags7)
            out.append(0)
    out += _I.pack(body.throttle_time_ms)
    tags11 = []
    node_endpoints_12 = getattr(body, "node_endpoints", ())
    if node_endpoints_12 and (version >= 10):
        whole13, out = out, bytearray()
        node_endpoints_14 = node_endpoints_12
        if node_endpoints_14 is None:
            out += b"\x00"
        else:
            size = len(node_endpoints_14) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item15 in node_endpoints_14:
                out += _I.pack(item15.node_id)
                value = item15.host
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                out += _I.pack(item15.port)
                value = item15.rack
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                out.append(0)
        tags11.append((0, out))
        out = whole13
    write_tags(out, tags11)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 9 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 9 else _write_response_classic
