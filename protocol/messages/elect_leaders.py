"""ElectLeaders (43), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

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

_B = Struct(">b")
_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")
_IX = Struct(">ix")


class TopicPartitions(NamedTuple):
    """TopicPartitions of ElectLeaders."""

    topic: str = ""
    partitions: Sequence[int] = ()


class ElectLeadersRequest(NamedTuple):
    """ElectLeaders request, v0-2."""

    election_type: int = 0
    topic_partitions: Sequence[TopicPartitions] | None = ()
    timeout_ms: int = 60000

    @staticmethod
    def response_type() -> type[ElectLeadersResponse]:
        return ElectLeadersResponse


ElectLeadersRequest.API_KEY = 43  # type: ignore[attr-defined]


class PartitionResult(NamedTuple):
    """PartitionResult of ElectLeaders."""

    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""


class ReplicaElectionResult(NamedTuple):
    """ReplicaElectionResult of ElectLeaders."""

    topic: str = ""
    partition_result: Sequence[PartitionResult] = ()


class ElectLeadersResponse(NamedTuple):
    """ElectLeaders response, v0-2."""

    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: Sequence[ReplicaElectionResult] = ()


ElectLeadersResponse.API_KEY = 43  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[ElectLeadersRequest, int]:
    election_type_1: Any = 0
    if version >= 1:
        (election_type_1,) = _B.unpack_from(data, at)
        at += 1
    size, at, left = read_count(data, at, left, 6, "ElectLeadersRequest.topic_partitions")
    topic_partitions_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_4, at = read_string(data, at)
        if topic_4 is None:
            raise null_in("ElectLeadersRequest.topic")
        size, at, left = read_count(data, at, left, 4, "ElectLeadersRequest.partitions")
        partitions_5 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
        at += 4 * max(size, 0)
        if partitions_5 is None:
            raise null_in("ElectLeadersRequest.partitions")
        item3 = _new(TopicPartitions, (topic_4, partitions_5))
        topic_partitions_2.append(item3)
    (timeout_ms_6,) = _I.unpack_from(data, at)
    at += 4
    return _new(ElectLeadersRequest, (election_type_1, topic_partitions_2, timeout_ms_6)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        out += _B.pack(body.election_type)
    topic_partitions_1 = body.topic_partitions
    write_count(out, topic_partitions_1)
    for item2 in topic_partitions_1 or ():
        write_string(out, item2.topic)
        partitions_3 = item2.partitions
        write_count(out, partitions_3)
        out += pack(f">{len(partitions_3 or ())}i", *(partitions_3 or ()))
    out += _I.pack(body.timeout_ms)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[ElectLeadersRequest, int]:
    del version
    (election_type_1,) = _B.unpack_from(data, at)
    at += 1
    size, at, left = read_compact_count(data, at, left, 3, "ElectLeadersRequest.topic_partitions")
    topic_partitions_2: Any = None if size < 0 else []
    for _ in range(size):
        topic_4, at = read_compact_string(data, at)
        if topic_4 is None:
            raise null_in("ElectLeadersRequest.topic")
        size, at, left = read_compact_count(data, at, left, 4, "ElectLeadersRequest.partitions")
        partitions_5 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
        at += 4 * max(size, 0)
        if partitions_5 is None:
            raise null_in("ElectLeadersRequest.partitions")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(TopicPartitions, (topic_4, partitions_5))
        topic_partitions_2.append(item3)
    (timeout_ms_6,) = _I.unpack_from(data, at)
    at += 4
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ElectLeadersRequest, (election_type_1, topic_partitions_2, timeout_ms_6)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _B.pack(body.election_type)
    topic_partitions_1 = body.topic_partitions
    write_compact_count(out, topic_partitions_1)
    for item2 in topic_partitions_1 or ():
        write_compact_string(out, item2.topic)
        partitions_3 = item2.partitions
        write_compact_count(out, partitions_3)
        out += pack(f">{len(partitions_3 or ())}i", *(partitions_3 or ()))
        out.append(0)
    out += _IX.pack(body.timeout_ms)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[ElectLeadersResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    error_code_2: Any = 0
    if version >= 1:
        (error_code_2,) = _H.unpack_from(data, at)
        at += 2
    size, at, left = read_count(data, at, left, 6, "ElectLeadersResponse.replica_election_results")
    replica_election_results_3: Any = None if size < 0 else []
    for _ in range(size):
        topic_5, at = read_string(data, at)
        if topic_5 is None:
            raise null_in("ElectLeadersResponse.topic")
        size, at, left = read_count(data, at, left, 8, "ElectLeadersResponse.partition_result")
        partition_result_6: Any = None if size < 0 else []
        for _ in range(size):
            partition_id_8, error_code_9 = _IH.unpack_from(data, at)
            at += 6
            error_message_10, at = read_string(data, at)
            item7 = _new(PartitionResult, (partition_id_8, error_code_9, error_message_10))
            partition_result_6.append(item7)
        if partition_result_6 is None:
            raise null_in("ElectLeadersResponse.partition_result")
        item4 = _new(ReplicaElectionResult, (topic_5, partition_result_6))
        replica_election_results_3.append(item4)
    if replica_election_results_3 is None:
        raise null_in("ElectLeadersResponse.replica_election_results")
    return _new(ElectLeadersResponse, (throttle_time_ms_1, error_code_2, replica_election_results_3)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    if version >= 1:
        out += _H.pack(body.error_code)
    replica_election_results_1 = body.replica_election_results
    write_count(out, replica_election_results_1)
    for item2 in replica_election_results_1 or ():
        write_string(out, item2.topic)
        partition_result_3 = item2.partition_result
        write_count(out, partition_result_3)
        for item4 in partition_result_3 or ():
            out += _IH.pack(item4.partition_id, item4.error_code)
            write_string(out, item4.error_message)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[ElectLeadersResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size, at, left = read_compact_count(data, at, left, 3, "ElectLeadersResponse.replica_election_results")
    replica_election_results_3: Any = None if size < 0 else []
    for _ in range(size):
        topic_5, at = read_compact_string(data, at)
        if topic_5 is None:
            raise null_in("ElectLeadersResponse.topic")
        size, at, left = read_compact_count(data, at, left, 8, "ElectLeadersResponse.partition_result")
        partition_result_6: Any = None if size < 0 else []
        for _ in range(size):
            partition_id_8, error_code_9 = _IH.unpack_from(data, at)
            at += 6
            error_message_10, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item7 = _new(PartitionResult, (partition_id_8, error_code_9, error_message_10))
            partition_result_6.append(item7)
        if partition_result_6 is None:
            raise null_in("ElectLeadersResponse.partition_result")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item4 = _new(ReplicaElectionResult, (topic_5, partition_result_6))
        replica_election_results_3.append(item4)
    if replica_election_results_3 is None:
        raise null_in("ElectLeadersResponse.replica_election_results")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ElectLeadersResponse, (throttle_time_ms_1, error_code_2, replica_election_results_3)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _IH.pack(body.throttle_time_ms, body.error_code)
    replica_election_results_1 = body.replica_election_results
    write_compact_count(out, replica_election_results_1)
    for item2 in replica_election_results_1 or ():
        write_compact_string(out, item2.topic)
        partition_result_3 = item2.partition_result
        write_compact_count(out, partition_result_3)
        for item4 in partition_result_3 or ():
            out += _IH.pack(item4.partition_id, item4.error_code)
            write_compact_string(out, item4.error_message)
            out.append(0)
        out.append(0)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
