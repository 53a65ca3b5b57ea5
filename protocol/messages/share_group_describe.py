"""ShareGroupDescribe (77), versions 1 to 1. Written by scripts/generate_messages.py: do not edit."""

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
_H = Struct(">h")
_I = Struct(">i")
_II = Struct(">ii")
_IX = Struct(">ix")


class ShareGroupDescribeRequest(NamedTuple):
    """ShareGroupDescribe request, v1-1."""

    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False

    @staticmethod
    def response_type() -> type[ShareGroupDescribeResponse]:
        return ShareGroupDescribeResponse


ShareGroupDescribeRequest.API_KEY = 77  # type: ignore[attr-defined]


class TopicPartitions(NamedTuple):
    """TopicPartitions of ShareGroupDescribe."""

    topic_id: UUID | None = None
    topic_name: str = ""
    partitions: Sequence[int] = ()


class Assignment(NamedTuple):
    """Assignment of ShareGroupDescribe."""

    topic_partitions: Sequence[TopicPartitions] = ()


class Member(NamedTuple):
    """Member of ShareGroupDescribe."""

    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Sequence[str] = ()
    assignment: Assignment = Assignment()


class DescribedGroup(NamedTuple):
    """DescribedGroup of ShareGroupDescribe."""

    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: Sequence[Member] = ()
    authorized_operations: int = -2147483648


class ShareGroupDescribeResponse(NamedTuple):
    """ShareGroupDescribe response, v1-1."""

    throttle_time_ms: int = 0
    groups: Sequence[DescribedGroup] = ()


ShareGroupDescribeResponse.API_KEY = 77  # type: ignore[attr-defined]


def _read_request_flexible(
    data: Any, at: int, version: int, left: int
) -> tuple[ShareGroupDescribeRequest, int]:
    del version
    size, at, left = read_compact_count(data, at, left, 1, "ShareGroupDescribeRequest.group_ids")
    group_ids_1: Any = None if size < 0 else []
    for _ in range(size):
        item2, at = read_compact_string(data, at)
        if item2 is None:
            raise null_in("ShareGroupDescribeRequest.group_ids")
        group_ids_1.append(item2)
    if group_ids_1 is None:
        raise null_in("ShareGroupDescribeRequest.group_ids")
    (include_authorized_operations_3,) = _T.unpack_from(data, at)
    at += 1
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ShareGroupDescribeRequest, (group_ids_1, include_authorized_operations_3)), at


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
) -> tuple[ShareGroupDescribeResponse, int]:
    del version
    (throttle_time_ms_1,) = _I.unpack_from(data, at)
    at += 4
    size, at, left = read_compact_count(data, at, left, 20, "ShareGroupDescribeResponse.groups")
    groups_2: Any = None if size < 0 else []
    for _ in range(size):
        (error_code_4,) = _H.unpack_from(data, at)
        at += 2
        error_message_5, at = read_compact_string(data, at)
        group_id_6, at = read_compact_string(data, at)
        if group_id_6 is None:
            raise null_in("ShareGroupDescribeResponse.group_id")
        group_state_7, at = read_compact_string(data, at)
        if group_state_7 is None:
            raise null_in("ShareGroupDescribeResponse.group_state")
        group_epoch_8, assignment_epoch_9 = _II.unpack_from(data, at)
        at += 8
        assignor_name_10, at = read_compact_string(data, at)
        if assignor_name_10 is None:
            raise null_in("ShareGroupDescribeResponse.assignor_name")
        size, at, left = read_compact_count(data, at, left, 12, "ShareGroupDescribeResponse.members")
        members_11: Any = None if size < 0 else []
        for _ in range(size):
            member_id_13, at = read_compact_string(data, at)
            if member_id_13 is None:
                raise null_in("ShareGroupDescribeResponse.member_id")
            rack_id_14, at = read_compact_string(data, at)
            (member_epoch_15,) = _I.unpack_from(data, at)
            at += 4
            client_id_16, at = read_compact_string(data, at)
            if client_id_16 is None:
                raise null_in("ShareGroupDescribeResponse.client_id")
            client_host_17, at = read_compact_string(data, at)
            if client_host_17 is None:
                raise null_in("ShareGroupDescribeResponse.client_host")
            size, at, left = read_compact_count(
                data, at, left, 1, "ShareGroupDescribeResponse.subscribed_topic_names"
            )
            subscribed_topic_names_18: Any = None if size < 0 else []
            for _ in range(size):
                item19, at = read_compact_string(data, at)
                if item19 is None:
                    raise null_in("ShareGroupDescribeResponse.subscribed_topic_names")
                subscribed_topic_names_18.append(item19)
            if subscribed_topic_names_18 is None:
                raise null_in("ShareGroupDescribeResponse.subscribed_topic_names")
            size, at, left = read_compact_count(
                data, at, left, 19, "ShareGroupDescribeResponse.topic_partitions"
            )
            topic_partitions_21: Any = None if size < 0 else []
            for _ in range(size):
                topic_id_23 = read_uuid(data[at : at + 16])
                at += 16
                topic_name_24, at = read_compact_string(data, at)
                if topic_name_24 is None:
                    raise null_in("ShareGroupDescribeResponse.topic_name")
                size, at, left = read_compact_count(
                    data, at, left, 4, "ShareGroupDescribeResponse.partitions"
                )
                partitions_25 = None if size < 0 else list(unpack_from(f">{size}i", data, at))
                at += 4 * max(size, 0)
                if partitions_25 is None:
                    raise null_in("ShareGroupDescribeResponse.partitions")
                if data[at]:
                    at = skip_tags(data, at)
                else:
                    at += 1
                item22 = _new(TopicPartitions, (topic_id_23, topic_name_24, partitions_25))
                topic_partitions_21.append(item22)
            if topic_partitions_21 is None:
                raise null_in("ShareGroupDescribeResponse.topic_partitions")
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            assignment_20 = _new(Assignment, (topic_partitions_21,))
            if data[at]:
                at = skip_tags(data, at)
            else:
                at += 1
            item12 = _new(
                Member,
                (
                    member_id_13,
                    rack_id_14,
                    member_epoch_15,
                    client_id_16,
                    client_host_17,
                    subscribed_topic_names_18,
                    assignment_20,
                ),
            )
            members_11.append(item12)
        if members_11 is None:
            raise null_in("ShareGroupDescribeResponse.members")
        (authorized_operations_26,) = _I.unpack_from(data, at)
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
                authorized_operations_26,
            ),
        )
        groups_2.append(item3)
    if groups_2 is None:
        raise null_in("ShareGroupDescribeResponse.groups")
    if data[at]:
        at = skip_tags(data, at)
    else:
        at += 1
    return _new(ShareGroupDescribeResponse, (throttle_time_ms_1, groups_2)), at


def _write_response_flexible(out: bytearray, body: Any, version: int) -> Iterator[None]:
    del version
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
            write_compact_string(out, item4.rack_id)
            out += _I.pack(item4.member_epoch)
            write_compact_string(out, item4.client_id)
            write_compact_string(out, item4.client_host)
            subscribed_topic_names_5 = item4.subscribed_topic_names
            write_compact_count(out, subscribed_topic_names_5)
            for item6 in subscribed_topic_names_5 or ():
                write_compact_string(out, item6)
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
