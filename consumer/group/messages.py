"""The group requests as a member sends them. Fields: KIP-62, KIP-345, KIP-559, KIP-800, KIP-848."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

from ...client.offsets import CommittedOffset
from ...client.pool import Channel
from ...protocol import ApiKey
from ...protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ...protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    GivenUpPartition,
    GivenUpTopic,
    TopicPartitions,
)
from ...protocol.messages.describe_groups import DescribeGroupsRequest
from ...protocol.messages.heartbeat import HeartbeatRequest
from ...protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ...protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ...protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ..config import ConsumerConfig
from .effects import Send

#: Protocol type of consumers.
CONSUMER = "consumer"
#: Epochs of a consumer group's member that joins, that leaves, and that leaves for a while as a static
#: member.
JOIN, LEAVE, LEAVE_STATIC = 0, -1, -2
#: Brokers keep this much of a reason.
_MAX_REASON = 255


def join_group(
    config: ConsumerConfig, member_id: str, protocols: Sequence[tuple[str, bytes]], reason: str
) -> Send:
    """A JoinGroup request. ``protocols``: name and subscription of each assignor, the preferred one first."""
    body = JoinGroupRequest(
        config.group,
        config.session_timeout_ms,
        config.rebalance_ms,
        member_id,
        config.group_instance_id,
        CONSUMER,
        [JoinGroupRequestProtocol(name, data) for name, data in protocols],
        reason[:_MAX_REASON],
    )
    return Send(ApiKey.JOIN_GROUP, body, Channel.GROUP, config.round_timeout_ms)


def sync_group(
    config: ConsumerConfig,
    generation: int,
    member_id: str,
    protocol: str,
    assignments: Mapping[str, bytes],
) -> Send:
    """A SyncGroup request. Only the leader's has ``assignments``."""
    rows = [SyncGroupRequestAssignment(member, data) for member, data in assignments.items()]
    body = SyncGroupRequest(
        config.group, generation, member_id, config.group_instance_id, CONSUMER, protocol, rows
    )
    return Send(ApiKey.SYNC_GROUP, body, Channel.GROUP, config.round_timeout_ms)


def make_heartbeat(config: ConsumerConfig, generation: int, member_id: str) -> Send:
    """A heartbeat, on a connection of its own: it must not wait for a pending JoinGroup or SyncGroup."""
    body = HeartbeatRequest(config.group, generation, member_id, config.group_instance_id)
    timeout_ms = min(config.request_timeout_ms, config.session_timeout_ms)
    return Send(ApiKey.HEARTBEAT, body, Channel.HEARTBEAT, timeout_ms)


def leave_group(config: ConsumerConfig, member_id: str, reason: str) -> Send:
    """A LeaveGroup request, on the heartbeats' connection: it may have to overtake a waiting JoinGroup."""
    body = LeaveGroupRequest(config.group, member_id, [MemberIdentity(member_id, None, reason[:_MAX_REASON])])
    return Send(ApiKey.LEAVE_GROUP, body, Channel.HEARTBEAT, config.request_timeout_ms)


def consumer_heartbeat(
    config: ConsumerConfig,
    member_id: str,
    epoch: int,
    *,
    whole: bool,
    topics: Sequence[str] | None,
    regex: str | None,
    owned: Iterable[tuple[UUID, int]] | None,
    hold_ms: int = 0,
    gives_up: Mapping[tuple[UUID, int], CommittedOffset | None] = MappingProxyType({}),
) -> Send:
    """A ConsumerGroupHeartbeat request. Fields that are None stay as the coordinator knows them.

    ``whole``: with the fields that never change. An empty ``regex`` is none. ``hold_ms``: how long the
    coordinator may hold the response until there is news; the response may then have the committed offsets of
    new partitions. ``gives_up``: partitions that are no longer owned once these offsets are committed (None:
    whatever is), by a commit sent just before on the same connection. Apache Kafka ignores all three.
    """
    numbers: dict[UUID, list[int]] = defaultdict(list)
    for topic_id, number in sorted(owned or ()):
        numbers[topic_id].append(number)
    body = ConsumerGroupHeartbeatRequest(
        config.group,
        member_id,
        epoch,
        config.group_instance_id,
        (config.client_rack or None) if whole else None,
        config.rebalance_ms if whole else -1,
        topics,
        regex,
        config.server_assignor if whole else None,
        None if owned is None else [TopicPartitions(topic_id, rows) for topic_id, rows in numbers.items()],
        hold_ms,
        True,
        _given_up(gives_up),
    )
    timeout_ms = min(config.request_timeout_ms, config.session_timeout_ms) + hold_ms
    channel = Channel.CONTROL if gives_up else Channel.HEARTBEAT
    return Send(ApiKey.CONSUMER_GROUP_HEARTBEAT, body, channel, timeout_ms, at_once=bool(gives_up))


def _given_up(gives_up: Mapping[tuple[UUID, int], CommittedOffset | None]) -> list[GivenUpTopic]:
    rows: dict[UUID, list[GivenUpPartition]] = defaultdict(list)
    for (topic_id, number), said in gives_up.items():
        told = (-1, -1, "") if said is None else (said.offset, said.leader_epoch, said.metadata)
        rows[topic_id].append(GivenUpPartition(number, *told))
    return [GivenUpTopic(topic_id, partitions) for topic_id, partitions in rows.items()]


def leave_consumer_group(config: ConsumerConfig, member_id: str) -> Send:
    """The heartbeat with which a member leaves; a static one leaves for a while."""
    instance_id = config.group_instance_id
    epoch = LEAVE if instance_id is None else LEAVE_STATIC
    body = ConsumerGroupHeartbeatRequest(config.group, member_id, epoch, instance_id)
    return Send(ApiKey.CONSUMER_GROUP_HEARTBEAT, body, Channel.HEARTBEAT, config.request_timeout_ms)


def describe_group(config: ConsumerConfig) -> Send:
    """A DescribeGroups request."""
    body = DescribeGroupsRequest([config.group])
    return Send(ApiKey.DESCRIBE_GROUPS, body, Channel.HEARTBEAT, config.request_timeout_ms)


def describe_consumer_group(config: ConsumerConfig) -> Send:
    """A ConsumerGroupDescribe request, which must not wait for a heartbeat that is held."""
    body = ConsumerGroupDescribeRequest([config.group])
    return Send(ApiKey.CONSUMER_GROUP_DESCRIBE, body, Channel.CONTROL, config.request_timeout_ms)
