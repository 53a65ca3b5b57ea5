"""DeleteRecords (21), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

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
_IQ = Struct(">iq")
_IQH = Struct(">iqh")
_IQHX = Struct(">iqhx")
_IQX = Struct(">iqx")
_IX = Struct(">ix")


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

    @staticmethod
    def response_type() -> type[DeleteRecordsResponse]:
        return DeleteRecordsResponse


DeleteRecordsRequest.API_KEY = 21  # type: ignore[attr-defined]


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


DeleteRecordsResponse.API_KEY = 21  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteRecordsRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 6, "DeleteRecordsRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        name_3, at = read_string(data, at)
        if name_3 is None:
            raise null_in("DeleteRecordsRequest.name")
        size, at, left = read_count(data, at, left, 12, "DeleteRecordsRequest.partitions")
        partitions_4: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_6, offset_7 = _IQ.unpack_from(data, at)
            at += 12
            item5 = _new(DeleteRecordsPartition, (partition_index_6, offset_7))
            partitions_4.append(item5)
        if partitions_4 is None:
            raise null_in("DeleteRecordsRequest.partitions")
        item2 = _new(DeleteRecordsTopic, (name_3, partitions_4))
        topics_1.append(item2)
    if topics_1 is None:
        raise null_in("DeleteRecordsRequest.topics")
    (timeout_ms_8,) = _I.unpack_from(data, at)
    at += 4
    return _new(DeleteRecordsRequest, (topics_1, timeout_ms_8)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.name)
        partitions_3 = item2.partitions
        write_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IQ.pack(item4.partition_index, item4.offset)
    out += _I.pack(body.timeout_ms)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteRecordsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 3, "DeleteRecordsRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        name_3, at = read_compact_string(data, at)
        if name_3 is None:
            raise null_in("DeleteRecordsRequest.name")
        size, at, left = read_compact_count(data, at, left, 13, "DeleteRecordsRequest.partitions")
        partitions_4: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_6, offset_7 = _IQ.unpack_from(data, at)
            at += 12
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(DeleteRecordsPartition, (partition_index_6, offset_7))
            partitions_4.append(item5)
        if partitions_4 is None:
            raise null_in("DeleteRecordsRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(DeleteRecordsTopic, (name_3, partitions_4))
        topics_1.append(item2)
    if topics_1 is None:
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
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IQX.pack(item4.partition_index, item4.offset)
        out.append(0)
    out += _IX.pack(body.timeout_ms)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[DeleteRecordsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 6, "DeleteRecordsResponse.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_string(data, at)
        if name_4 is None:
            raise null_in("DeleteRecordsResponse.name")
        size, at, left = read_count(data, at, left, 14, "DeleteRecordsResponse.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_7, low_watermark_8, error_code_9 = _IQH.unpack_from(data, at)
            at += 14
            item6 = _new(DeleteRecordsPartitionResult, (partition_index_7, low_watermark_8, error_code_9))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("DeleteRecordsResponse.partitions")
        item3 = _new(DeleteRecordsTopicResult, (name_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("DeleteRecordsResponse.topics")
    return _new(DeleteRecordsResponse, (throttle_time_ms_1, topics_2)), at


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
            out += _IQH.pack(item4.partition_index, item4.low_watermark, item4.error_code)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[DeleteRecordsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 3, "DeleteRecordsResponse.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_compact_string(data, at)
        if name_4 is None:
            raise null_in("DeleteRecordsResponse.name")
        size, at, left = read_compact_count(data, at, left, 15, "DeleteRecordsResponse.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_7, low_watermark_8, error_code_9 = _IQH.unpack_from(data, at)
            at += 14
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(DeleteRecordsPartitionResult, (partition_index_7, low_watermark_8, error_code_9))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("DeleteRecordsResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(DeleteRecordsTopicResult, (name_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
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
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IQHX.pack(item4.partition_index, item4.low_watermark, item4.error_code)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
