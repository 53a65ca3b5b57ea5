"""The group requests as a member sends them. Fields: KIP-62, KIP-345, KIP-559, KIP-800."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..client.pool import Channel
from ..protocol import ApiKey
from ..protocol.messages.heartbeat import HeartbeatRequest
from ..protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ..protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ..protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
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


def join_group(
    settings: MembershipSettings, member_id: str, protocols: Sequence[tuple[str, bytes]], reason: str
) -> Send:
    """A JoinGroup request.

    ``protocols``: name and subscription of each assignor, in the order of preference.
    """
    body = JoinGroupRequest(
        settings.group,
        settings.session_timeout_ms,
        settings.rebalance_timeout_ms,
        member_id,
        settings.instance_id,
        CONSUMER,
        [JoinGroupRequestProtocol(name, data) for name, data in protocols],
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
    rows = [SyncGroupRequestAssignment(member, data) for member, data in assignments.items()]
    body = SyncGroupRequest(
        settings.group, generation, member_id, settings.instance_id, CONSUMER, protocol, rows
    )
    return Send(ApiKey.SYNC_GROUP, body, Channel.GROUP, settings.round_timeout_ms)


def heartbeat(settings: MembershipSettings, generation: int, member_id: str) -> Send:
    """A heartbeat, on a connection of its own: it must not wait for a pending JoinGroup or SyncGroup."""
    body = HeartbeatRequest(settings.group, generation, member_id, settings.instance_id)
    timeout_ms = min(settings.request_timeout_ms, settings.session_timeout_ms)
    return Send(ApiKey.HEARTBEAT, body, Channel.HEARTBEAT, timeout_ms)


def leave_group(settings: MembershipSettings, member_id: str, reason: str) -> Send:
    """A LeaveGroup request, on the heartbeats' connection: it may have to overtake a waiting JoinGroup."""
    body = LeaveGroupRequest(
        settings.group, member_id, [MemberIdentity(member_id, None, reason[:_MAX_REASON])]
    )
    return Send(ApiKey.LEAVE_GROUP, body, Channel.HEARTBEAT, settings.request_timeout_ms)
