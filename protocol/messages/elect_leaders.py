"""ElectLeaders (43), versions 0 to 2. Written by scripts/generate_messages.py: do not edit."""

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

_B = Struct(">b")
_H = Struct(">h")
_I = Struct(">i")
_IH = Struct(">ih")


class TopicPartitions(NamedTuple):
    """TopicPartitions of ElectLeaders."""

    topic: str = ""
    partitions: Sequence[int] = ()


class ElectLeadersRequest(NamedTuple):
    """ElectLeaders request, v0-2."""

    election_type: int = 0
    topic_partitions: Sequence[TopicPartitions] | None = ()
    timeout_ms: int = 60000


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


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[ElectLeadersRequest, int]:
    election_type_1 = 0
    if version >= 1:
        (election_type_1,) = _B.unpack_from(data, at)
        at += 1
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("ElectLeadersRequest.topic_partitions", size, left)
        topic_partitions_2 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                topic_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ElectLeadersRequest.topic")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("ElectLeadersRequest.partitions", size, left)
                partitions_5 = list(unpack_from(f">{size}i", data, at))
                at += 4 * size
            else:
                raise null_in("ElectLeadersRequest.partitions")
            item3 = _new(TopicPartitions, (topic_4, partitions_5))
            topic_partitions_2.append(item3)
    elif size == -1:
        topic_partitions_2 = None
    else:
        raise malformed("a negative length")
    (timeout_ms_6,) = _I.unpack_from(data, at)
    at += 4
    return _new(ElectLeadersRequest, (election_type_1, topic_partitions_2, timeout_ms_6)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    if version >= 1:
        out += _B.pack(body.election_type)
    topic_partitions_1 = body.topic_partitions
    if topic_partitions_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(topic_partitions_1))
        for item2 in topic_partitions_1:
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
    out += _I.pack(body.timeout_ms)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[ElectLeadersRequest, int]:
    del version
    (election_type_1,) = _B.unpack_from(data, at)
    at += 1
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("ElectLeadersRequest.topic_partitions", size, left)
        topic_partitions_2 = []
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
                topic_4 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ElectLeadersRequest.topic")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 4 or left < 0:
                    raise too_many("ElectLeadersRequest.partitions", size, left)
                partitions_5 = list(unpack_from(f">{size}i", data, at))
                at += 4 * size
            else:
                raise null_in("ElectLeadersRequest.partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item3 = _new(TopicPartitions, (topic_4, partitions_5))
            topic_partitions_2.append(item3)
    elif size == -1:
        topic_partitions_2 = None
    else:
        raise malformed("a negative length")
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
    if topic_partitions_1 is None:
        out += b"\x00"
    else:
        size = len(topic_partitions_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in topic_partitions_1:
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
    out += _I.pack(body.timeout_ms)
    out.append(0)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 2 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 2 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[ElectLeadersResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    error_code_2 = 0
    if version >= 1:
        (error_code_2,) = _H.unpack_from(data, at)
        at += 2
    (size,) = _I.unpack_from(data, at)
    at += 4
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 6 or left < 0:
            raise too_many("ElectLeadersResponse.replica_election_results", size, left)
        replica_election_results_3 = []
        for _ in range(size):
            (size,) = _H.unpack_from(data, at)
            at += 2
            if size >= 0:
                end = at + size
                topic_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ElectLeadersResponse.topic")
            (size,) = _I.unpack_from(data, at)
            at += 4
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 8 or left < 0:
                    raise too_many("ElectLeadersResponse.partition_result", size, left)
                partition_result_6 = []
                for _ in range(size):
                    partition_id_8, error_code_9 = _IH.unpack_from(data, at)
                    at += 6
                    (size,) = _H.unpack_from(data, at)
                    at += 2
                    if size >= 0:
                        end = at + size
                        error_message_10 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        error_message_10 = None
                    else:
                        raise malformed("a negative length")
                    item7 = _new(PartitionResult, (partition_id_8, error_code_9, error_message_10))
                    partition_result_6.append(item7)
            else:
                raise null_in("ElectLeadersResponse.partition_result")
            item4 = _new(ReplicaElectionResult, (topic_5, partition_result_6))
            replica_election_results_3.append(item4)
    else:
        raise null_in("ElectLeadersResponse.replica_election_results")
    return _new(ElectLeadersResponse, (throttle_time_ms_1, error_code_2, replica_election_results_3)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    if version >= 1:
        out += _H.pack(body.error_code)
    replica_election_results_1 = body.replica_election_results
    if replica_election_results_1 is None:
        out += b"\xff\xff\xff\xff"
    else:
        out += _I.pack(len(replica_election_results_1))
        for item2 in replica_election_results_1:
            value = item2.topic
            if value is None:
                out += b"\xff\xff"
            else:
                data = value.encode()
                out += _H.pack(len(data))
                out += data
            partition_result_3 = item2.partition_result
            if partition_result_3 is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _I.pack(len(partition_result_3))
                for item4 in partition_result_3:
                    out += _IH.pack(item4.partition_id, item4.error_code)
                    value = item4.error_message
                    if value is None:
                        out += b"\xff\xff"
                    else:
                        data = value.encode()
                        out += _H.pack(len(data))
                        out += data


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[ElectLeadersResponse, int]:
    del version
    throttle_time_ms_1, error_code_2 = _IH.unpack_from(data, at)
    at += 6
    size = data[at]
    at += 1
    if size > 127:
        size, at = long_varint(data, at - 1)
    size -= 1
    if size >= 0:
        left -= size
        if size > (len(data) - at) // 3 or left < 0:
            raise too_many("ElectLeadersResponse.replica_election_results", size, left)
        replica_election_results_3 = []
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
                topic_5 = str(data[at:end], "utf-8")
                at = end
            else:
                raise null_in("ElectLeadersResponse.topic")
            size = data[at]
            at += 1
            if size > 127:
                size, at = long_varint(data, at - 1)
            size -= 1
            if size >= 0:
                left -= size
                if size > (len(data) - at) // 8 or left < 0:
                    raise too_many("ElectLeadersResponse.partition_result", size, left)
                partition_result_6 = []
                for _ in range(size):
                    partition_id_8, error_code_9 = _IH.unpack_from(data, at)
                    at += 6
                    size = data[at]
                    at += 1
                    if size > 127:
                        size, at = long_varint(data, at - 1)
                    size -= 1
                    if size >= 0:
                        if size > 32767:
                            raise malformed("a string of " + str(size) + " bytes, 32767 is the most")
                        end = at + size
                        error_message_10 = str(data[at:end], "utf-8")
                        at = end
                    elif size == -1:
                        error_message_10 = None
                    else:
                        raise malformed("a negative length")
                    if data[at]:
                        at = skip_tags(data, at)
                    else:
                        at += 1
                    item7 = _new(PartitionResult, (partition_id_8, error_code_9, error_message_10))
                    partition_result_6.append(item7)
            else:
                raise null_in("ElectLeadersResponse.partition_result")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item4 = _new(ReplicaElectionResult, (topic_5, partition_result_6))
            replica_election_results_3.append(item4)
    else:
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
    if replica_election_results_1 is None:
        out += b"\x00"
    else:
        size = len(replica_election_results_1) + 1
        out += varint(size) if size > 127 else BYTES[size]
        for item2 in replica_election_results_1:
            value = item2.topic
            if value is None:
                out += b"\x00"
            else:
                data = value.encode()
                size = len(data) + 1
                out += varint(size) if size > 127 else BYTES[size]
                out += data
            partition_result_3 = item2.partition_result
            if partition_result_3 is None:
                out += b"\x00"
            else:
                size = len(partition_result_3) + 1
                out += varint(size) if size > 127 else BYTES[size]
                for item4 in partition_result_3:
                    out += _IH.pack(item4.partition_id, item4.error_code)
                    value = item4.error_message
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


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 2 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 2 else _write_response_classic
