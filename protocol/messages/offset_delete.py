"""OffsetDelete (47), versions 0 to 0. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

from .wire import NamedTuple, _new, null_in, read_count, read_string, write_count, write_string

_HI = Struct(">hi")
_I = Struct(">i")
_IH = Struct(">ih")


class OffsetDeleteRequestPartition(NamedTuple):
    """OffsetDeleteRequestPartition of OffsetDelete."""

    partition_index: int = 0


class OffsetDeleteRequestTopic(NamedTuple):
    """OffsetDeleteRequestTopic of OffsetDelete."""

    name: str = ""
    partitions: Sequence[OffsetDeleteRequestPartition] = ()


class OffsetDeleteRequest(NamedTuple):
    """OffsetDelete request, v0-0."""

    group_id: str = ""
    topics: Sequence[OffsetDeleteRequestTopic] = ()

    @staticmethod
    def response_type() -> type[OffsetDeleteResponse]:
        return OffsetDeleteResponse


OffsetDeleteRequest.API_KEY = 47  # type: ignore[attr-defined]


class OffsetDeleteResponsePartition(NamedTuple):
    """OffsetDeleteResponsePartition of OffsetDelete."""

    partition_index: int = 0
    error_code: int = 0


class OffsetDeleteResponseTopic(NamedTuple):
    """OffsetDeleteResponseTopic of OffsetDelete."""

    name: str = ""
    partitions: Sequence[OffsetDeleteResponsePartition] = ()


class OffsetDeleteResponse(NamedTuple):
    """OffsetDelete response, v0-0."""

    error_code: int = 0
    throttle_time_ms: int = 0
    topics: Sequence[OffsetDeleteResponseTopic] = ()


OffsetDeleteResponse.API_KEY = 47  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[OffsetDeleteRequest, int]:
    del version
    group_id_1, at = read_string(data, at)
    if group_id_1 is None:
        raise null_in("OffsetDeleteRequest.group_id")
    size, at, left = read_count(data, at, left, 6, "OffsetDeleteRequest.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_string(data, at)
        if name_4 is None:
            raise null_in("OffsetDeleteRequest.name")
        size, at, left = read_count(data, at, left, 4, "OffsetDeleteRequest.partitions")
        partitions_5: Any = None if size < 0 else []
        for _ in range(size):
            (partition_index_7,) = _I.unpack_from(data, at)
            at += 4
            item6 = _new(OffsetDeleteRequestPartition, (partition_index_7,))
            partitions_5.append(item6)
        if partitions_5 is None:
            raise null_in("OffsetDeleteRequest.partitions")
        item3 = _new(OffsetDeleteRequestTopic, (name_4, partitions_5))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("OffsetDeleteRequest.topics")
    return _new(OffsetDeleteRequest, (group_id_1, topics_2)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    write_string(out, body.group_id)
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.name)
        partitions_3 = item2.partitions
        write_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _I.pack(item4.partition_index)


def read_request(version: int) -> Any:
    return _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[OffsetDeleteResponse, int]:
    del version
    error_code_1, throttle_time_ms_2 = _HI.unpack_from(data, at)
    at += 6
    size, at, left = read_count(data, at, left, 6, "OffsetDeleteResponse.topics")
    topics_3: Any = None if size < 0 else []
    for _ in range(size):
        name_5, at = read_string(data, at)
        if name_5 is None:
            raise null_in("OffsetDeleteResponse.name")
        size, at, left = read_count(data, at, left, 6, "OffsetDeleteResponse.partitions")
        partitions_6: Any = None if size < 0 else []
        for _ in range(size):
            partition_index_8, error_code_9 = _IH.unpack_from(data, at)
            at += 6
            item7 = _new(OffsetDeleteResponsePartition, (partition_index_8, error_code_9))
            partitions_6.append(item7)
        if partitions_6 is None:
            raise null_in("OffsetDeleteResponse.partitions")
        item4 = _new(OffsetDeleteResponseTopic, (name_5, partitions_6))
        topics_3.append(item4)
    if topics_3 is None:
        raise null_in("OffsetDeleteResponse.topics")
    return _new(OffsetDeleteResponse, (error_code_1, throttle_time_ms_2, topics_3)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _HI.pack(body.error_code, body.throttle_time_ms)
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.name)
        partitions_3 = item2.partitions
        write_count(out, partitions_3)
        for item4 in partitions_3 or ():
            out += _IH.pack(item4.partition_index, item4.error_code)


def read_response(version: int) -> Any:
    return _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_classic
