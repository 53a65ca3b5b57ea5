"""Heartbeat (key 12), v0-4: a member is alive, and asks whether it must rejoin. v3 instance id (KIP-345).

Promises nothing about data, so it waits for no write. Heartbeats are good while the assignment is being made
(a member that never syncs is found by the sync timer instead, KAFKA-12890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import ErrorCode
from ...statemachine import GroupState
from ..engine.timers import SESSION
from ..replies import HeartbeatReply
from .members import check_member, fence

if TYPE_CHECKING:
    from ..engine.effects import Request
    from ..engine.shard import Shard


def handle_heartbeat(shard: Shard, request: Request, now_ms: int) -> None:
    """Checks in Kafka's order; a valid one restarts the session."""
    shard.reply(request, HeartbeatReply(_heartbeat(shard, request, now_ms)))


def refusal(_request: Request, error: int) -> HeartbeatReply:
    """A Heartbeat answer that is an error and nothing else."""
    return HeartbeatReply(error)


def _heartbeat(shard: Shard, request: Request, now_ms: int) -> ErrorCode:
    body = request.body
    if not body.group_id:
        return ErrorCode.INVALID_GROUP_ID
    group = shard.find(body.group_id)
    if group is None:
        error = ErrorCode.UNKNOWN_MEMBER_ID
    else:
        error = check_member(group, body.member_id, body.group_instance_id)
        if not error and body.generation_id != group.generation:
            error = ErrorCode.ILLEGAL_GENERATION
    if group is None or error:
        fence(shard, group, request, body.member_id, body.group_instance_id, error)
        return error
    timeout_ms = group.members[body.member_id].session_timeout_ms
    shard.timers.start((SESSION, body.group_id, body.member_id), now_ms + timeout_ms)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
