"""AlterPartition (56), versions 2 to 3. Written by scripts/generate_messages.py: do not edit."""

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
    read_uuid,
    skip_tags,
    unpack_from,
    write_compact_count,
)

_BI = Struct(">bi")
_BIX = Struct(">bix")
_IH = Struct(">ih")
_IHII = Struct(">ihii")
_II = Struct(">ii")
_IQ = Struct(">iq")
_IQX = Struct(">iqx")


class BrokerState(NamedTuple):
    """BrokerState of AlterPartition."""

    broker_id: int = 0
    broker_epoch: int = -1


class RequestPartitionData(NamedTuple):
    """RequestPartitionData of AlterPartition."""

    partition_index: int = 0
    leader_epoch: int = 0
    new_isr: Sequence[int] = ()
    new_isr_with_epochs: Sequence[BrokerState] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0


class RequestTopicData(NamedTuple):
    """RequestTopicData of AlterPartition."""

    topic_id: UUID | None = None
    partitions: Sequence[RequestPartitionData] = ()


class AlterPartitionRequest(NamedTuple):
    """AlterPartition request, v2-3."""

    broker_id: int = 0
    broker_epoch: int = -1
    topics: Sequence[RequestTopicData] = ()

    @staticmethod
    def response_type() -> type[AlterPartitionResponse]:
        return AlterPartitionResponse


AlterPartitionRequest.API_KEY = 56  # type: ignore[attr-defined]


class ResponsePartitionData(NamedTuple):
    """ResponsePartitionData of AlterPartition."""

    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: Sequence[int] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0


class ResponseTopicData(NamedTuple):
    """ResponseTopicData of AlterPartition."""

    topic_id: UUID | None = None
    partitions: Sequence[ResponsePartitionData] = ()


class AlterPartitionResponse(NamedTuple):
    """AlterPartition response, v2-3."""

    throttle_time_ms: int = 0
    error_code: int = 0
    topics: Sequence[ResponseTopicData] = ()


AlterPartitionResponse.API_KEY = 56  # type: ignore[attr-defined]


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[AlterPartitionRequest, int]:
    broker_id_1, broker_epoch_2 = _IQ.unpack_from(data, at)
    at += 12
    size, at, left = read_compact_count(data, at, left, 18, "AlterPartitionRequest.topics")
    topics_3: Any = None if size < 0 else []
    for _ in range(size):
        topic_id_5 = read_uuid(data[at : at + 16])
        at += 16
        size, at, left = read_compact_count(data, at, left, 14, "AlterPartitionRequest.partitions")
        partitions_6: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_8, leader_epoch_9 = _II.unpack_from(data, at)
            at += 8
            new_isr_10: Any = ()
            if version <= 2:
                size, at, left = read_compact_count(data, at, left, 4, "AlterPartitionRequest.new_isr")
                new_isr_10 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
                at += 4 * max(size, 0)
                if new_isr_10 is None:
                    raise null_in("AlterPartitionRequest.new_isr")
            new_isr_with_epochs_11: Any = ()
            if version >= 3:
                size, at, left = read_compact_count(
                    data, at, left, 13, "AlterPartitionRequest.new_isr_with_epochs"
                )
                new_isr_with_epochs_11 = None if size < 0 else []
                for _ in range(size):
                    broker_id_13, broker_epoch_14 = _IQ.unpack_from(data, at)
                    at += 12
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item12 = _new(BrokerState, (broker_id_13, broker_epoch_14))
                    new_isr_with_epochs_11.append(item12)
                if new_isr_with_epochs_11 is None:
                    raise null_in("AlterPartitionRequest.new_isr_with_epochs")
            leader_recovery_state_15, partition_epoch_16 = _BI.unpack_from(data, at)
            at += 5
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item7 = _new(
                RequestPartitionData,
                (
                    partition_index_8,
                    leader_epoch_9,
                    new_isr_10,
                    new_isr_with_epochs_11,
                    leader_recovery_state_15,
                    partition_epoch_16,
                ),
            )
            partitions_6.append(item7)
        if partitions_6 is None:
            raise null_in("AlterPartitionRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item4 = _new(RequestTopicData, (topic_id_5, partitions_6))
        topics_3.append(item4)
    if topics_3 is None:
        raise null_in("AlterPartitionRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterPartitionRequest, (broker_id_1, broker_epoch_2, topics_3)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _IQ.pack(body.broker_id, body.broker_epoch)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        uuid = item2.topic_id
        out += NO_UUID if uuid is None else uuid.bytes
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _II.pack(item4.partition_index, item4.leader_epoch)
            if version <= 2:
                new_isr_5 = item4.new_isr
                write_compact_count(out, new_isr_5)
                out += pack(f">{len(new_isr_5 or ())}i", *(new_isr_5 or ()))
            if version >= 3:
                new_isr_with_epochs_7 = item4.new_isr_with_epochs
                write_compact_count(out, new_isr_with_epochs_7)
                for item8 in new_isr_with_epochs_7 or ():
                    out += _IQX.pack(item8.broker_id, item8.broker_epoch)
            out += _BIX.pack(item4.leader_recovery_state, item4.partition_epoch)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterPartitionResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size, at, left = read_compact_count(data, at, left, 18, "AlterPartitionResponse.topics")
    topics_3: Any = None if size < 0 else []
    for _ in range(size):
        topic_id_5 = read_uuid(data[at : at + 16])
        at += 16
        size, at, left = read_compact_count(data, at, left, 21, "AlterPartitionResponse.partitions")
        partitions_6: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_8, error_code_9, leader_id_10, leader_epoch_11 = _IHII.unpack_from(data, at)
            at += 14
            size, at, left = read_compact_count(data, at, left, 4, "AlterPartitionResponse.isr")
            isr_12 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if isr_12 is None:
                raise null_in("AlterPartitionResponse.isr")
            leader_recovery_state_13, partition_epoch_14 = _BI.unpack_from(data, at)
            at += 5
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item7 = _new(
                ResponsePartitionData,
                (
                    partition_index_8,
                    error_code_9,
                    leader_id_10,
                    leader_epoch_11,
                    isr_12,
                    leader_recovery_state_13,
                    partition_epoch_14,
                ),
            )
            partitions_6.append(item7)
        if partitions_6 is None:
            raise null_in("AlterPartitionResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item4 = _new(ResponseTopicData, (topic_id_5, partitions_6))
        topics_3.append(item4)
    if topics_3 is None:
        raise null_in("AlterPartitionResponse.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterPartitionResponse, (throttle_time_ms_1, error_code_2, topics_3)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        uuid = item2.topic_id
        out += NO_UUID if uuid is None else uuid.bytes
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IHII.pack(item4.partition_index, item4.error_code, item4.leader_id, item4.leader_epoch)
            isr_5 = item4.isr
            write_compact_count(out, isr_5)
            out += pack(f">{len(isr_5 or ())}i", *(isr_5 or ()))
            out += _BIX.pack(item4.leader_recovery_state, item4.partition_epoch)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response(version: int) -> Any:
    return _write_response_flexible
