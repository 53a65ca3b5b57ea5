"""Heartbeat (key 12), v0-4: a member shows that it is alive, and learns whether it must rejoin. v3 instance
id (KIP-345). Also handles members that were silent for a session timeout, and ids that were never used.

A heartbeat's response says nothing about data, so it waits for no write. Heartbeats succeed while the leader
computes the assignment (the sync timer finds a member that never sends SyncGroup, KAFKA-12890).
"""

from __future__ import annotations

from typing import Final

from ...protocol import CauseKind, ErrorCode
from ...protocol.messages.heartbeat import HeartbeatResponse
from ...statemachine import GroupState
from ..engine.effects import Request
from ..engine.timers import TimerKey
from ..groups.events import quote_text
from ..groups.groups import GroupShard
from ..settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from .group import SESSION, find_classic, live_classic
from .members import cause_about, name_of, note_unused, refuse_sender, remove_member
from .rebalance import maybe_complete_join, rebalance_or_complete

# the two responses that nearly all requests get
_ALIVE: Final = HeartbeatResponse()
_REJOIN: Final = HeartbeatResponse(0, ErrorCode.REBALANCE_IN_PROGRESS)
# plain values: reaching an enum's members costs more than a comparison
_PREPARING: Final = GroupState.PREPARING_REBALANCE


def handle_heartbeat(shard: GroupShard, request: Request, now_ms: int) -> None:
    """Make the checks in Kafka's order; a valid heartbeat restarts the session."""
    body = request.body
    group_id, member_id = body.group_id, body.member_id
    if not group_id:
        shard.refuse(request, ErrorCode.INVALID_GROUP_ID)
        return
    group = find_classic(shard, group_id)
    if group is None:
        error = ErrorCode.UNKNOWN_MEMBER_ID
    else:
        error = group.check_member(member_id, body.group_instance_id)
        if not error and body.generation_id != group.generation:
            error = ErrorCode.ILLEGAL_GENERATION
    if group is None or error:
        refuse_sender(shard, group, request, error)
        return
    timeout_ms = group.members[member_id].session_timeout_ms
    shard.timers.start((SESSION, group_id, member_id), now_ms + timeout_ms)
    shard.reply(request, _REJOIN if group.state is _PREPARING else _ALIVE)


def on_session_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Remove the member, or forget the id, and check whether waiting requests can be answered.

    A member whose own request is parked here counts as alive: its session restarts when it is answered.
    """
    _, group_id, member_id = key
    group = live_classic(shard, group_id)
    assert group is not None
    if member_id in group.pending_join:
        del group.pending_join[member_id]
        note_unused(
            shard, group, member_id, f"member id {quote_text(member_id)} was given out and not used in time"
        )
        maybe_complete_join(shard, group, now_ms)
        return
    member = group.members[member_id]
    if member.waits:
        return
    if member.is_new:
        seconds = NEW_MEMBER_JOIN_TIMEOUT_MS / 1000
        kind = CauseKind.LATE_JOIN
        text = f"{name_of(member)} did not finish joining within {seconds:.1f} s"
    else:
        kind = CauseKind.SESSION_EXPIRED
        text = f"session of {name_of(member)} expired after {member.session_timeout_ms / 1000:.1f} s"
    cause = cause_about(member, kind, text)
    remove_member(shard, group, member, cause)
    rebalance_or_complete(shard, group, cause, now_ms)
