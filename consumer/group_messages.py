"""The group requests as a member sends them. Fields: KIP-62, KIP-345, KIP-559, KIP-800.

Their bodies are plain: kafka-python's own classes take several times as long to make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..client.pool import Channel
from ..protocol import ApiKey
from .effects import Send

#: Protocol type of consumers.
CONSUMER = "consumer"
#: Brokers keep this much of a reason.
_MAX_REASON = 255
#: JoinGroup and SyncGroup may wait for the rebalance timeout at the coordinator; this is added to it.
_REBALANCE_SLACK_MS = 5_000


@dataclass(frozen=True, slots=True)
class MembershipSettings:
    """As in ConsumerConfig."""

    group: str
    instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 300_000
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    rack: str | None = None

    @property
    def round_timeout_ms(self) -> int:
        """Request timeout of JoinGroup and SyncGroup."""
        return max(self.request_timeout_ms, self.rebalance_timeout_ms + _REBALANCE_SLACK_MS)


@dataclass(slots=True)
class OfferedProtocol:
    """A row of a JoinGroup: an assignor's name and the subscription."""

    name: str
    metadata: bytes


@dataclass(slots=True)
class JoinGroup:
    """The body of a JoinGroup."""

    API_KEY: ClassVar[ApiKey] = ApiKey.JOIN_GROUP
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: list[OfferedProtocol]
    reason: str | None


@dataclass(slots=True)
class MemberShare:
    """A row of a SyncGroup."""

    member_id: str
    assignment: bytes


@dataclass(slots=True)
class SyncGroup:
    """The body of a SyncGroup."""

    API_KEY: ClassVar[ApiKey] = ApiKey.SYNC_GROUP
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocol_name: str
    assignments: list[MemberShare]


@dataclass(slots=True)
class Heartbeat:
    """The body of a Heartbeat."""

    API_KEY: ClassVar[ApiKey] = ApiKey.HEARTBEAT
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


@dataclass(slots=True)
class LeavingMember:
    """A row of a LeaveGroup."""

    member_id: str
    group_instance_id: str | None
    reason: str | None


@dataclass(slots=True)
class LeaveGroup:
    """The body of a LeaveGroup; ``member_id`` is for the versions without rows."""

    API_KEY: ClassVar[ApiKey] = ApiKey.LEAVE_GROUP
    group_id: str
    member_id: str
    members: list[LeavingMember]


def join_group(
    settings: MembershipSettings, member_id: str, protocols: Sequence[tuple[str, bytes]], reason: str
) -> Send:
    """A JoinGroup request.

    ``protocols``: name and subscription of each assignor, in the order of preference.
    """
    body = JoinGroup(
        settings.group,
        settings.session_timeout_ms,
        settings.rebalance_timeout_ms,
        member_id,
        settings.instance_id,
        CONSUMER,
        [OfferedProtocol(name, data) for name, data in protocols],
        reason[:_MAX_REASON],
    )
    return Send(ApiKey.JOIN_GROUP, body, Channel.GROUP, settings.round_timeout_ms)


def sync_group(
    settings: MembershipSettings,
    generation: int,
    member_id: str,
    protocol: str,
    assignments: Mapping[str, bytes],
) -> Send:
    """A SyncGroup request. Only the leader's has ``assignments``."""
    rows = [MemberShare(member, data) for member, data in assignments.items()]
    body = SyncGroup(settings.group, generation, member_id, settings.instance_id, CONSUMER, protocol, rows)
    return Send(ApiKey.SYNC_GROUP, body, Channel.GROUP, settings.round_timeout_ms)


def heartbeat(settings: MembershipSettings, generation: int, member_id: str) -> Send:
    """A heartbeat, on a connection of its own: it must not wait for a pending JoinGroup or SyncGroup."""
    body = Heartbeat(settings.group, generation, member_id, settings.instance_id)
    timeout_ms = min(settings.request_timeout_ms, settings.session_timeout_ms)
    return Send(ApiKey.HEARTBEAT, body, Channel.HEARTBEAT, timeout_ms)


def leave_group(settings: MembershipSettings, member_id: str, reason: str) -> Send:
    """A LeaveGroup request, on the heartbeats' connection: it may have to overtake a waiting JoinGroup."""
    body = LeaveGroup(settings.group, member_id, [LeavingMember(member_id, None, reason[:_MAX_REASON])])
    return Send(ApiKey.LEAVE_GROUP, body, Channel.HEARTBEAT, settings.request_timeout_ms)
