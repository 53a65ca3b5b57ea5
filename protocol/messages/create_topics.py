"""CreateTopics (19), versions 2 to 7. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any
from uuid import UUID

from .wire import (
    NO_UUID,
    NamedTuple,
    _new,
    malformed,
    null_in,
    pack,
    read_compact_count,
    read_compact_string,
    read_count,
    read_string,
    read_tags,
    read_uuid,
    skip_tags,
    unpack_from,
    write_array,
    write_compact_count,
    write_compact_string,
    write_count,
    write_string,
    write_tags,
)

_TBT = Struct(">?b?")
_TBTX = Struct(">?b?x")
_H = Struct(">h")
_I = Struct(">i")
_IT = Struct(">i?")
_ITX = Struct(">i?x")
_IH = Struct(">ih")


class CreatableReplicaAssignment(NamedTuple):
    """CreatableReplicaAssignment of CreateTopics."""

    partition_index: int = 0
    broker_ids: Sequence[int] = ()


class CreatableTopicConfig(NamedTuple):
    """CreatableTopicConfig of CreateTopics."""

    name: str = ""
    value: str | None = ""


class CreatableTopic(NamedTuple):
    """CreatableTopic of CreateTopics."""

    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: Sequence[CreatableReplicaAssignment] = ()
    configs: Sequence[CreatableTopicConfig] = ()


class CreateTopicsRequest(NamedTuple):
    """CreateTopics request, v2-7."""

    topics: Sequence[CreatableTopic] = ()
    timeout_ms: int = 60000
    validate_only: bool = False

    @staticmethod
    def response_type() -> type[CreateTopicsResponse]:
        return CreateTopicsResponse


CreateTopicsRequest.API_KEY = 19  # type: ignore[attr-defined]


class CreatableTopicConfigs(NamedTuple):
    """CreatableTopicConfigs of CreateTopics."""

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


class CreatableTopicResult(NamedTuple):
    """CreatableTopicResult of CreateTopics."""

    name: str = ""
    topic_id: UUID | None = None
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Sequence[CreatableTopicConfigs] | None = ()


class CreateTopicsResponse(NamedTuple):
    """CreateTopics response, v2-7."""

    throttle_time_ms: int = 0
    topics: Sequence[CreatableTopicResult] = ()


CreateTopicsResponse.API_KEY = 19  # type: ignore[attr-defined]


def _read_request_classic(data: Any, at: int, version: int, left: int) -> tuple[CreateTopicsRequest, int]:
    del version
    size, at, left = read_count(data, at, left, 16, "CreateTopicsRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        name_3, at = read_string(data, at)
        if name_3 is None:
            raise null_in("CreateTopicsRequest.name")
        num_partitions_4, replication_factor_5 = _IH.unpack_from(data, at)
        at += 6
        size, at, left = read_count(data, at, left, 8, "CreateTopicsRequest.assignments")
        assignments_6: Any = None if size < 0 else []
        for _ in range(size):
            (partition_index_8,) = _I.unpack_from(data, at)
            at += 4
            size, at, left = read_count(data, at, left, 4, "CreateTopicsRequest.broker_ids")
            broker_ids_9 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if broker_ids_9 is None:
                raise null_in("CreateTopicsRequest.broker_ids")
            item7 = _new(CreatableReplicaAssignment, (partition_index_8, broker_ids_9))
            assignments_6.append(item7)
        if assignments_6 is None:
            raise null_in("CreateTopicsRequest.assignments")
        size, at, left = read_count(data, at, left, 4, "CreateTopicsRequest.configs")
        configs_10: Any = None if size < 0 else []
        for _ in range(size):
            name_12, at = read_string(data, at)
            if name_12 is None:
                raise null_in("CreateTopicsRequest.name")
            value_13, at = read_string(data, at)
            item11 = _new(CreatableTopicConfig, (name_12, value_13))
            configs_10.append(item11)
        if configs_10 is None:
            raise null_in("CreateTopicsRequest.configs")
        item2 = _new(
            CreatableTopic, (name_3, num_partitions_4, replication_factor_5, assignments_6, configs_10)
        )
        topics_1.append(item2)
    if topics_1 is None:
        raise null_in("CreateTopicsRequest.topics")
    timeout_ms_14, validate_only_15 = _IT.unpack_from(data, at)
    at += 5
    return _new(CreateTopicsRequest, (topics_1, timeout_ms_14, validate_only_15)), at


def _write_request_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.name)
        out += _IH.pack(item2.num_partitions, item2.replication_factor)
        assignments_3 = item2.assignments
        write_count(out, assignments_3)
        for item4 in assignments_3 or ():
            out += _I.pack(item4.partition_index)
            broker_ids_5 = item4.broker_ids
            write_count(out, broker_ids_5)
            out += pack(f">{len(broker_ids_5 or ())}i", *(broker_ids_5 or ()))
        configs_7 = item2.configs
        write_count(out, configs_7)
        for item8 in configs_7 or ():
            write_string(out, item8.name)
            write_string(out, item8.value)
    out += _IT.pack(body.timeout_ms, body.validate_only)


def _read_request_flexible(data: Any, at: int, version: int, left: int) -> tuple[CreateTopicsRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 10, "CreateTopicsRequest.topics")
    topics_1: Any = None if size < 0 else []
    for _ in range(size):
        name_3, at = read_compact_string(data, at)
        if name_3 is None:
            raise null_in("CreateTopicsRequest.name")
        num_partitions_4, replication_factor_5 = _IH.unpack_from(data, at)
        at += 6
        size, at, left = read_compact_count(data, at, left, 6, "CreateTopicsRequest.assignments")
        assignments_6: Any = None if size < 0 else []
        for _ in range(size):
            (partition_index_8,) = _I.unpack_from(data, at)
            at += 4
            size, at, left = read_compact_count(data, at, left, 4, "CreateTopicsRequest.broker_ids")
            broker_ids_9 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
            at += 4 * max(size, 0)
            if broker_ids_9 is None:
                raise null_in("CreateTopicsRequest.broker_ids")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item7 = _new(CreatableReplicaAssignment, (partition_index_8, broker_ids_9))
            assignments_6.append(item7)
        if assignments_6 is None:
            raise null_in("CreateTopicsRequest.assignments")
        size, at, left = read_compact_count(data, at, left, 3, "CreateTopicsRequest.configs")
        configs_10: Any = None if size < 0 else []
        for _ in range(size):
            name_12, at = read_compact_string(data, at)
            if name_12 is None:
                raise null_in("CreateTopicsRequest.name")
            value_13, at = read_compact_string(data, at)
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item11 = _new(CreatableTopicConfig, (name_12, value_13))
            configs_10.append(item11)
        if configs_10 is None:
            raise null_in("CreateTopicsRequest.configs")
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item2 = _new(
            CreatableTopic, (name_3, num_partitions_4, replication_factor_5, assignments_6, configs_10)
        )
        topics_1.append(item2)
    if topics_1 is None:
        raise null_in("CreateTopicsRequest.topics")
    timeout_ms_14, validate_only_15 = _IT.unpack_from(data, at)
    at += 5
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(CreateTopicsRequest, (topics_1, timeout_ms_14, validate_only_15)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        out += _IH.pack(item2.num_partitions, item2.replication_factor)
        assignments_3 = item2.assignments
        write_compact_count(out, assignments_3)
        for item4 in assignments_3 or ():
            out += _I.pack(item4.partition_index)
            broker_ids_5 = item4.broker_ids
            write_compact_count(out, broker_ids_5)
            out += pack(f">{len(broker_ids_5 or ())}i", *(broker_ids_5 or ()))
            out.append(0)
        configs_7 = item2.configs
        write_compact_count(out, configs_7)
        for item8 in configs_7 or ():
            write_compact_string(out, item8.name)
            write_compact_string(out, item8.value)
            out.append(0)
        out.append(0)
    out += _ITX.pack(body.timeout_ms, body.validate_only)


def read_request(version: int) -> Any:
    return _read_request_flexible if version >= 5 else _read_request_classic


def write_request(version: int) -> Any:
    return _write_request_flexible if version >= 5 else _write_request_classic


def _read_response_classic(data: Any, at: int, version: int, left: int) -> tuple[CreateTopicsResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_count(data, at, left, 6, "CreateTopicsResponse.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_string(data, at)
        if name_4 is None:
            raise null_in("CreateTopicsResponse.name")
        (error_code_5,) = _H.unpack_from(data, at)
        at += 2
        error_message_6, at = read_string(data, at)
        item3 = _new(CreatableTopicResult, (name_4, None, error_code_5, error_message_6, 0, -1, -1, ()))
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("CreateTopicsResponse.topics")
    return _new(CreateTopicsResponse, (throttle_time_ms_1, topics_2)), at


def _write_response_classic(out: bytearray, body: Any, version: int) -> None:
    del version
    out += _I.pack(body.throttle_time_ms)
    topics_1 = body.topics
    write_count(out, topics_1)
    for item2 in topics_1 or ():
        write_string(out, item2.name)
        out += _H.pack(item2.error_code)
        write_string(out, item2.error_message)


def _read_response_flexible(data: Any, at: int, version: int, left: int) -> tuple[CreateTopicsResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 12, "CreateTopicsResponse.topics")
    topics_2: Any = None if size < 0 else []
    for _ in range(size):
        name_4, at = read_compact_string(data, at)
        if name_4 is None:
            raise null_in("CreateTopicsResponse.name")
        topic_id_5: Any = None
        if version >= 7:
            topic_id_5 = read_uuid(data[at : at + 16])
            at += 16
        (error_code_6,) = _H.unpack_from(data, at)
        at += 2
        error_message_7, at = read_compact_string(data, at)
        num_partitions_8, replication_factor_9 = _IH.unpack_from(data, at)
        at += 6
        size, at, left = read_compact_count(data, at, left, 6, "CreateTopicsResponse.configs")
        configs_10: Any = None if size < 0 else []
        for _ in range(size):
            name_12, at = read_compact_string(data, at)
            if name_12 is None:
                raise null_in("CreateTopicsResponse.name")
            value_13, at = read_compact_string(data, at)
            read_only_14, config_source_15, is_sensitive_16 = _TBT.unpack_from(data, at)
            at += 3
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item11 = _new(
                CreatableTopicConfigs, (name_12, value_13, read_only_14, config_source_15, is_sensitive_16)
            )
            configs_10.append(item11)
        topic_config_error_code_17: Any = 0
        if data[at]:
            tags, at = read_tags(data, at)
            for tag18, start, stop in tags:
                if tag18 == 0:
                    at = start
                    (topic_config_error_code_17,) = _H.unpack_from(data, at)
                    at += 2
                    if at != stop:
                        raise malformed("a tagged field of another length than it says")
                at = stop
        else:
            at += 1
        item3 = _new(
            CreatableTopicResult,
            (
                name_4,
                topic_id_5,
                error_code_6,
                error_message_7,
                topic_config_error_code_17,
                num_partitions_8,
                replication_factor_9,
                configs_10,
            ),
        )
        topics_2.append(item3)
    if topics_2 is None:
        raise null_in("CreateTopicsResponse.topics")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(CreateTopicsResponse, (throttle_time_ms_1, topics_2)), at


def _write_response_flexible_configs(out: bytearray, items: Any, version: int) -> None:
    del version
    configs_1 = items
    write_compact_count(out, configs_1)
    for item2 in configs_1 or ():
        write_compact_string(out, item2.name)
        write_compact_string(out, item2.value)
        out += _TBTX.pack(item2.read_only, item2.config_source, item2.is_sensitive)


def _write_response_flexible(out: bytearray, body: Any, version: int) -> None:
    out += _I.pack(body.throttle_time_ms)
    topics_1 = body.topics
    write_compact_count(out, topics_1)
    for item2 in topics_1 or ():
        write_compact_string(out, item2.name)
        if version >= 7:
            uuid = item2.topic_id
            out += NO_UUID if uuid is None else uuid.bytes
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        out += _IH.pack(item2.num_partitions, item2.replication_factor)
        write_array(out, item2.configs, version, _write_response_flexible_configs)
        tags3 = []
        topic_config_error_code_4 = getattr(item2, "topic_config_error_code", 0)
        if topic_config_error_code_4 != 0:
            whole5, out = out, bytearray()
            out += _H.pack(topic_config_error_code_4)
            tags3.append((0, out))
            out = whole5
        write_tags(out, tags3)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible if version >= 5 else _read_response_classic


def write_response(version: int) -> Any:
    return _write_response_flexible if version >= 5 else _write_response_classic
