"""Bodies of the answers: plain objects with the schema's field names, so that any encoder can write them.

A field that a version does not have is simply not written. Where versions differ in what a field may hold,
the function that builds the reply knows.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ..protocol import operation_bits

NO_TOPIC_ID: Final = uuid.UUID(int=0)

#: What may be done to a group where there are no access rules, as bits of Kafka's AclOperation (KIP-430):
#: READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
GROUP_OPERATIONS: Final = operation_bits((3, 6, 8, 10, 11))
#: To who has not asked for them.
OPERATIONS_NOT_ASKED: Final = -(1 << 31)


@dataclass(slots=True)
class JoinReplyMember:
    """One member, as the leader is told of it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(slots=True)
class JoinReply:
    """JoinGroup. ``members`` is filled for the leader alone."""

    error_code: int
    member_id: str
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: list[JoinReplyMember] = field(default_factory=list)
    throttle_time_ms: int = 0


def protocol_told(version: int, protocol_name: str | None) -> str | None:
    """A protocol name as a JoinGroup answer has it: from v7 on none, and one without letters, is null."""
    return protocol_name or (None if version >= 7 else "")


def join_failed(version: int, error_code: int, member_id: str) -> JoinReply:
    """A JoinGroup answer that is an error; the protocol is null where the version can say so, else ""."""
    return JoinReply(error_code, member_id, protocol_name=protocol_told(version, None))


@dataclass(slots=True)
class SyncReply:
    """SyncGroup."""

    error_code: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
    throttle_time_ms: int = 0


@dataclass(slots=True)
class HeartbeatReply:
    """Heartbeat."""

    error_code: int
    throttle_time_ms: int = 0


@dataclass(slots=True)
class LeaveReplyMember:
    """The outcome for one member of a LeaveGroup (v3+)."""

    member_id: str
    group_instance_id: str | None
    error_code: int


@dataclass(slots=True)
class LeaveReply:
    """LeaveGroup. Below v3 the error of the one member is the top-level one."""

    error_code: int
    members: list[LeaveReplyMember] = field(default_factory=list)
    throttle_time_ms: int = 0


class PartitionError(NamedTuple):
    """The outcome for one partition of OffsetCommit or OffsetDelete."""

    partition_index: int
    error_code: int


@dataclass(slots=True)
class TopicErrors:
    """Outcomes by topic: by name, or by id from OffsetCommit v10."""

    name: str
    topic_id: uuid.UUID
    partitions: list[PartitionError]


@dataclass(slots=True)
class CommitReply:
    """OffsetCommit."""

    topics: list[TopicErrors]
    throttle_time_ms: int = 0


@dataclass(slots=True)
class OffsetDeleteReply:
    """OffsetDelete."""

    error_code: int
    topics: list[TopicErrors] = field(default_factory=list)
    throttle_time_ms: int = 0


@dataclass(slots=True)
class FetchedPartition:
    """One offset of OffsetFetch; -1 where nothing is committed."""

    partition_index: int
    committed_offset: int = -1
    committed_leader_epoch: int = -1
    metadata: str = ""
    error_code: int = 0


@dataclass(slots=True)
class FetchedTopic:
    """Offsets by topic: by name, or by id from v10."""

    name: str
    topic_id: uuid.UUID
    partitions: list[FetchedPartition]


@dataclass(slots=True)
class FetchedGroup:
    """Offsets of one group (v8+ carries many)."""

    group_id: str
    topics: list[FetchedTopic]
    error_code: int = 0


@dataclass(slots=True)
class FetchReply:
    """OffsetFetch: ``groups`` from v8, the other two below."""

    topics: list[FetchedTopic]
    groups: list[FetchedGroup]
    error_code: int = 0
    throttle_time_ms: int = 0


@dataclass(slots=True)
class DescribedMember:
    """A member in DescribeGroups."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


@dataclass(slots=True)
class DescribedGroup:
    """A group in DescribeGroups."""

    error_code: int
    group_id: str
    group_state: str = "Dead"
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedMember] = field(default_factory=list)
    error_message: str | None = None
    authorized_operations: int = OPERATIONS_NOT_ASKED


@dataclass(slots=True)
class ListedGroup:
    """A group in ListGroups."""

    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


@dataclass(slots=True)
class DeletedGroup:
    """The outcome for one group of DeleteGroups."""

    group_id: str
    error_code: int


@dataclass(slots=True)
class GroupsReply:
    """DescribeGroups and ListGroups (``groups``), DeleteGroups (``results``)."""

    groups: list[Any] = field(default_factory=list)
    results: list[DeletedGroup] = field(default_factory=list)
    error_code: int = 0
    throttle_time_ms: int = 0
