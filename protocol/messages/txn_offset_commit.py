"""TxnOffsetCommit (28), versions 0 to 5. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    null_in,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    skip_tags,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
)

_I = Struct(">i")
_IH = Struct(">ih")
_IHX = Struct(">ihx")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")
_QH = Struct(">qh")
_QHI = Struct(">qhi")


class TxnOffsetCommitRequestPartition(NamedTuple):
    """TxnOffsetCommitRequestPartition of TxnOffsetCommit."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


class TxnOffsetCommitRequestTopic(NamedTuple):
    """TxnOffsetCommitRequestTopic of TxnOffsetCommit."""

    name: str = ""
    partitions: Sequence[TxnOffsetCommitRequestPartition] = ()


class TxnOffsetCommitRequest(NamedTuple):
    """TxnOffsetCommit request, v0-5."""

    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: Sequence[TxnOffsetCommitRequestTopic] = ()

    @staticmethod
    def response_type() -> type[TxnOffsetCommitResponse]:
        return TxnOffsetCommitResponse


TxnOffsetCommitRequest.API_KEY = 28  # type: ignore[attr-defined]


class TxnOffsetCommitResponsePartition(NamedTuple):
    """TxnOffsetCommitResponsePartition of TxnOffsetCommit."""

    partition_index: int = 0
    error_code: int = 0


class TxnOffsetCommitResponseTopic(NamedTuple):
    """TxnOffsetCommitResponseTopic of TxnOffsetCommit."""

    name: str = ""
    partitions: Sequence[TxnOffsetCommitResponsePartition] = ()


class TxnOffsetCommitResponse(NamedTuple):
    """TxnOffsetCommit response, v0-5."""

    throttle_time_ms: int = 0
    topics: Sequence[TxnOffsetCommitResponseTopic] = ()


TxnOffsetCommitResponse.API_KEY = 28  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[TxnOffsetCommitRequest, int]:
    transactional_id_1, at = read_string(data, at)
    if transactional_id_1 is None:
        raise null_in("TxnOffsetCommitRequest.transactional_id")
    group_id_2, at = read_string(data, at)
    if group_id_2 is None:
        raise null_in("TxnOffsetCommitRequest.group_id")
    producer_id_3, producer_epoch_4 = _QH.unpack_from(data, at)
    at += 10
    size, at, left = read_count(data, at, left, 6, "TxnOffsetCommitRequest.topics")
    topics_5: Any = None if size < 0 else []
    for _ in range(size):
        name_7, at = read_string(data, at)
        if name_7 is None:
            raise null_in("TxnOffsetCommitRequest.name")
        size, at, left = read_count(data, at, left, 14, "TxnOffsetCommitRequest.partitions")
        partitions_8: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_10, committed_offset_11 = _IQ.unpack_from(data, at)
            at += 12
            committed_leader_epoch_12: Any = -1
            if version >= 2:
                (committed_leader_epoch_12,) = _I.unpack_from(data, at)
                at += 4
            committed_metadata_13, at = read_string(data, at)
            item9 = _new(
                TxnOffsetCommitRequestPartition,
                (partition_index_10, committed_offset_11, committed_leader_epoch_12, committed_metadata_13),
            )
            partitions_8.append(item9)
        if partitions_8 is None:
            raise null_in("TxnOffsetCommitRequest.partitions")
        item6 = _new(TxnOffsetCommitRequestTopic, (name_7, partitions_8))
        topics_5.append(item6)
    if topics_5 is None:
        raise null_in("TxnOffsetCommitRequest.topics")
    return _new(
        TxnOffsetCommitRequest,
        (transactional_id_1, group_id_2, producer_id_3, producer_epoch_4, -1, "", None, topics_5),
    ), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    write_string(out, body.transactional_id)
    write_string(out, body.group_id)
    out += _QH.pack(body.producer_id, body.producer_epoch)
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.name)
        partitions_3 = item2.partitions
        write_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IQ.pack(item4.partition_index, item4.committed_offset)
            if version >= 2:
                out += _I.pack(item4.committed_leader_epoch)
            write_string(out, item4.committed_metadata)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[TxnOffsetCommitRequest, int]:
    del version
    transactional_id_1, at = read_compact_string(data, at)
    if transactional_id_1 is None:
        raise null_in("TxnOffsetCommitRequest.transactional_id")
    group_id_2, at = read_compact_string(data, at)
    if group_id_2 is None:
        raise null_in("TxnOffsetCommitRequest.group_id")
    producer_id_3, producer_epoch_4, generation_id_5 = _QHI.unpack_from(data, at)
    at += 14
    member_id_6, at = read_compact_string(data, at)
    if member_id_6 is None:
        raise null_in("TxnOffsetCommitRequest.member_id")
    group_instance_id_7, at = read_compact_string(data, at)
    size, at, left = read_compact_count(data, at, left, 3, "TxnOffsetCommitRequest.topics")
    topics_8: Any = None if size < 0 else []
    for _ in range(size):
        name_10, at = read_compact_string(data, at)
        if name_10 is None:
            raise null_in("TxnOffsetCommitRequest.name")
        size, at, left = read_compact_count(data, at, left, 18, "TxnOffsetCommitRequest.partitions")
        partitions_11: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_13, committed_offset_14, committed_leader_epoch_15 = _IQI.unpack_from(data, at)
            at += 16
            committed_metadata_16, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item12 = _new(
                TxnOffsetCommitRequestPartition,
                (partition_index_13, committed_offset_14, committed_leader_epoch_15, committed_metadata_16),
            )
            partitions_11.append(item12)
        if partitions_11 is None:
            raise null_in("TxnOffsetCommitRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item9 = _new(TxnOffsetCommitRequestTopic, (name_10, partitions_11))
        topics_8.append(item9)
    if topics_8 is None:
        raise null_in("TxnOffsetCommitRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        TxnOffsetCommitRequest,
        (
            transactional_id_1,
            group_id_2,
            producer_id_3,
            producer_epoch_4,
            generation_id_5,
            member_id_6,
            group_instance_id_7,
            topics_8,
        ),
    ), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    write_compact_string(out, body.transactional_id)
    write_compact_string(out, body.group_id)
    out += _QHI.pack(body.producer_id, body.producer_epoch, body.generation_id)
    write_compact_string(out, body.member_id)
    write_compact_string(out, body.group_instance_id)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IQI.pack(item4.partition_index, item4.committed_offset, item4.committed_leader_epoch)
            write_compact_string(out, item4.committed_metadata)
            out.append(0)
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 3 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 3 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[TxnOffsetCommitResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 6, "TxnOffsetCommitResponse.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_string(data, at)
        if name_4 is None:
            raise null_in("TxnOffsetCommitResponse.name")
        size, at, left = read_count(data, at, left, 6, "TxnOffsetCommitResponse.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_7, error_code_8 = _IH.unpack_from(data, at)
            at += 6
            item6 = _new(TxnOffsetCommitResponsePartition, (partition_index_7, error_code_8))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("TxnOffsetCommitResponse.partitions")
        item3 = _new(TxnOffsetCommitResponseTopic, (name_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("TxnOffsetCommitResponse.topics")
    return _new(TxnOffsetCommitResponse, (throttle_time_ms_1, topics_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.name)
        partitions_3 = item2.partitions
        write_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IH.pack(item4.partition_index, item4.error_code)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[TxnOffsetCommitResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 3, "TxnOffsetCommitResponse.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_compact_string(data, at)
        if name_4 is None:
            raise null_in("TxnOffsetCommitResponse.name")
        size, at, left = read_compact_count(data, at, left, 7, "TxnOffsetCommitResponse.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_7, error_code_8 = _IH.unpack_from(data, at)
            at += 6
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(TxnOffsetCommitResponsePartition, (partition_index_7, error_code_8))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("TxnOffsetCommitResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(TxnOffsetCommitResponseTopic, (name_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("TxnOffsetCommitResponse.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(TxnOffsetCommitResponse, (throttle_time_ms_1, topics_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IHX.pack(item4.partition_index, item4.error_code)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
