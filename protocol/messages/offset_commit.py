"""OffsetCommit (8), versions 2 to 10. Written by scripts/generate_messages.py: do not edit."""

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
    read_compact_string,
    read_uuid,
    skip_tags,
    too_many,
    varint,
)

_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")
_IHX = Struct(">ihx")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")
_IQIXX = Struct(">iqixx")
_Q = Struct(">q")


class OffsetCommitRequestPartition(NamedTuple):
    """OffsetCommitRequestPartition of OffsetCommit."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


class OffsetCommitRequestTopic(NamedTuple):
    """OffsetCommitRequestTopic of OffsetCommit."""

    name: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[OffsetCommitRequestPartition] = ()


class OffsetCommitRequest(NamedTuple):
    """OffsetCommit request, v2-10."""

    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: Sequence[OffsetCommitRequestTopic] = ()

    @staticmethod
    def response_type() -> type[OffsetCommitResponse]:
        return OffsetCommitResponse


OffsetCommitRequest.API_KEY = 8  # type: ignore[attr-defined]


class OffsetCommitResponsePartition(NamedTuple):
    """OffsetCommitResponsePartition of OffsetCommit."""

    partition_index: int = 0
    error_code: int = 0


class OffsetCommitResponseTopic(NamedTuple):
    """OffsetCommitResponseTopic of OffsetCommit."""

    name: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[OffsetCommitResponsePartition] = ()


class OffsetCommitResponse(NamedTuple):
    """OffsetCommit response, v2-10."""

    throttle_time_ms: int = 0
    topics: Sequence[OffsetCommitResponseTopic] = ()


OffsetCommitResponse.API_KEY = 8  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[OffsetCommitRequest, int]:
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        group_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("OffsetCommitRequest.group_id")
    (generation_id_or_member_epoch_2,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        member_id_3 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("OffsetCommitRequest.member_id")
    group_instance_id_4: Any = None
    if version >= 7:
        (size,) = _H.unpack_from(data, at)
        at += 2
        if size >= 0:
            end = at + size
            group_instance_id_4 = str(data[at:end], "utf-8")
            at = end
        else:
            group_instance_id_4 = None
    retention_time_ms_5: Any = -1
    if version <= 4:
        (retention_time_ms_5,) = _Q.unpack_from(data, at)
        at += 8
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("OffsetCommitRequest.topics", size, left)
        topics_6: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_8 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("OffsetCommitRequest.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 14 or left < 0:
                    raise too_many("OffsetCommitRequest.partitions", size, left)
                partitions_9: Any = []
                for _ in range(size):
                    partition_index_11, committed_offset_12 = _IQ.unpack_from(data, at)
                    at += 12
                    committed_leader_epoch_13: Any = -1
                    if version >= 6:
                        (committed_leader_epoch_13,) = _I.unpack_from(data, at)
                        at += 4
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        committed_metadata_14 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        committed_metadata_14 = None
                    item10 = _new(
                        OffsetCommitRequestPartition,
                        (
                            partition_index_11,
                            committed_offset_12,
                            committed_leader_epoch_13,
                            committed_metadata_14,
                        ),
                    )
                    partitions_9.append(item10)
            else:
                raise null_in("OffsetCommitRequest.partitions")
            item7 = _new(OffsetCommitRequestTopic, (name_8, None, partitions_9))
            topics_6.append(item7)
    else:
        raise null_in("OffsetCommitRequest.topics")
    return _new(
        OffsetCommitRequest,
        (
            group_id_1,
            generation_id_or_member_epoch_2,
            member_id_3,
            group_instance_id_4,
            retention_time_ms_5,
            topics_6,
        ),
    ), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    value = body.group_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    out += _I.pack(body.generation_id_or_member_epoch)
    value = body.member_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    if version >= 7:
        value = body.group_instance_id
        if value is None:
            out += b"\xff\xff"
        else:
            data = value.encode()
            out += _H.pack(len(data))
            out += data
    if version <= 4:
        out += _Q.pack(body.retention_time_ms)
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
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(partitions_3))
                for item4 in partitions_3:
                    out += _IQ.pack(item4.partition_index, item4.committed_offset)
                    if version >= 6:
                        out += _I.pack(item4.committed_leader_epoch)
                    value = item4.committed_metadata
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[OffsetCommitRequest, int]:
    size = data[at]
    if 0 < size < 128:
        end = at + size
        group_id_1 = data[at + 1 : end].decode()
        at = end
    else:
        group_id_1, at = read_compact_string(data, at)
        if group_id_1 is None:
            raise null_in("OffsetCommitRequest.group_id")
    (generation_id_or_member_epoch_2,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    if 0 < size < 128:
        end = at + size
        member_id_3 = data[at + 1 : end].decode()
        at = end
    else:
        member_id_3, at = read_compact_string(data, at)
        if member_id_3 is None:
            raise null_in("OffsetCommitRequest.member_id")
    size = data[at]
    if 0 < size < 128:
        end = at + size
        group_instance_id_4 = data[at + 1 : end].decode()
        at = end
    elif not size:
        group_instance_id_4 = None
        at += 1
    else:
        group_instance_id_4, at = read_compact_string(data, at)
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("OffsetCommitRequest.topics", size, left)
        topics_5: Any = []
        for _ in range(size):
            name_7: Any = ""
            if version <= 9:
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    name_7 = data[at + 1 : end].decode()
                    at = end
                else:
                    name_7, at = read_compact_string(data, at)
                    if name_7 is None:
                        raise null_in("OffsetCommitRequest.name")
            topic_id_8: Any = None
            if version >= 10:
                topic_id_8 = read_uuid(data[at : at + 16])
                at += 16
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 18 or left < 0:
                    raise too_many("OffsetCommitRequest.partitions", size, left)
                end = at + 18 * size
                if (
                    size > 1
                    and data[at + 16 : end : 18] == b"\x01" * size
                    and data[at + 17 : end : 18] == b"\x00" * size
                ):
                    partitions_9: Any = [
                        _new(
                            OffsetCommitRequestPartition,
                            (partition_index_, committed_offset_, committed_leader_epoch_, ""),
                        )
                        for partition_index_, committed_offset_, committed_leader_epoch_ in _IQIXX.iter_unpack(
                            data[at:end]
                        )
                    ]
                    at = end
                else:
                    partitions_9 = []
                    for _ in range(size):
                        partition_index_11, committed_offset_12, committed_leader_epoch_13 = _IQI.unpack_from(
                            data, at
                        )
                        at += 16
                        size = data[at]
                        if 0 < size < 128:
                            end = at + size
                            committed_metadata_14 = data[at + 1 : end].decode()
                            at = end
                        elif not size:
                            committed_metadata_14 = None
                            at += 1
                        else:
                            committed_metadata_14, at = read_compact_string(data, at)
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item10 = _new(
                            OffsetCommitRequestPartition,
                            (
                                partition_index_11,
                                committed_offset_12,
                                committed_leader_epoch_13,
                                committed_metadata_14,
                            ),
                        )
                        partitions_9.append(item10)
            else:
                raise null_in("OffsetCommitRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(OffsetCommitRequestTopic, (name_7, topic_id_8, partitions_9))
            topics_5.append(item6)
    else:
        raise null_in("OffsetCommitRequest.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(
        OffsetCommitRequest,
        (group_id_1, generation_id_or_member_epoch_2, member_id_3, group_instance_id_4, -1, topics_5),
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
    out += _I.pack(body.generation_id_or_member_epoch)
    value = body.member_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    value = body.group_instance_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\x00"
    else:
        size = len(topics_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topics_1:
            if version <= 9:
                value = item2.name
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
            if version >= 10:
                uuid = item2.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\x00"
            else:
                size = len(partitions_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in partitions_3:
                    out += _IQI.pack(
                        item4.partition_index, item4.committed_offset, item4.committed_leader_epoch
                    )
                    value = item4.committed_metadata
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    out.append(0)
            out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 8 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 8 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[OffsetCommitResponse, int]:
    throttle_time_ms_1: Any = 0
    if version >= 3:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("OffsetCommitResponse.topics", size, left)
        topics_2: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("OffsetCommitResponse.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("OffsetCommitResponse.partitions", size, left)
                end = at + 6 * size
                if size > 1:
                    partitions_5: Any = [
                        _new(OffsetCommitResponsePartition, (partition_index_, error_code_))
                        for partition_index_, error_code_ in _IH.iter_unpack(data[at:end])
                    ]
                    at = end
                else:
                    partitions_5 = []
                    for _ in range(size):
                        partition_index_7, error_code_8 = _IH.unpack_from(data, at)
                        at += 6
                        item6 = _new(OffsetCommitResponsePartition, (partition_index_7, error_code_8))
                        partitions_5.append(item6)
            else:
                raise null_in("OffsetCommitResponse.partitions")
            item3 = _new(OffsetCommitResponseTopic, (name_4, None, partitions_5))
            topics_2.append(item3)
    else:
        raise null_in("OffsetCommitResponse.topics")
    return _new(OffsetCommitResponse, (throttle_time_ms_1, topics_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 3:
        out += _I.pack(body.throttle_time_ms)
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
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(partitions_3))
                out += b"".join([_IH.pack(item4.partition_index, item4.error_code) for item4 in partitions_3])


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[OffsetCommitResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 2 or left < 0:
            raise too_many("OffsetCommitResponse.topics", size, left)
        topics_2: Any = []
        for _ in range(size):
            name_4: Any = ""
            if version <= 9:
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    name_4 = str(data[at + 1 : end], "utf-8")
                    at = end
                else:
                    name_4, at = read_compact_string(data, at)
                    if name_4 is None:
                        raise null_in("OffsetCommitResponse.name")
            topic_id_5: Any = None
            if version >= 10:
                topic_id_5 = read_uuid(data[at : at + 16])
                at += 16
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 7 or left < 0:
                    raise too_many("OffsetCommitResponse.partitions", size, left)
                end = at + 7 * size
                if size > 1 and data[at + 6 : end : 7] == b"\x00" * size:
                    partitions_6: Any = [
                        _new(OffsetCommitResponsePartition, (partition_index_, error_code_))
                        for partition_index_, error_code_ in _IHX.iter_unpack(data[at:end])
                    ]
                    at = end
                else:
                    partitions_6 = []
                    for _ in range(size):
                        partition_index_8, error_code_9 = _IH.unpack_from(data, at)
                        at += 6
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item7 = _new(OffsetCommitResponsePartition, (partition_index_8, error_code_9))
                        partitions_6.append(item7)
            else:
                raise null_in("OffsetCommitResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(OffsetCommitResponseTopic, (name_4, topic_id_5, partitions_6))
            topics_2.append(item3)
    else:
        raise null_in("OffsetCommitResponse.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(OffsetCommitResponse, (throttle_time_ms_1, topics_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\x00"
    else:
        size = len(topics_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topics_1:
            if version <= 9:
                value = item2.name
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
            if version >= 10:
                uuid = item2.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
            partitions_3 = item2.partitions
            if partitions_3 is None:
                out += b"\x00"
            else:
                size = len(partitions_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += b"".join(
                    [_IHX.pack(item4.partition_index, item4.error_code) for item4 in partitions_3]
                )
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 8 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 8 else _write_response_classic
