"""AlterReplicaLogDirs (34), versions 1 to 2. Written by scripts/generate_messages.py: do not edit."""

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

_I = Struct(">i")
_IH = Struct(">ih")
_IHX = Struct(">ihx")


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

    @staticmethod
    def response_type() -> type[AlterReplicaLogDirsResponse]:
        return AlterReplicaLogDirsResponse


AlterReplicaLogDirsRequest.API_KEY = 34  # type: ignore[attr-defined]


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


AlterReplicaLogDirsResponse.API_KEY = 34  # type: ignore[attr-defined]


def _read_request_classic(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterReplicaLogDirsRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 6, "AlterReplicaLogDirsRequest.dirs")
    dirs_1: Any = None if size < 0 else []
    for _ in range(size):
        path_3, at = read_string(data, at)
        if path_3 is None:
            raise null_in("AlterReplicaLogDirsRequest.path")
        size, at, left = read_count(data, at, left, 6, "AlterReplicaLogDirsRequest.topics")
        topics_4: Any = None if size < 0 else []
        for _ in range(size):
            name_6, at = read_string(data, at)
            if name_6 is None:
                raise null_in("AlterReplicaLogDirsRequest.name")
            size, at, left = read_count(data, at, left, 4, "AlterReplicaLogDirsRequest.partitions")
            partitions_7 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if partitions_7 is None:
                raise null_in("AlterReplicaLogDirsRequest.partitions")
            item5 = _new(AlterReplicaLogDirTopic, (name_6, partitions_7))
            topics_4.append(item5)
        if topics_4 is None:
            raise null_in("AlterReplicaLogDirsRequest.topics")
        item2 = _new(AlterReplicaLogDir, (path_3, topics_4))
        dirs_1.append(item2)
    if dirs_1 is None:
        raise null_in("AlterReplicaLogDirsRequest.dirs")
    return _new(AlterReplicaLogDirsRequest, (dirs_1,)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    dirs_1 = body.dirs
    write_count(out, dirs_1)
    for item2 in dirs_1 or ():
        write_string(out, item2.path)
        topics_3 = item2.topics
        write_count(out, topics_3)
        for item4 in topics_3 or ():
            write_string(out, item4.name)
            partitions_5 = item4.partitions
            write_count(out, partitions_5)
            out += pack(f">{len(partitions_5 or ())}i", *(partitions_5 or ()))


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterReplicaLogDirsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 3, "AlterReplicaLogDirsRequest.dirs")
    dirs_1: Any = None if size < 0 else []
    for _ in range(size):
        path_3, at = read_compact_string(data, at)
        if path_3 is None:
            raise null_in("AlterReplicaLogDirsRequest.path")
        size, at, left = read_compact_count(data, at, left, 3, "AlterReplicaLogDirsRequest.topics")
        topics_4: Any = None if size < 0 else []
        for _ in range(size):
            name_6, at = read_compact_string(data, at)
            if name_6 is None:
                raise null_in("AlterReplicaLogDirsRequest.name")
            size, at, left = read_compact_count(data, at, left, 4, "AlterReplicaLogDirsRequest.partitions")
            partitions_7 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if partitions_7 is None:
                raise null_in("AlterReplicaLogDirsRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item5 = _new(AlterReplicaLogDirTopic, (name_6, partitions_7))
            topics_4.append(item5)
        if topics_4 is None:
            raise null_in("AlterReplicaLogDirsRequest.topics")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(AlterReplicaLogDir, (path_3, topics_4))
        dirs_1.append(item2)
    if dirs_1 is None:
        raise null_in("AlterReplicaLogDirsRequest.dirs")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(AlterReplicaLogDirsRequest, (dirs_1,)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    dirs_1 = body.dirs
    write_compact_count(out, dirs_1)
    for item2 in dirs_1 or ():
        write_compact_string(out, item2.path)
        topics_3 = item2.topics
        write_compact_count(out, topics_3)
        for item4 in topics_3 or ():
            write_compact_string(out, item4.name)
            partitions_5 = item4.partitions
            write_compact_count(out, partitions_5)
            out += pack(f">{len(partitions_5 or ())}i", *(partitions_5 or ()))
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
    size, at, left = read_count(data, at, left, 6, "AlterReplicaLogDirsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_name_4, at = read_string(data, at)
        if topic_name_4 is None:
            raise null_in("AlterReplicaLogDirsResponse.topic_name")
        size, at, left = read_count(data, at, left, 6, "AlterReplicaLogDirsResponse.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_7, error_code_8 = _IH.unpack_from(data, at)
            at += 6
            item6 = _new(AlterReplicaLogDirPartitionResult, (partition_index_7, error_code_8))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("AlterReplicaLogDirsResponse.partitions")
        item3 = _new(AlterReplicaLogDirTopicResult, (topic_name_4, partitions_5))
        results_2.append(item3)
    if results_2 is None:
        raise null_in("AlterReplicaLogDirsResponse.results")
    return _new(AlterReplicaLogDirsResponse, (throttle_time_ms_1, results_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    results_1 = body.results
    write_count(out, results_1)
    for item2 in results_1 or ():
        write_string(out, item2.topic_name)
        partitions_3 = item2.partitions
        write_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IH.pack(item4.partition_index, item4.error_code)


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[AlterReplicaLogDirsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 3, "AlterReplicaLogDirsResponse.results")
    results_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_name_4, at = read_compact_string(data, at)
        if topic_name_4 is None:
            raise null_in("AlterReplicaLogDirsResponse.topic_name")
        size, at, left = read_compact_count(data, at, left, 7, "AlterReplicaLogDirsResponse.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_7, error_code_8 = _IH.unpack_from(data, at)
            at += 6
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item6 = _new(AlterReplicaLogDirPartitionResult, (partition_index_7, error_code_8))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("AlterReplicaLogDirsResponse.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(AlterReplicaLogDirTopicResult, (topic_name_4, partitions_5))
        results_2.append(item3)
    if results_2 is None:
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
    write_compact_count(out, results_1)
    for item2 in results_1 or ():
        write_compact_string(out, item2.topic_name)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IHX.pack(item4.partition_index, item4.error_code)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
