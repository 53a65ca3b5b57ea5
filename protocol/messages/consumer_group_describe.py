"""ConsumerGroupDescribe (69), versions 0 to 1. Written by scripts/generate_messages.py: do not edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any
from uuid import UUID

from .wire import (
    NO_UUID,
    NamedTuple,
    _new,
    all_steps,
    null_in,
    pack,
    read_compact_count,
    read_compact_string,
    read_uuid,
    skip_tags,
    unpack_from,
    write_compact_count,
    write_compact_string,
)

_T = Struct(">?")
_TX = Struct(">?x")
_B = Struct(">b")
_H = Struct(">h")
_I = Struct(">i")
_II = Struct(">ii")
_IX = Struct(">ix")


class ConsumerGroupDescribeRequest(NamedTuple):
    """ConsumerGroupDescribe request, v0-1."""

    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False

    @staticmethod
    def response_type() -> type[ConsumerGroupDescribeResponse]:
        return ConsumerGroupDescribeResponse


ConsumerGroupDescribeRequest.API_KEY = 69  # type: ignore[attr-defined]


class TopicPartitions(NamedTuple):
    """TopicPartitions of ConsumerGroupDescribe."""

    topic_id: UUID | None = None
    topic_name: str = ""
    partitions: Sequence[int] = ()


class Assignment(NamedTuple):
    """Assignment of ConsumerGroupDescribe."""

    topic_partitions: Sequence[TopicPartitions] = ()


class Member(NamedTuple):
    """Member of ConsumerGroupDescribe."""

    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Sequence[str] = ()
    subscribed_topic_regex: str | None = None
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    member_type: int = -1


class DescribedGroup(NamedTuple):
    """DescribedGroup of ConsumerGroupDescribe."""

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: Sequence[Member] = ()
    authorized_operations: int = -2147483648


class ConsumerGroupDescribeResponse(NamedTuple):
    """ConsumerGroupDescribe response, v0-1."""

    throttle_time_ms: int = 0
    groups: Sequence[DescribedGroup] = ()


ConsumerGroupDescribeResponse.API_KEY = 69  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ConsumerGroupDescribeRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 1, "ConsumerGroupDescribeRequest.group_ids")
    group_ids_1: Any = None if size < 0 else []
    for _ in range(size):
        item2, at = read_compact_string(data, at)
        if item2 is None:
            raise null_in("ConsumerGroupDescribeRequest.group_ids")
        group_ids_1.append(item2)
    if group_ids_1 is None:
        raise null_in("ConsumerGroupDescribeRequest.group_ids")
    (include_authorized_operations_3,) = _T.unpack_from(data, at)
    at += 1
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ConsumerGroupDescribeRequest, (group_ids_1, include_authorized_operations_3)), at


def _write_request_flexible(out: bytearray, body: Any, version: int) -> None:
    del version
    group_ids_1 = body.group_ids
    write_compact_count(out, group_ids_1)
    for item2 in group_ids_1 or ():
        write_compact_string(out, item2)
    out += _TX.pack(body.include_authorized_operations)


def read_request(version: int) -> Any:
    return _read_request_flexible


def write_request(version: int) -> Any:
    return _write_request_flexible


def _read_response_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ConsumerGroupDescribeResponse, int]:
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 20, "ConsumerGroupDescribeResponse.groups")
    groups_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_compact_string(data, at)
        group_id_6, at = read_compact_string(data, at)
        if group_id_6 is None:
            raise null_in("ConsumerGroupDescribeResponse.group_id")
        group_state_7, at = read_compact_string(data, at)
        if group_state_7 is None:
            raise null_in("ConsumerGroupDescribeResponse.group_state")
        group_epoch_8, assignment_epoch_9 = _II.unpack_from(data, at)
        at += 8
        assignor_name_10, at = read_compact_string(data, at)
        if assignor_name_10 is None:
            raise null_in("ConsumerGroupDescribeResponse.assignor_name")
        size, at, left = read_compact_count(data, at, left, 16, "ConsumerGroupDescribeResponse.members")
        members_11: Any = None if size < 0 else []
        for _ in range(size):
            member_id_13, at = read_compact_string(data, at)
            if member_id_13 is None:
                raise null_in("ConsumerGroupDescribeResponse.member_id")
            instance_id_14, at = read_compact_string(data, at)
            rack_id_15, at = read_compact_string(data, at)
            (member_epoch_16,) = _I.unpack_from(data, at)
            at += 4
            client_id_17, at = read_compact_string(data, at)
            if client_id_17 is None:
                raise null_in("ConsumerGroupDescribeResponse.client_id")
            client_host_18, at = read_compact_string(data, at)
            if client_host_18 is None:
                raise null_in("ConsumerGroupDescribeResponse.client_host")
            size, at, left = read_compact_count(
                data, at, left, 1, "ConsumerGroupDescribeResponse.subscribed_topic_names"
            )
            subscribed_topic_names_19: Any = None if size < 0 else []
            for _ in range(size):
                item20, at = read_compact_string(data, at)
                if item20 is None:
                    raise null_in("ConsumerGroupDescribeResponse.subscribed_topic_names")
                subscribed_topic_names_19.append(item20)
            if subscribed_topic_names_19 is None:
                raise null_in("ConsumerGroupDescribeResponse.subscribed_topic_names")
            subscribed_topic_regex_21, at = read_compact_string(data, at)
            size, at, left = read_compact_count(
                data, at, left, 19, "ConsumerGroupDescribeResponse.topic_partitions"
            )
            topic_partitions_23: Any = None if size < 0 else []
            for _ in range(size):
                topic_id_25 = read_uuid(data[at : at + 16])
                at += 16
                topic_name_26, at = read_compact_string(data, at)
                if topic_name_26 is None:
                    raise null_in("ConsumerGroupDescribeResponse.topic_name")
                size, at, left = read_compact_count(
                    data, at, left, 4, "ConsumerGroupDescribeResponse.partitions"
                )
                partitions_27 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
                at += 4 * max(size, 0)
                if partitions_27 is None:
                    raise null_in("ConsumerGroupDescribeResponse.partitions")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item24 = _new(TopicPartitions, (topic_id_25, topic_name_26, partitions_27))
                topic_partitions_23.append(item24)
            if topic_partitions_23 is None:
                raise null_in("ConsumerGroupDescribeResponse.topic_partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            assignment_22 = _new(Assignment, (topic_partitions_23,))
            size, at, left = read_compact_count(
                data, at, left, 19, "ConsumerGroupDescribeResponse.topic_partitions"
            )
            topic_partitions_29: Any = None if size < 0 else []
            for _ in range(size):
                topic_id_31 = read_uuid(data[at : at + 16])
                at += 16
                topic_name_32, at = read_compact_string(data, at)
                if topic_name_32 is None:
                    raise null_in("ConsumerGroupDescribeResponse.topic_name")
                size, at, left = read_compact_count(
                    data, at, left, 4, "ConsumerGroupDescribeResponse.partitions"
                )
                partitions_33 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
                at += 4 * max(size, 0)
                if partitions_33 is None:
                    raise null_in("ConsumerGroupDescribeResponse.partitions")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item30 = _new(TopicPartitions, (topic_id_31, topic_name_32, partitions_33))
                topic_partitions_29.append(item30)
            if topic_partitions_29 is None:
                raise null_in("ConsumerGroupDescribeResponse.topic_partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            target_assignment_28 = _new(Assignment, (topic_partitions_29,))
            member_type_34: Any = -1
            if version >= 1:
                (member_type_34,) = _B.unpack_from(data, at)
                at += 1
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item12 = _new(
                Member,
                (
                    member_id_13,
                    instance_id_14,
                    rack_id_15,
                    member_epoch_16,
                    client_id_17,
                    client_host_18,
                    subscribed_topic_names_19,
                    subscribed_topic_regex_21,
                    assignment_22,
                    target_assignment_28,
                    member_type_34,
                ),
            )
            members_11.append(item12)
        if members_11 is None:
            raise null_in("ConsumerGroupDescribeResponse.members")
        (authorized_operations_35,) = _I.unpack_from(data, at)
        at += 4
        if data[at]:
            at = skip_tags(data, at)
        else:
            at += 1
        item3 = _new(
            DescribedGroup,
            (
                error_code_4,
                error_message_5,
                group_id_6,
                group_state_7,
                group_epoch_8,
                assignment_epoch_9,
                assignor_name_10,
                members_11,
                authorized_operations_35,
            ),
        )
        groups_2.append(item3)
    if groups_2 is None:
        raise null_in("ConsumerGroupDescribeResponse.groups")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ConsumerGroupDescribeResponse, (throttle_time_ms_1, groups_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> Iterator[None]:
    out += _I.pack(body.throttle_time_ms)
    groups_1 = body.groups
    write_compact_count(out, groups_1)
    for item2 in groups_1 or ():
        out += _H.pack(item2.error_code)
        write_compact_string(out, item2.error_message)
        write_compact_string(out, item2.group_id)
        write_compact_string(out, item2.group_state)
        out += _II.pack(item2.group_epoch, item2.assignment_epoch)
        write_compact_string(out, item2.assignor_name)
        members_3 = item2.members
        write_compact_count(out, members_3)
        for item4 in members_3 or ():
            write_compact_string(out, item4.member_id)
            write_compact_string(out, item4.instance_id)
            write_compact_string(out, item4.rack_id)
            out += _I.pack(item4.member_epoch)
            write_compact_string(out, item4.client_id)
            write_compact_string(out, item4.client_host)
            subscribed_topic_names_5 = item4.subscribed_topic_names
            write_compact_count(out, subscribed_topic_names_5)
            for item6 in subscribed_topic_names_5 or ():
                write_compact_string(out, item6)
            write_compact_string(out, item4.subscribed_topic_regex)
            assignment_7 = item4.assignment
            topic_partitions_8 = assignment_7.topic_partitions
            write_compact_count(out, topic_partitions_8)
            for item9 in topic_partitions_8 or ():
                uuid = item9.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
                write_compact_string(out, item9.topic_name)
                partitions_10 = item9.partitions
                write_compact_count(out, partitions_10)
                out += pack(f">{len(partitions_10 or ())}i", *(partitions_10 or ()))
                out.append(0)
            out.append(0)
            target_assignment_12 = item4.target_assignment
            topic_partitions_13 = target_assignment_12.topic_partitions
            write_compact_count(out, topic_partitions_13)
            for item14 in topic_partitions_13 or ():
                uuid = item14.topic_id
                out += NO_UUID if uuid is None else uuid.bytes
                write_compact_string(out, item14.topic_name)
                partitions_15 = item14.partitions
                write_compact_count(out, partitions_15)
                out += pack(f">{len(partitions_15 or ())}i", *(partitions_15 or ()))
                out.append(0)
            out.append(0)
            if version >= 1:
                out += _B.pack(item4.member_type)
            out.append(0)
            yield
        out += _IX.pack(item2.authorized_operations)
    out.append(0)


def read_response(version: int) -> Any:
    return _read_response_flexible


def write_response_steps(version: int) -> Any:
    return _write_response_flexible


def write_response(version: int) -> Any:
    return all_steps(write_response_steps(version))
