"""AlterReplicaLogDirs (34), versions 1 to 2. Written by scripts/generate_messages.py: do not edit."""

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

_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")


class AlterReplicaLogDirTopic(NamedTuple):
    """AlterReplicaLogDirTopic of AlterReplicaLogDirs."""

    name: str = ""
    partitions: Sequence[int] = ()


class AlterReplicaLogDir(NamedTuple):
    """AlterReplicaLogDir of AlterReplicaLogDirs."""

    path: str = ""
    topics: Sequence[AlterReplicaLogDirTopic] = ()


class AlterReplicaLogDirsRequest(NamedTuple):
    """AlterReplicaLogDirs request, v1-2."""

    dirs: Sequence[AlterReplicaLogDir] = ()


class AlterReplicaLogDirPartitionResult(NamedTuple):
    """AlterReplicaLogDirPartitionResult of AlterReplicaLogDirs."""

    partition_index: int = 0
    error_code: int = 0


class AlterReplicaLogDirTopicResult(NamedTuple):
    """AlterReplicaLogDirTopicResult of AlterReplicaLogDirs."""

    topic_name: str = ""
    partitions: Sequence[AlterReplicaLogDirPartitionResult] = ()


class AlterReplicaLogDirsResponse(NamedTuple):
    """AlterReplicaLogDirs response, v1-2."""

    throttle_time_ms: int = 0
    results: Sequence[AlterReplicaLogDirTopicResult] = ()


def _read_request_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterReplicaLogDirsRequest, int]:
    del version
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("AlterReplicaLogDirsRequest.dirs", size, left)
        dirs_1 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                path_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("AlterReplicaLogDirsRequest.path")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("AlterReplicaLogDirsRequest.topics", size, left)
                topics_4 = []
                for _ in range(size):
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        name_6 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("AlterReplicaLogDirsRequest.name")
                    (size,) = _I.unpack_from(data, at)
                    at += 4
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("AlterReplicaLogDirsRequest.partitions", size, left)
                        partitions_7 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("AlterReplicaLogDirsRequest.partitions")
                    item5 = _new(AlterReplicaLogDirTopic, (name_6, partitions_7))
                    topics_4.append(item5)
            else:
                raise null_in("AlterReplicaLogDirsRequest.topics")
            item2 = _new(AlterReplicaLogDir, (path_3, topics_4))
            dirs_1.append(item2)
    else:
        raise null_in("AlterReplicaLogDirsRequest.dirs")
    return _new(AlterReplicaLogDirsRequest, (dirs_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    dirs_1 = body.dirs
    if dirs_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(dirs_1))
        for item2 in dirs_1:
            value = item2.path
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
                        out += pack(f">{len(partitions_5)}i", *partitions_5)


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterReplicaLogDirsRequest, int]:
    del version
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("AlterReplicaLogDirsRequest.dirs", size, left)
        dirs_1 = []
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
                path_3 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("AlterReplicaLogDirsRequest.path")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 3 or left < 0:
                    raise too_many("AlterReplicaLogDirsRequest.topics", size, left)
                topics_4 = []
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
                        name_6 = str(data[at:end], "utf-8")
                        at = end
                    else:
                        raise null_in("AlterReplicaLogDirsRequest.name")
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        left -= size
                        if size > (len(data) - at) // 4 or left < 0:
                            raise too_many("AlterReplicaLogDirsRequest.partitions", size, left)
                        partitions_7 = list(unpack_from(f">{size}i", data, at))
                        at += 4 * size
                    else:
                        raise null_in("AlterReplicaLogDirsRequest.partitions")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item5 = _new(AlterReplicaLogDirTopic, (name_6, partitions_7))
                    topics_4.append(item5)
            else:
                raise null_in("AlterReplicaLogDirsRequest.topics")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item2 = _new(AlterReplicaLogDir, (path_3, topics_4))
            dirs_1.append(item2)
    else:
        raise null_in("AlterReplicaLogDirsRequest.dirs")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterReplicaLogDirsRequest, (dirs_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    dirs_1 = body.dirs
    if dirs_1 is None:
        out += b"\x00"
    else:
        size = len(dirs_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in dirs_1:
            value = item2.path
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
                        out += pack(f">{len(partitions_5)}i", *partitions_5)
                    out.append(0)
            out.append(0)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterReplicaLogDirsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("AlterReplicaLogDirsResponse.results", size, left)
        results_2 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                topic_name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("AlterReplicaLogDirsResponse.topic_name")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 6 or left < 0:
                    raise too_many("AlterReplicaLogDirsResponse.partitions", size, left)
                partitions_5 = []
                for _ in range(size):
                    partition_index_7, error_code_8 = _IH.unpack_from(data, at)
                    at += 6
                    item6 = _new(AlterReplicaLogDirPartitionResult, (partition_index_7, error_code_8))
                    partitions_5.append(item6)
            else:
                raise null_in("AlterReplicaLogDirsResponse.partitions")
            item3 = _new(AlterReplicaLogDirTopicResult, (topic_name_4, partitions_5))
            results_2.append(item3)
    else:
        raise null_in("AlterReplicaLogDirsResponse.results")
    return _new(AlterReplicaLogDirsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    if results_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(results_1))
        for item2 in results_1:
            value = item2.topic_name
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
) -> tuple[AlterReplicaLogDirsResponse, int]:
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
            raise too_many("AlterReplicaLogDirsResponse.results", size, left)
        results_2 = []
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
                topic_name_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("AlterReplicaLogDirsResponse.topic_name")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 7 or left < 0:
                    raise too_many("AlterReplicaLogDirsResponse.partitions", size, left)
                partitions_5 = []
                for _ in range(size):
                    partition_index_7, error_code_8 = _IH.unpack_from(data, at)
                    at += 6
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item6 = _new(AlterReplicaLogDirPartitionResult, (partition_index_7, error_code_8))
                    partitions_5.append(item6)
            else:
                raise null_in("AlterReplicaLogDirsResponse.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(AlterReplicaLogDirTopicResult, (topic_name_4, partitions_5))
            results_2.append(item3)
    else:
        raise null_in("AlterReplicaLogDirsResponse.results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterReplicaLogDirsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    if results_1 is None:
        out += b"\x00"
    else:
        size = len(results_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in results_1:
            value = item2.topic_name
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
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
