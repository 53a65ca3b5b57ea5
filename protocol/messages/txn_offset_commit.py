"""TxnOffsetCommit (28), versions 0 to 5. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")
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


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[TxnOffsetCommitRequest, int]:
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        transactional_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("TxnOffsetCommitRequest.transactional_id")
    (size,) = _H.unpack_from(data, at)
    at += 2
    if size >= 0:
        end = at + size
        group_id_2 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("TxnOffsetCommitRequest.group_id")
    producer_id_3, producer_epoch_4 = _QH.unpack_from(data, at)
    at += 10
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("TxnOffsetCommitRequest.topics", size, left)
        topics_5 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_7 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("TxnOffsetCommitRequest.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 14 or left < 0:
                    raise too_many("TxnOffsetCommitRequest.partitions", size, left)
                partitions_8 = []
                for _ in range(size):
                    partition_index_10, committed_offset_11 = _IQ.unpack_from(data, at)
                    at += 12
                    committed_leader_epoch_12 = -1
                    if version >= 2:
                        (committed_leader_epoch_12,) = _I.unpack_from(data, at)
                        at += 4
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        committed_metadata_13 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        committed_metadata_13 = None
                    else:
                        raise malformed("a negative length")
                    item9 = _new(
                        TxnOffsetCommitRequestPartition,
                        (
                            partition_index_10,
                            committed_offset_11,
                            committed_leader_epoch_12,
                            committed_metadata_13,
                        ),
                    )
                    partitions_8.append(item9)
            else:
                raise null_in("TxnOffsetCommitRequest.partitions")
            item6 = _new(TxnOffsetCommitRequestTopic, (name_7, partitions_8))
            topics_5.append(item6)
    else:
        raise null_in("TxnOffsetCommitRequest.topics")
    return _new(
        TxnOffsetCommitRequest,
        (transactional_id_1, group_id_2, producer_id_3, producer_epoch_4, -1, "", None, topics_5),
    ), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    value = body.transactional_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    value = body.group_id
    if value is None:
        out += b"\xff\xff"
    else:
        data = value.encode()
        out += _H.pack(len(data))
        out += data
    out += _QH.pack(body.producer_id, body.producer_epoch)
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
                    if version >= 2:
                        out += _I.pack(item4.committed_leader_epoch)
                    value = item4.committed_metadata
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[TxnOffsetCommitRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        transactional_id_1 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("TxnOffsetCommitRequest.transactional_id")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        group_id_2 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("TxnOffsetCommitRequest.group_id")
    producer_id_3, producer_epoch_4, generation_id_5 = _QHI.unpack_from(data, at)
    at += 14
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        member_id_6 = str(data[at:end], "utf-8")
        at = end
    else:
        raise null_in("TxnOffsetCommitRequest.member_id")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        if size > 32767:
            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
        end = at + size
        group_instance_id_7 = str(data[at:end], "utf-8")
        at = end
    elif size == -1:
        group_instance_id_7 = None
    else:
        raise malformed("a negative length")
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("TxnOffsetCommitRequest.topics", size, left)
        topics_8 = []
        for _ in range(size):
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                name_10 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("TxnOffsetCommitRequest.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 18 or left < 0:
                    raise too_many("TxnOffsetCommitRequest.partitions", size, left)
                partitions_11 = []
                for _ in range(size):
                    partition_index_13, committed_offset_14, committed_leader_epoch_15 = _IQI.unpack_from(
                        data, at
                    )
                    at += 16
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        committed_metadata_16 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        committed_metadata_16 = None
                    else:
                        raise malformed("a negative length")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item12 = _new(
                        TxnOffsetCommitRequestPartition,
                        (
                            partition_index_13,
                            committed_offset_14,
                            committed_leader_epoch_15,
                            committed_metadata_16,
                        ),
                    )
                    partitions_11.append(item12)
            else:
                raise null_in("TxnOffsetCommitRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item9 = _new(TxnOffsetCommitRequestTopic, (name_10, partitions_11))
            topics_8.append(item9)
    else:
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
    value = body.transactional_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    value = body.group_id
    if value is None:
        out += b"\x00"
    else:
        data = value.encode()
        size = len(data) + 1
        out += varint(size) if size > 127 else BYTES[size]
        out += data
    out += _QHI.pack(body.producer_id, body.producer_epoch, body.generation_id)
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
    return _read_request_flexible if version >= 3 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 3 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[TxnOffsetCommitResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("TxnOffsetCommitResponse.topics", size, left)
        topics_2 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("TxnOffsetCommitResponse.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("TxnOffsetCommitResponse.partitions", size, left)
                partitions_5 = []
                for _ in range(size):
                    partition_index_7, error_code_8 = _IH.unpack_from(data, at)
                    at += 6
                    item6 = _new(TxnOffsetCommitResponsePartition, (partition_index_7, error_code_8))
                    partitions_5.append(item6)
            else:
                raise null_in("TxnOffsetCommitResponse.partitions")
            item3 = _new(TxnOffsetCommitResponseTopic, (name_4, partitions_5))
            topics_2.append(item3)
    else:
        raise null_in("TxnOffsetCommitResponse.topics")
    return _new(TxnOffsetCommitResponse, (throttle_time_ms_1, topics_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
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
                    out += _IH.pack(item4.partition_index, item4.error_code)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[TxnOffsetCommitResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("TxnOffsetCommitResponse.topics", size, left)
        topics_2 = []
        for _ in range(size):
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("TxnOffsetCommitResponse.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 7 or left < 0:
                    raise too_many("TxnOffsetCommitResponse.partitions", size, left)
                partitions_5 = []
                for _ in range(size):
                    partition_index_7, error_code_8 = _IH.unpack_from(data, at)
                    at += 6
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item6 = _new(TxnOffsetCommitResponsePartition, (partition_index_7, error_code_8))
                    partitions_5.append(item6)
            else:
                raise null_in("TxnOffsetCommitResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(TxnOffsetCommitResponseTopic, (name_4, partitions_5))
            topics_2.append(item3)
    else:
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
                    out += _IH.pack(item4.partition_index, item4.error_code)
                    out.append(0)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 3 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 3 else _write_response_classic
