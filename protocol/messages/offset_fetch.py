"""OffsetFetch (9), versions 1 to 10. Written by scripts/generate_messages.py: do not edit."""

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
_H = Struct(">h")
_HX = Struct(">hx")
_I = Struct(">i")
_IQ = Struct(">iq")
_IQI = Struct(">iqi")
_IQIXHX = Struct(">iqixhx")


class OffsetFetchRequestTopic(NamedTuple):
    """OffsetFetchRequestTopic of OffsetFetch."""

    name: str = ""
    partition_indexes: Sequence[int] = ()


class OffsetFetchRequestTopics(NamedTuple):
    """OffsetFetchRequestTopics of OffsetFetch."""

    name: str = ""
    topic_id: UUID | None = None
    partition_indexes: Sequence[int] = ()


class OffsetFetchRequestGroup(NamedTuple):
    """OffsetFetchRequestGroup of OffsetFetch."""

    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: Sequence[OffsetFetchRequestTopics] | None = ()


class OffsetFetchRequest(NamedTuple):
    """OffsetFetch request, v1-10."""

    group_id: str = ""
    topics: Sequence[OffsetFetchRequestTopic] | None = ()
    groups: Sequence[OffsetFetchRequestGroup] = ()
    require_stable: bool = False

    @staticmethod
    def response_type() -> type[OffsetFetchResponse]:
        return OffsetFetchResponse


OffsetFetchRequest.API_KEY = 9  # type: ignore[attr-defined]


class OffsetFetchResponsePartition(NamedTuple):
    """OffsetFetchResponsePartition of OffsetFetch."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


class OffsetFetchResponseTopic(NamedTuple):
    """OffsetFetchResponseTopic of OffsetFetch."""

    name: str = ""
    partitions: Sequence[OffsetFetchResponsePartition] = ()


class OffsetFetchResponsePartitions(NamedTuple):
    """OffsetFetchResponsePartitions of OffsetFetch."""

    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


class OffsetFetchResponseTopics(NamedTuple):
    """OffsetFetchResponseTopics of OffsetFetch."""

    name: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[OffsetFetchResponsePartitions] = ()


class OffsetFetchResponseGroup(NamedTuple):
    """OffsetFetchResponseGroup of OffsetFetch."""

    group_id: str = ""
    topics: Sequence[OffsetFetchResponseTopics] = ()
    error_code: int = 0


class OffsetFetchResponse(NamedTuple):
    """OffsetFetch response, v1-10."""

    throttle_time_ms: int = 0
    topics: Sequence[OffsetFetchResponseTopic] = ()
    error_code: int = 0
    groups: Sequence[OffsetFetchResponseGroup] = ()


OffsetFetchResponse.API_KEY = 9  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[OffsetFetchRequest, int]:
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        group_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("OffsetFetchRequest.group_id")
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("OffsetFetchRequest.topics", size, left)
        topics_2: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("OffsetFetchRequest.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("OffsetFetchRequest.partition_indexes", size, left)
                partition_indexes_5 = list(unpack_from(f">{size}i", data, at))
                at += 4 * size
            else:
                raise null_in("OffsetFetchRequest.partition_indexes")
            item3 = _new(OffsetFetchRequestTopic, (name_4, partition_indexes_5))
            topics_2.append(item3)
    elif version >= 2:
        topics_2 = None
    else:
        raise null_in("OffsetFetchRequest.topics")
    return _new(OffsetFetchRequest, (group_id_1, topics_2, (), False)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    value = body.group_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
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
            partition_indexes_3 = item2.partition_indexes
            if partition_indexes_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(partition_indexes_3))
                out += pack(f">{len(partition_indexes_3)}i", *partition_indexes_3)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[OffsetFetchRequest, int]:
    group_id_1: Any = ""
    if version <= 7:
        size = data[at]
        if 0 < size < 128:
            end = at + size
            group_id_1 = data[at + 1 : end].decode()
            at = end
        else:
            group_id_1, at = read_compact_string(data, at)
            if group_id_1 is None:
                raise null_in("OffsetFetchRequest.group_id")
    topics_2: Any = ()
    if version <= 7:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 3 or left < 0:
                raise too_many("OffsetFetchRequest.topics", size, left)
            topics_2 = []
            for _ in range(size):
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    name_4 = data[at + 1 : end].decode()
                    at = end
                else:
                    name_4, at = read_compact_string(data, at)
                    if name_4 is None:
                        raise null_in("OffsetFetchRequest.name")
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    left -= size
                    if size > (len(data) - at) // 4 or left < 0:
                        raise too_many("OffsetFetchRequest.partition_indexes", size, left)
                    partition_indexes_5 = list(unpack_from(f">{size}i", data, at))
                    at += 4 * size
                else:
                    raise null_in("OffsetFetchRequest.partition_indexes")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item3 = _new(OffsetFetchRequestTopic, (name_4, partition_indexes_5))
                topics_2.append(item3)
        else:
            topics_2 = None
    groups_6: Any = ()
    if version >= 8:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 3 or left < 0:
                raise too_many("OffsetFetchRequest.groups", size, left)
            groups_6 = []
            for _ in range(size):
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    group_id_8 = data[at + 1 : end].decode()
                    at = end
                else:
                    group_id_8, at = read_compact_string(data, at)
                    if group_id_8 is None:
                        raise null_in("OffsetFetchRequest.group_id")
                member_id_9: Any = None
                if version >= 9:
                    size = data[at]
                    if 0 < size < 128:
                        end = at + size
                        member_id_9 = data[at + 1 : end].decode()
                        at = end
                    elif not size:
                        member_id_9 = None
                        at += 1
                    else:
                        member_id_9, at = read_compact_string(data, at)
                member_epoch_10: Any = -1
                if version >= 9:
                    (member_epoch_10,) = _I.unpack_from(data, at)
                    at += 4
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    left -= size
                    if size > (len(data) - at) // 2 or left < 0:
                        raise too_many("OffsetFetchRequest.topics", size, left)
                    topics_11: Any = []
                    for _ in range(size):
                        name_13: Any = ""
                        if version <= 9:
                            size = data[at]
                            if 0 < size < 128:
                                end = at + size
                                name_13 = data[at + 1 : end].decode()
                                at = end
                            else:
                                name_13, at = read_compact_string(data, at)
                                if name_13 is None:
                                    raise null_in("OffsetFetchRequest.name")
                        topic_id_14: Any = None
                        if version >= 10:
                            topic_id_14 = read_uuid(data[at : at + 16])
                            at += 16
                        size = data[at]
                        at += 1
                        if size > 127:
                            size, at = long_varint(data, at - 1)
                        size -= 1
                        if size >= 0:
                            left -= size
                            if size > (len(data) - at) // 4 or left < 0:
                                raise too_many("OffsetFetchRequest.partition_indexes", size, left)
                            partition_indexes_15 = list(unpack_from(f">{size}i", data, at))
                            at += 4 * size
                        else:
                            raise null_in("OffsetFetchRequest.partition_indexes")
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item12 = _new(OffsetFetchRequestTopics, (name_13, topic_id_14, partition_indexes_15))
                        topics_11.append(item12)
                else:
                    topics_11 = None
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item7 = _new(OffsetFetchRequestGroup, (group_id_8, member_id_9, member_epoch_10, topics_11))
                groups_6.append(item7)
        else:
            raise null_in("OffsetFetchRequest.groups")
    require_stable_16: Any = False
    if version >= 7:
        (require_stable_16,) = _T.unpack_from(data, at)
        at += 1
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(OffsetFetchRequest, (group_id_1, topics_2, groups_6, require_stable_16)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    if version <= 7:
        value = body.group_id
        if value is None:
            out += b"\x00"
        else:
            data = value.encode()
            size = len(data) + 1
            out += varint(size) if size > 127 else BYTES[size]
            out += data
    if version <= 7:
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
                partition_indexes_3 = item2.partition_indexes
                if partition_indexes_3 is None:
                    out += b"\x00"
                else:
                    size = len(partition_indexes_3) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += pack(f">{len(partition_indexes_3)}i", *partition_indexes_3)
                out.append(0)
    if version >= 8:
        groups_5 = body.groups
        if groups_5 is None:
            out += b"\x00"
        else:
            size = len(groups_5) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item6 in groups_5:
                value = item6.group_id
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                if version >= 9:
                    value = item6.member_id
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                if version >= 9:
                    out += _I.pack(item6.member_epoch)
                topics_7 = item6.topics
                if topics_7 is None:
                    out += b"\x00"
                else:
                    size = len(topics_7) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    for item8 in topics_7:
                        if version <= 9:
                            value = item8.name
                            if value is None:
                                out += b"\x00"
                            else:
                                data = value.encode()
                                size = len(data) + 1
                                out += varint(size) if size > 127 else BYTES[size]
                                out += data
                        if version >= 10:
                            uuid = item8.topic_id
                            out += NO_UUID if uuid is None else uuid.bytes
                        partition_indexes_9 = item8.partition_indexes
                        if partition_indexes_9 is None:
                            out += b"\x00"
                        else:
                            size = len(partition_indexes_9) + 1
                            out += varint(size) if size > 127 else BYTES[size]
                            out += pack(f">{len(partition_indexes_9)}i", *partition_indexes_9)
                        out.append(0)
                out.append(0)
    if version >= 7:
        out += _T.pack(body.require_stable)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 6 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 6 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[OffsetFetchResponse, int]:
    throttle_time_ms_1: Any = 0
    if version >= 3:
        (throttle_time_ms_1,) = _I.unpack_from(data, at)
        at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("OffsetFetchResponse.topics", size, left)
        topics_2: Any = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("OffsetFetchResponse.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 16 or left < 0:
                    raise too_many("OffsetFetchResponse.partitions", size, left)
                partitions_5: Any = []
                for _ in range(size):
                    partition_index_7, committed_offset_8 = _IQ.unpack_from(data, at)
                    at += 12
                    committed_leader_epoch_9: Any = -1
                    if version >= 5:
                        (committed_leader_epoch_9,) = _I.unpack_from(data, at)
                        at += 4
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        metadata_10 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        metadata_10 = None
                    (error_code_11,) = _H.unpack_from(data, at)
                    at += 2
                    item6 = _new(
                        OffsetFetchResponsePartition,
                        (
                            partition_index_7,
                            committed_offset_8,
                            committed_leader_epoch_9,
                            metadata_10,
                            error_code_11,
                        ),
                    )
                    partitions_5.append(item6)
            else:
                raise null_in("OffsetFetchResponse.partitions")
            item3 = _new(OffsetFetchResponseTopic, (name_4, partitions_5))
            topics_2.append(item3)
    else:
        raise null_in("OffsetFetchResponse.topics")
    error_code_12: Any = 0
    if version >= 2:
        (error_code_12,) = _H.unpack_from(data, at)
        at += 2
    return _new(OffsetFetchResponse, (throttle_time_ms_1, topics_2, error_code_12, ())), at


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
                for item4 in partitions_3:
                    out += _IQ.pack(item4.partition_index, item4.committed_offset)
                    if version >= 5:
                        out += _I.pack(item4.committed_leader_epoch)
                    value = item4.metadata
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    out += _H.pack(item4.error_code)
    if version >= 2:
        out += _H.pack(body.error_code)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[OffsetFetchResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    topics_2: Any = ()
    if version <= 7:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 3 or left < 0:
                raise too_many("OffsetFetchResponse.topics", size, left)
            topics_2 = []
            for _ in range(size):
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    name_4 = str(data[at + 1 : end], "utf-8")
                    at = end
                else:
                    name_4, at = read_compact_string(data, at)
                    if name_4 is None:
                        raise null_in("OffsetFetchResponse.name")
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    left -= size
                    if size > (len(data) - at) // 20 or left < 0:
                        raise too_many("OffsetFetchResponse.partitions", size, left)
                    end = at + 20 * size
                    if (
                        size > 1
                        and data[at + 16 : end : 20] == b"\x01" * size
                        and data[at + 19 : end : 20] == b"\x00" * size
                    ):
                        partitions_5: Any = [
                            _new(
                                OffsetFetchResponsePartition,
                                (
                                    partition_index_,
                                    committed_offset_,
                                    committed_leader_epoch_,
                                    "",
                                    error_code_,
                                ),
                            )
                            for partition_index_, committed_offset_, committed_leader_epoch_, error_code_ in _IQIXHX.iter_unpack(
                                data[at:end]
                            )
                        ]
                        at = end
                    else:
                        partitions_5 = []
                        for _ in range(size):
                            partition_index_7, committed_offset_8, committed_leader_epoch_9 = (
                                _IQI.unpack_from(data, at)
                            )
                            at += 16
                            size = data[at]
                            if 0 < size < 128:
                                end = at + size
                                metadata_10 = str(data[at + 1 : end], "utf-8")
                                at = end
                            elif not size:
                                metadata_10 = None
                                at += 1
                            else:
                                metadata_10, at = read_compact_string(data, at)
                            (error_code_11,) = _H.unpack_from(data, at)
                            at += 2
                            if data[at]:
                                at = skip_tags(data, at)
                            else:
                                at += 1
                            item6 = _new(
                                OffsetFetchResponsePartition,
                                (
                                    partition_index_7,
                                    committed_offset_8,
                                    committed_leader_epoch_9,
                                    metadata_10,
                                    error_code_11,
                                ),
                            )
                            partitions_5.append(item6)
                else:
                    raise null_in("OffsetFetchResponse.partitions")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item3 = _new(OffsetFetchResponseTopic, (name_4, partitions_5))
                topics_2.append(item3)
        else:
            raise null_in("OffsetFetchResponse.topics")
    error_code_12: Any = 0
    if version <= 7:
        (error_code_12,) = _H.unpack_from(data, at)
        at += 2
    groups_13: Any = ()
    if version >= 8:
        size = data[at]
        at += 1
        if size > 127:
            size, at = long_varint(data, at - 1)
        size -= 1
        if size >= 0:
            left -= size
            if size > (len(data) - at) // 5 or left < 0:
                raise too_many("OffsetFetchResponse.groups", size, left)
            groups_13 = []
            for _ in range(size):
                size = data[at]
                if 0 < size < 128:
                    end = at + size
                    group_id_15 = str(data[at + 1 : end], "utf-8")
                    at = end
                else:
                    group_id_15, at = read_compact_string(data, at)
                    if group_id_15 is None:
                        raise null_in("OffsetFetchResponse.group_id")
                size = data[at]
                at += 1
                if size > 127:
                    size, at = long_varint(data, at - 1)
                size -= 1
                if size >= 0:
                    left -= size
                    if size > (len(data) - at) // 2 or left < 0:
                        raise too_many("OffsetFetchResponse.topics", size, left)
                    topics_16: Any = []
                    for _ in range(size):
                        name_18: Any = ""
                        if version <= 9:
                            size = data[at]
                            if 0 < size < 128:
                                end = at + size
                                name_18 = str(data[at + 1 : end], "utf-8")
                                at = end
                            else:
                                name_18, at = read_compact_string(data, at)
                                if name_18 is None:
                                    raise null_in("OffsetFetchResponse.name")
                        topic_id_19: Any = None
                        if version >= 10:
                            topic_id_19 = read_uuid(data[at : at + 16])
                            at += 16
                        size = data[at]
                        at += 1
                        if size > 127:
                            size, at = long_varint(data, at - 1)
                        size -= 1
                        if size >= 0:
                            left -= size
                            if size > (len(data) - at) // 20 or left < 0:
                                raise too_many("OffsetFetchResponse.partitions", size, left)
                            end = at + 20 * size
                            if (
                                size > 1
                                and data[at + 16 : end : 20] == b"\x01" * size
                                and data[at + 19 : end : 20] == b"\x00" * size
                            ):
                                partitions_20: Any = [
                                    _new(
                                        OffsetFetchResponsePartitions,
                                        (
                                            partition_index_,
                                            committed_offset_,
                                            committed_leader_epoch_,
                                            "",
                                            error_code_,
                                        ),
                                    )
                                    for partition_index_, committed_offset_, committed_leader_epoch_, error_code_ in _IQIXHX.iter_unpack(
                                        data[at:end]
                                    )
                                ]
                                at = end
                            else:
                                partitions_20 = []
                                for _ in range(size):
                                    partition_index_22, committed_offset_23, committed_leader_epoch_24 = (
                                        _IQI.unpack_from(data, at)
                                    )
                                    at += 16
                                    size = data[at]
                                    if 0 < size < 128:
                                        end = at + size
                                        metadata_25 = str(data[at + 1 : end], "utf-8")
                                        at = end
                                    elif not size:
                                        metadata_25 = None
                                        at += 1
                                    else:
                                        metadata_25, at = read_compact_string(data, at)
                                    (error_code_26,) = _H.unpack_from(data, at)
                                    at += 2
                                    if data[at]:
                                        at = skip_tags(data, at)
                                    else:
                                        at += 1
                                    item21 = _new(
                                        OffsetFetchResponsePartitions,
                                        (
                                            partition_index_22,
                                            committed_offset_23,
                                            committed_leader_epoch_24,
                                            metadata_25,
                                            error_code_26,
                                        ),
                                    )
                                    partitions_20.append(item21)
                        else:
                            raise null_in("OffsetFetchResponse.partitions")
                        if data[at]:
                            at = skip_tags(data, at)
                        else:
                            at += 1
                        item17 = _new(OffsetFetchResponseTopics, (name_18, topic_id_19, partitions_20))
                        topics_16.append(item17)
                else:
                    raise null_in("OffsetFetchResponse.topics")
                (error_code_27,) = _H.unpack_from(data, at)
                at += 2
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item14 = _new(OffsetFetchResponseGroup, (group_id_15, topics_16, error_code_27))
                groups_13.append(item14)
        else:
            raise null_in("OffsetFetchResponse.groups")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(OffsetFetchResponse, (throttle_time_ms_1, topics_2, error_code_12, groups_13)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    if version <= 7:
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
                        value = item4.metadata
                        if value is None:
                            out += b"\x00"
                        else:
                            data = value.encode()
                            size = len(data) + 1
                            out += varint(size) if size > 127 else BYTES[size]
                            out += data
                        out += _HX.pack(item4.error_code)
                out.append(0)
    if version <= 7:
        out += _H.pack(body.error_code)
    if version >= 8:
        groups_5 = body.groups
        if groups_5 is None:
            out += b"\x00"
        else:
            size = len(groups_5) + 1
            out += varint(size) if size > 127 else BYTES[size]
            for item6 in groups_5:
                value = item6.group_id
                if value is None:
                    out += b"\x00"
                else:
                    data = value.encode()
                    size = len(data) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    out += data
                topics_7 = item6.topics
                if topics_7 is None:
                    out += b"\x00"
                else:
                    size = len(topics_7) + 1
                    out += varint(size) if size > 127 else BYTES[size]
                    for item8 in topics_7:
                        if version <= 9:
                            value = item8.name
                            if value is None:
                                out += b"\x00"
                            else:
                                data = value.encode()
                                size = len(data) + 1
                                out += varint(size) if size > 127 else BYTES[size]
                                out += data
                        if version >= 10:
                            uuid = item8.topic_id
                            out += NO_UUID if uuid is None else uuid.bytes
                        partitions_9 = item8.partitions
                        if partitions_9 is None:
                            out += b"\x00"
                        else:
                            size = len(partitions_9) + 1
                            out += varint(size) if size > 127 else BYTES[size]
                            for item10 in partitions_9:
                                out += _IQI.pack(
                                    item10.partition_index,
                                    item10.committed_offset,
                                    item10.committed_leader_epoch,
                                )
                                value = item10.metadata
                                if value is None:
                                    out += b"\x00"
                                else:
                                    data = value.encode()
                                    size = len(data) + 1
                                    out += varint(size) if size > 127 else BYTES[size]
                                    out += data
                                out += _HX.pack(item10.error_code)
                        out.append(0)
                out += _HX.pack(item6.error_code)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 6 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 6 else _write_response_classic
