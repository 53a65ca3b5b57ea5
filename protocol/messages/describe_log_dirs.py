"""DescribeLogDirs (35), versions 1 to 5. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import (
    NamedTuple,
    _new,
    null_in,
    pack,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    skip_tags,
    unpack_from,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
)

_T = Struct(">?")
_H = Struct(">h")
_I = Struct(">i")
_IQQT = Struct(">iqq?")
_IQQTX = Struct(">iqq?x")
_QQ = Struct(">qq")


class DescribableLogDirTopic(NamedTuple):
    """DescribableLogDirTopic of DescribeLogDirs."""

    topic: str = ""
    partitions: Sequence[int] = ()


class DescribeLogDirsRequest(NamedTuple):
    """DescribeLogDirs request, v1-5."""

    topics: Sequence[DescribableLogDirTopic] | None = ()

    @staticmethod
    def response_type() -> type[DescribeLogDirsResponse]:
        return DescribeLogDirsResponse


DescribeLogDirsRequest.API_KEY = 35  # type: ignore[attr-defined]


class DescribeLogDirsPartition(NamedTuple):
    """DescribeLogDirsPartition of DescribeLogDirs."""

    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(NamedTuple):
    """DescribeLogDirsTopic of DescribeLogDirs."""

    name: str = ""
    partitions: Sequence[DescribeLogDirsPartition] = ()


class DescribeLogDirsResult(NamedTuple):
    """DescribeLogDirsResult of DescribeLogDirs."""

    error_code: int = 0
    log_dir: str = ""
    topics: Sequence[DescribeLogDirsTopic] = ()
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


class DescribeLogDirsResponse(NamedTuple):
    """DescribeLogDirs response, v1-5."""

    throttle_time_ms: int = 0
    error_code: int = 0
    results: Sequence[DescribeLogDirsResult] = ()


DescribeLogDirsResponse.API_KEY = 35  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeLogDirsRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 6, "DescribeLogDirsRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        topic_3, at = read_string(data, at)
        if topic_3 is None:
            raise null_in("DescribeLogDirsRequest.topic")
        size, at, left = read_count(data, at, left, 4, "DescribeLogDirsRequest.partitions")
        partitions_4 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
        at += 4 * max(size, 0)
        if partitions_4 is None:
            raise null_in("DescribeLogDirsRequest.partitions")
        item2 = _new(DescribableLogDirTopic, (topic_3, partitions_4))
        topics_1.append(item2)
    return _new(DescribeLogDirsRequest, (topics_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.topic)
        partitions_3 = item2.partitions
        write_count(out, partitions_3)
        out += pack(f">{len(partitions_3 or ())}i", *(partitions_3 or ()))


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeLogDirsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 3, "DescribeLogDirsRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        topic_3, at = read_compact_string(data, at)
        if topic_3 is None:
            raise null_in("DescribeLogDirsRequest.topic")
        size, at, left = read_compact_count(data, at, left, 4, "DescribeLogDirsRequest.partitions")
        partitions_4 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
        at += 4 * max(size, 0)
        if partitions_4 is None:
            raise null_in("DescribeLogDirsRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(DescribableLogDirTopic, (topic_3, partitions_4))
        topics_1.append(item2)
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeLogDirsRequest, (topics_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.topic)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        out += pack(f">{len(partitions_3 or ())}i", *(partitions_3 or ()))
        out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeLogDirsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 8, "DescribeLogDirsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        log_dir_5, at = read_string(data, at)
        if log_dir_5 is None:
            raise null_in("DescribeLogDirsResponse.log_dir")
        size, at, left = read_count(data, at, left, 6, "DescribeLogDirsResponse.topics")
        topics_6: Any = None if size < 0 else []
        for _ in range(size):
            name_8, at = read_string(data, at)
            if name_8 is None:
                raise null_in("DescribeLogDirsResponse.name")
            size, at, left = read_count(data, at, left, 21, "DescribeLogDirsResponse.partitions")
            partitions_9: Any = None if size < 0 else []
            for _ in range(size):
                partition_index_11, partition_size_12, offset_lag_13, is_future_key_14 = _IQQT.unpack_from(
                    data, at
                )
                at += 21
                item10 = _new(
                    DescribeLogDirsPartition,
                    (partition_index_11, partition_size_12, offset_lag_13, is_future_key_14),
                )
                partitions_9.append(item10)
            if partitions_9 is None:
                raise null_in("DescribeLogDirsResponse.partitions")
            item7 = _new(DescribeLogDirsTopic, (name_8, partitions_9))
            topics_6.append(item7)
        if topics_6 is None:
            raise null_in("DescribeLogDirsResponse.topics")
        item3 = _new(DescribeLogDirsResult, (error_code_4, log_dir_5, topics_6, -1, -1, False))
        results_2.append(item3)
    if results_2 is None:
        raise null_in("DescribeLogDirsResponse.results")
    return _new(DescribeLogDirsResponse, (throttle_time_ms_1, 0, results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    write_count(out, results_1)
    for item2 in results_1 or ():
        out += _H.pack(item2.error_code)
        write_string(out, item2.log_dir)
        topics_3 = item2.topics
        write_count(out, topics_3)
        for item4 in topics_3 or ():
            write_string(out, item4.name)
            partitions_5 = item4.partitions
            write_count(out, partitions_5)
            for item6 in partitions_5 or ():
                out += _IQQT.pack(
                    item6.partition_index, item6.partition_size, item6.offset_lag, item6.is_future_key
                )


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeLogDirsResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    error_code_2: Any = 0
    if version >= 3:
        (error_code_2,) = _H.unpack_from(data, at)
        at += 2
    size, at, left = read_compact_count(data, at, left, 5, "DescribeLogDirsResponse.results")
    results_3: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_5,) = _H.unpack_from(data, at)
        at += 2
        log_dir_6, at = read_compact_string(data, at)
        if log_dir_6 is None:
            raise null_in("DescribeLogDirsResponse.log_dir")
        size, at, left = read_compact_count(data, at, left, 3, "DescribeLogDirsResponse.topics")
        topics_7: Any = None if size < 0 else []
        for _ in range(size):
            name_9, at = read_compact_string(data, at)
            if name_9 is None:
                raise null_in("DescribeLogDirsResponse.name")
            size, at, left = read_compact_count(data, at, left, 22, "DescribeLogDirsResponse.partitions")
            partitions_10: Any = None if size < 0 else []
            for _ in range(size):
                partition_index_12, partition_size_13, offset_lag_14, is_future_key_15 = _IQQT.unpack_from(
                    data, at
                )
                at += 21
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item11 = _new(
                    DescribeLogDirsPartition,
                    (partition_index_12, partition_size_13, offset_lag_14, is_future_key_15),
                )
                partitions_10.append(item11)
            if partitions_10 is None:
                raise null_in("DescribeLogDirsResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item8 = _new(DescribeLogDirsTopic, (name_9, partitions_10))
            topics_7.append(item8)
        if topics_7 is None:
            raise null_in("DescribeLogDirsResponse.topics")
        total_bytes_16: Any = -1
        usable_bytes_17: Any = -1
        if version >= 4:
            total_bytes_16, usable_bytes_17 = _QQ.unpack_from(data, at)
            at += 16
        is_cordoned_18: Any = False
        if version >= 5:
            (is_cordoned_18,) = _T.unpack_from(data, at)
            at += 1
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item4 = _new(
            DescribeLogDirsResult,
            (error_code_5, log_dir_6, topics_7, total_bytes_16, usable_bytes_17, is_cordoned_18),
        )
        results_3.append(item4)
    if results_3 is None:
        raise null_in("DescribeLogDirsResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeLogDirsResponse, (throttle_time_ms_1, error_code_2, results_3)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    if version >= 3:
        out += _H.pack(body.error_code)
    results_1 = body.results
    write_compact_count(out, results_1)
    for item2 in results_1 or ():
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.log_dir)
        topics_3 = item2.topics
        write_compact_count(out, topics_3)
        for item4 in topics_3 or ():
            write_compact_string(out, item4.name)
            partitions_5 = item4.partitions
            write_compact_count(out, partitions_5)
            for item6 in partitions_5 or ():
                out += _IQQTX.pack(
                    item6.partition_index, item6.partition_size, item6.offset_lag, item6.is_future_key
                )
            out.append(0)
        if version >= 4:
            out += _QQ.pack(item2.total_bytes, item2.usable_bytes)
        if version >= 5:
            out += _T.pack(item2.is_cordoned)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
