"""Hot requests, read by hand: each function gives the reader of one version's bodies.

A reader takes a frame and where its body starts, and raises one of UNREADABLE for what the reference shall
judge. The bodies have the schema's field names.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from ._hot_fields import CLASSIC_READERS, COMPACT_READERS, INT32, INT64, compact_nullable

#: Reads a body.
Reader: TypeAlias = Callable[[bytes, int], Any]

_EMPTY_LENGTH: Final = 1

# makes a named tuple in half the time of calling its class
_new: Final = tuple.__new__


class HeartbeatBody(NamedTuple):
    """Heartbeat v0-4."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class CommitBodyPartition(NamedTuple):
    """A partition of an OffsetCommit."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


class CommitBodyTopic(NamedTuple):
    """A topic of an OffsetCommit; ``topic_id`` is None below v10, and where it is all zeros."""

    name: str
    topic_id: uuid.UUID | None
    partitions: list[CommitBodyPartition]


class CommitBody(NamedTuple):
    """OffsetCommit v2-10."""

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    topics: list[CommitBodyTopic]


class JoinBodyProtocol(NamedTuple):
    """A protocol of a JoinGroup."""

    name: str
    metadata: bytes


class JoinBody(NamedTuple):
    """JoinGroup v0-9."""

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: list[JoinBodyProtocol]
    reason: str | None


class SyncBodyAssignment(NamedTuple):
    """What a leader assigns to one member."""

    member_id: str
    assignment: bytes


class SyncBody(NamedTuple):
    """SyncGroup v0-5."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: list[SyncBodyAssignment]


def heartbeat_reader(version: int, flexible: bool) -> Reader:
    """Heartbeat: v3 instance id."""
    text, nullable, _, _, tags = COMPACT_READERS if flexible else CLASSIC_READERS
    has_instance = version >= 3

    def read(frame: bytes, at: int) -> HeartbeatBody:
        group, at = text(frame, at)
        (generation,) = INT32.unpack_from(frame, at)
        member, at = text(frame, at + 4)
        instance = None
        if has_instance:
            instance, at = nullable(frame, at)
        _end(frame, tags(frame, at))
        return _new(HeartbeatBody, (group, generation, member, instance))

    return read


def commit_reader(version: int, flexible: bool) -> Reader:
    """OffsetCommit: v2-4 retention, v6 leader epoch, v7 instance id, v10 topic ids for names."""
    text, nullable, count_of, _, tags = COMPACT_READERS if flexible else CLASSIC_READERS
    has_instance, has_retention, has_epoch, has_ids = version >= 7, version <= 4, version >= 6, version >= 10

    def read(frame: bytes, at: int) -> CommitBody:
        group, at = text(frame, at)
        (generation,) = INT32.unpack_from(frame, at)
        member, at = text(frame, at + 4)
        instance, retention_ms = None, -1
        if has_instance:
            instance, at = nullable(frame, at)
        if has_retention:
            (retention_ms,) = INT64.unpack_from(frame, at)
            at += 8
        count, at = count_of(frame, at)
        topics = []
        for _ in range(count):
            name, topic_id = "", None
            if has_ids:
                topic_id, at = _uuid(frame, at)
            else:
                name, at = text(frame, at)
            partition_count, at = count_of(frame, at)
            partitions, at = read_partitions(frame, at, partition_count)
            topics.append(_new(CommitBodyTopic, (name, topic_id, partitions)))
            at = tags(frame, at)
        _end(frame, tags(frame, at))
        return _new(CommitBody, (group, generation, member, instance, retention_ms, topics))

    read_partitions = _compact_partitions if flexible else _classic_partitions(has_epoch)
    return read


def _compact_partitions(frame: bytes, at: int, count: int) -> tuple[list[CommitBodyPartition], int]:
    if count > 1:
        # nearly all are bare, without metadata: then all have the same size
        end = at + count * _BARE.size
        if (
            frame[at + 16 : end : _BARE.size] == b"\x01" * count
            and frame[at + 17 : end : _BARE.size] == b"\x00" * count
        ):
            bare = _BARE.iter_unpack(frame[at:end])
            return [
                _new(CommitBodyPartition, (number, offset, epoch, "")) for number, offset, epoch in bare
            ], end
    partitions = []
    for _ in range(count):
        fields = _INDEX_OFFSET_EPOCH.unpack_from(frame, at)
        at += 16
        length = frame[at]
        if length == _EMPTY_LENGTH:
            metadata: str | None = ""
            at += 1
        else:
            metadata, at = compact_nullable(frame, at)
        if frame[at]:
            raise IndexError("tagged fields")
        at += 1
        partitions.append(_new(CommitBodyPartition, (*fields, metadata)))
    return partitions, at


def _classic_partitions(
    has_epoch: bool,
) -> Callable[[bytes, int, int], tuple[list[CommitBodyPartition], int]]:
    fixed = _INDEX_OFFSET_EPOCH if has_epoch else _INDEX_OFFSET
    nullable = CLASSIC_READERS.nullable

    def read(frame: bytes, at: int, count: int) -> tuple[list[CommitBodyPartition], int]:
        partitions = []
        for _ in range(count):
            fields = fixed.unpack_from(frame, at)
            metadata, at = nullable(frame, at + fixed.size)
            known = (*fields, metadata) if has_epoch else (*fields, -1, metadata)
            partitions.append(_new(CommitBodyPartition, known))
        return partitions, at

    return read


_INDEX_OFFSET = struct.Struct(">iq")
_INDEX_OFFSET_EPOCH = struct.Struct(">iqi")
# and an empty metadata, no tags
_BARE = struct.Struct(">iqi2x")


def join_reader(version: int, flexible: bool) -> Reader:
    """JoinGroup: v1 rebalance timeout, v5 instance id, v8 reason."""
    text, nullable, count_of, data, tags = COMPACT_READERS if flexible else CLASSIC_READERS

    def read(frame: bytes, at: int) -> JoinBody:
        group, at = text(frame, at)
        (session_ms,) = INT32.unpack_from(frame, at)
        at += 4
        rebalance_ms = -1
        if version >= 1:
            (rebalance_ms,) = INT32.unpack_from(frame, at)
            at += 4
        member, at = text(frame, at)
        instance = reason = None
        if version >= 5:
            instance, at = nullable(frame, at)
        protocol_type, at = text(frame, at)
        count, at = count_of(frame, at)
        protocols = []
        for _ in range(count):
            name, at = text(frame, at)
            metadata, at = data(frame, at)
            at = tags(frame, at)
            protocols.append(JoinBodyProtocol(name, metadata))
        if version >= 8:
            reason, at = nullable(frame, at)
        _end(frame, tags(frame, at))
        return JoinBody(group, session_ms, rebalance_ms, member, instance, protocol_type, protocols, reason)

    return read


def sync_reader(version: int, flexible: bool) -> Reader:
    """SyncGroup: v3 instance id, v5 protocol type and name."""
    text, nullable, count_of, data, tags = COMPACT_READERS if flexible else CLASSIC_READERS

    def read(frame: bytes, at: int) -> SyncBody:
        group, at = text(frame, at)
        (generation,) = INT32.unpack_from(frame, at)
        member, at = text(frame, at + 4)
        instance = protocol_type = protocol_name = None
        if version >= 3:
            instance, at = nullable(frame, at)
        if version >= 5:
            protocol_type, at = nullable(frame, at)
            protocol_name, at = nullable(frame, at)
        count, at = count_of(frame, at)
        assignments = []
        for _ in range(count):
            assigned, at = text(frame, at)
            assignment, at = data(frame, at)
            at = tags(frame, at)
            assignments.append(SyncBodyAssignment(assigned, assignment))
        _end(frame, tags(frame, at))
        return SyncBody(group, generation, member, instance, protocol_type, protocol_name, assignments)

    return read


def _uuid(frame: bytes, at: int) -> tuple[uuid.UUID | None, int]:
    data = frame[at : at + 16]
    if len(data) < 16:
        raise IndexError("an id cut short")
    return (uuid.UUID(bytes=data) if any(data) else None), at + 16


def _end(frame: bytes, at: int) -> None:
    if at > len(frame):
        raise IndexError("the frame ends early")
