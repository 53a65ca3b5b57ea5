"""DeleteRecords (21), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import _new, BYTES, long_varint, malformed, null_in, skip_tags, too_many, varint

_H = Struct(">h")
_I = Struct(">i")
_IQ = Struct(">iq")
_IQH = Struct(">iqh")


class DeleteRecordsPartition(NamedTuple):
    """DeleteRecordsPartition of DeleteRecords."""

    partition_index: int = 0
    offset: int = 0


class DeleteRecordsTopic(NamedTuple):
    """DeleteRecordsTopic of DeleteRecords."""

    name: str = ""
    partitions: Sequence[DeleteRecordsPartition] = ()


class DeleteRecordsRequest(NamedTuple):
    """DeleteRecords request, v0-2."""

    topics: Sequence[DeleteRecordsTopic] = ()
    timeout_ms: int = 0


class DeleteRecordsPartitionResult(NamedTuple):
    """DeleteRecordsPartitionResult of DeleteRecords."""

    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


class DeleteRecordsTopicResult(NamedTuple):
    """DeleteRecordsTopicResult of DeleteRecords."""

    name: str = ""
    partitions: Sequence[DeleteRecordsPartitionResult] = ()


class DeleteRecordsResponse(NamedTuple):
    """DeleteRecords response, v0-2."""

    throttle_time_ms: int = 0
    topics: Sequence[DeleteRecordsTopicResult] = ()


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteRecordsRequest, int]:
    del version
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("DeleteRecordsRequest.topics", size, left)
        topics_1 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DeleteRecordsRequest.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 12 or left < 0:
                    raise too_many("DeleteRecordsRequest.partitions", size, left)
                partitions_4 = []
                for _ in range(size):
                    partition_index_6, offset_7 = _IQ.unpack_from(data, at)
                    at += 12
                    item5 = _new(DeleteRecordsPartition, (partition_index_6, offset_7))
                    partitions_4.append(item5)
            else:
                raise null_in("DeleteRecordsRequest.partitions")
            item2 = _new(DeleteRecordsTopic, (name_3, partitions_4))
            topics_1.append(item2)
    else:
        raise null_in("DeleteRecordsRequest.topics")
    (timeout_ms_8,) = _I.unpack_from(data, at)
    at += 4
    return _new(DeleteRecordsRequest, (topics_1, timeout_ms_8)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
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
                    out += _IQ.pack(item4.partition_index, item4.offset)
    out += _I.pack(body.timeout_ms)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteRecordsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("DeleteRecordsRequest.topics", size, left)
        topics_1 = []
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
                name_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DeleteRecordsRequest.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 13 or left < 0:
                    raise too_many("DeleteRecordsRequest.partitions", size, left)
                partitions_4 = []
                for _ in range(size):
                    partition_index_6, offset_7 = _IQ.unpack_from(data, at)
                    at += 12
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item5 = _new(DeleteRecordsPartition, (partition_index_6, offset_7))
                    partitions_4.append(item5)
            else:
                raise null_in("DeleteRecordsRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(DeleteRecordsTopic, (name_3, partitions_4))
            topics_1.append(item2)
    else:
        raise null_in("DeleteRecordsRequest.topics")
    (timeout_ms_8,) = _I.unpack_from(data, at)
    at += 4
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteRecordsRequest, (topics_1, timeout_ms_8)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
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
                    out += _IQ.pack(item4.partition_index, item4.offset)
                    out.append(0)
            out.append(0)
    out += _I.pack(body.timeout_ms)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteRecordsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("DeleteRecordsResponse.topics", size, left)
        topics_2 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DeleteRecordsResponse.name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 14 or left < 0:
                    raise too_many("DeleteRecordsResponse.partitions", size, left)
                partitions_5 = []
                for _ in range(size):
                    partition_index_7, low_watermark_8, error_code_9 = _IQH.unpack_from(data, at)
                    at += 14
                    item6 = _new(
                        DeleteRecordsPartitionResult, (partition_index_7, low_watermark_8, error_code_9)
                    )
                    partitions_5.append(item6)
            else:
                raise null_in("DeleteRecordsResponse.partitions")
            item3 = _new(DeleteRecordsTopicResult, (name_4, partitions_5))
            topics_2.append(item3)
    else:
        raise null_in("DeleteRecordsResponse.topics")
    return _new(DeleteRecordsResponse, (throttle_time_ms_1, topics_2)), at


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
                    out += _IQH.pack(item4.partition_index, item4.low_watermark, item4.error_code)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteRecordsResponse, int]:
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
            raise too_many("DeleteRecordsResponse.topics", size, left)
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
                raise null_in("DeleteRecordsResponse.name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 15 or left < 0:
                    raise too_many("DeleteRecordsResponse.partitions", size, left)
                partitions_5 = []
                for _ in range(size):
                    partition_index_7, low_watermark_8, error_code_9 = _IQH.unpack_from(data, at)
                    at += 14
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item6 = _new(
                        DeleteRecordsPartitionResult, (partition_index_7, low_watermark_8, error_code_9)
                    )
                    partitions_5.append(item6)
            else:
                raise null_in("DeleteRecordsResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(DeleteRecordsTopicResult, (name_4, partitions_5))
            topics_2.append(item3)
    else:
        raise null_in("DeleteRecordsResponse.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DeleteRecordsResponse, (throttle_time_ms_1, topics_2)), at


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
                    out += _IQH.pack(item4.partition_index, item4.low_watermark, item4.error_code)
                    out.append(0)
            out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
