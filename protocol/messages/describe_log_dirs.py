"""DescribeLogDirs (35), versions 1 to 5. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from ._wire import (
    _new,
    BYTES,
    long_varint,
    malformed,
    null_in,
    pack,
    skip_tags,
    too_many,
    unpack_from,
    varint,
)

_T = Struct(">?")
_H = Struct(">h")
_I = Struct(">i")
_IQQT = Struct(">iqq?")
_QQ = Struct(">qq")


class DescribableLogDirTopic(NamedTuple):
    """DescribableLogDirTopic of DescribeLogDirs."""

    topic: str = ""
    partitions: Sequence[int] = ()


class DescribeLogDirsRequest(NamedTuple):
    """DescribeLogDirs request, v1-5."""

    topics: Sequence[DescribableLogDirTopic] | None = ()


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


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[DescribeLogDirsRequest, int]:
    del version
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("DescribeLogDirsRequest.topics", size, left)
        topics_1 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                topic_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeLogDirsRequest.topic")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("DescribeLogDirsRequest.partitions", size, left)
                partitions_4 = list(unpack_from(f">{size}i", data, at))
                at += 4 * size
            else:
                raise null_in("DescribeLogDirsRequest.partitions")
            item2 = _new(DescribableLogDirTopic, (topic_3, partitions_4))
            topics_1.append(item2)
    elif size == -1:
        topics_1 = None
    else:
        raise malformed("a negative length")
    return _new(DescribeLogDirsRequest, (topics_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(topics_1))
        for item2 in topics_1:
            value = item2.topic
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
                out += pack(f">{len(partitions_3)}i", *partitions_3)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[DescribeLogDirsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("DescribeLogDirsRequest.topics", size, left)
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
                topic_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeLogDirsRequest.topic")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("DescribeLogDirsRequest.partitions", size, left)
                partitions_4 = list(unpack_from(f">{size}i", data, at))
                at += 4 * size
            else:
                raise null_in("DescribeLogDirsRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(DescribableLogDirTopic, (topic_3, partitions_4))
            topics_1.append(item2)
    elif size == -1:
        topics_1 = None
    else:
        raise malformed("a negative length")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(DescribeLogDirsRequest, (topics_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    if topics_1 is None:
        out += b"\x00"
    else:
        size = len(topics_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topics_1:
            value = item2.topic
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
                out += pack(f">{len(partitions_3)}i", *partitions_3)
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
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 8 or left < 0:
            raise too_many("DescribeLogDirsResponse.results", size, left)
        results_2 = []
        for _ in range(size):
            (error_code_4,) = _H.unpack_from(data, at)
            at += 2
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                log_dir_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeLogDirsResponse.log_dir")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("DescribeLogDirsResponse.topics", size, left)
                topics_6 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        name_8 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeLogDirsResponse.name")
                    (size,) = _I.unpack_from(data, at)
                    at += 4
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 21 or left < 0:
                            raise too_many("DescribeLogDirsResponse.partitions", size, left)
                        partitions_9 = []
                        for _ in range(size):
                            partition_index_11, partition_size_12, offset_lag_13, is_future_key_14 = (
                                _IQQT.unpack_from(data, at)
                            )
                            at += 21
                            item10 = _new(
                                DescribeLogDirsPartition,
                                (partition_index_11, partition_size_12, offset_lag_13, is_future_key_14),
                            )
                            partitions_9.append(item10)
                    else:
                        raise null_in("DescribeLogDirsResponse.partitions")
                    item7 = _new(DescribeLogDirsTopic, (name_8, partitions_9))
                    topics_6.append(item7)
            else:
                raise null_in("DescribeLogDirsResponse.topics")
            item3 = _new(DescribeLogDirsResult, (error_code_4, log_dir_5, topics_6, -1, -1, False))
            results_2.append(item3)
    else:
        raise null_in("DescribeLogDirsResponse.results")
    return _new(DescribeLogDirsResponse, (throttle_time_ms_1, 0, results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    if results_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(results_1))
        for item2 in results_1:
            out += _H.pack(item2.error_code)
            value = item2.log_dir
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            topics_3 = item2.topics
            if topics_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(topics_3))
                for item4 in topics_3:
                    value = item4.name
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data
                    partitions_5 = item4.partitions
                    if partitions_5 is None:
                        out += b"\xff\xff\xff\xff"
                    else:
                        out += _I.pack(len(partitions_5))
                        for item6 in partitions_5:
                            out += _IQQT.pack(
                                item6.partition_index,
                                item6.partition_size,
                                item6.offset_lag,
                                item6.is_future_key,
                            )


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[DescribeLogDirsResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    error_code_2 = 0
    if version >= 3:
        (error_code_2,) = _H.unpack_from(data, at)
        at += 2
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 5 or left < 0:
            raise too_many("DescribeLogDirsResponse.results", size, left)
        results_3 = []
        for _ in range(size):
            (error_code_5,) = _H.unpack_from(data, at)
            at += 2
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                if size > 32767:
                    raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                end = at + size
                log_dir_6 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("DescribeLogDirsResponse.log_dir")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 3 or left < 0:
                    raise too_many("DescribeLogDirsResponse.topics", size, left)
                topics_7 = []
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
                        name_9 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("DescribeLogDirsResponse.name")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 22 or left < 0:
                            raise too_many("DescribeLogDirsResponse.partitions", size, left)
                        partitions_10 = []
                        for _ in range(size):
                            partition_index_12, partition_size_13, offset_lag_14, is_future_key_15 = (
                                _IQQT.unpack_from(data, at)
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
                    else:
                        raise null_in("DescribeLogDirsResponse.partitions")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item8 = _new(DescribeLogDirsTopic, (name_9, partitions_10))
                    topics_7.append(item8)
            else:
                raise null_in("DescribeLogDirsResponse.topics")
            total_bytes_16 = -1
            usable_bytes_17 = -1
            if version >= 4:
                total_bytes_16, usable_bytes_17 = _QQ.unpack_from(data, at)
                at += 16
            is_cordoned_18 = False
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
    else:
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
    if results_1 is None:
        out += b"\x00"
    else:
        size = len(results_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in results_1:
            out += _H.pack(item2.error_code)
            value = item2.log_dir
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            topics_3 = item2.topics
            if topics_3 is None:
                out += b"\x00"
            else:
                size = len(topics_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in topics_3:
                    value = item4.name
                    if value is None:
                        out += b"\x00"
                    else:
                        data = value.encode()
                        size = len(data) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        out += data
                    partitions_5 = item4.partitions
                    if partitions_5 is None:
                        out += b"\x00"
                    else:
                        size = len(partitions_5) + 1
                        out += varint(size) if size > 127 else BYTES[size]
                        for item6 in partitions_5:
                            out += _IQQT.pack(
                                item6.partition_index,
                                item6.partition_size,
                                item6.offset_lag,
                                item6.is_future_key,
                            )
                            out.append(0)
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
