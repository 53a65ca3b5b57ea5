"""Heartbeats that are held until there is news of their member, as kohort's consumer asks for (``HoldMs``).

A partition that moves has no reader until its next one has heard that it is free: with this it hears at once.
Only a heartbeat that tells nothing is held, and of each member only the last one. It is answered when the
group has a new epoch or target, when a partition that the member waits for is free, before the next request
of the member, and when its time is over. Then it counts as if it had come at that moment, except for the
session.
"""

from __future__ import annotations

from typing import Any, Final

from ...protocol import ErrorCode
from ...statemachine import AssignmentState
from ..engine.effects import Request
from ..groups import GroupShard
from .group import HOLD, ConsumerGroup, Member

#: A heartbeat is held for this part of a session at most.
_SESSIONS: Final = 3
_UNRELEASED: Final = AssignmentState.UNRELEASED_PARTITIONS.value


def hold(shard: GroupShard, group: ConsumerGroup, request: Request, answer: Any, now_ms: int) -> bool:
    """Hold a heartbeat whose answer has no news; False if it may not be held."""
    config = shard.state.config_of(group.group_id)
    until_ms = now_ms + min(
        request.body.hold_ms, config.heartbeat_interval_ms, config.session_timeout_ms // _SESSIONS
    )
    if group.epoch > group.target_epoch and group.computing is None:
        # the first heartbeat after the interval computes it
        until_ms = min(until_ms, group.target_ms + config.assignment_interval_ms)
    if until_ms <= now_ms:
        return False
    member_id = request.body.member_id
    shard.state.held.setdefault(group.group_id, {})[member_id] = request, answer
    shard.timers.start((HOLD, group.group_id, member_id), until_ms)
    return True


def let_go(shard: GroupShard, group_id: str, member_id: str) -> tuple[Request, Any] | None:
    """The heartbeat that is held for this member, with its answer of then; None if there is none."""
    members = shard.state.held.get(group_id, {})
    held = members.pop(member_id, None)
    if held is not None:
        shard.timers.cancel((HOLD, group_id, member_id))
        if not members:
            del shard.state.held[group_id]
    return held


def tell(shard: GroupShard, group: ConsumerGroup, now_ms: int, *, everyone: bool) -> None:
    """Let the heartbeats be answered of those whom a change of their group concerns, or of everyone."""
    for member_id in shard.state.held.get(group.group_id, ()):
        if everyone or (member_id in group.unsettled and _gains(group, group.members[member_id])):
            shard.timers.start((HOLD, group.group_id, member_id), now_ms)


def refuse_held(shard: GroupShard) -> None:
    """Refuse every heartbeat that is held: the shard is unloaded."""
    for members in shard.state.held.values():
        for request, _ in members.values():
            shard.refuse(request, ErrorCode.NOT_COORDINATOR)
    shard.state.held.clear()


def _gains(group: ConsumerGroup, member: Member) -> bool:
    """Return whether a partition is free that a member waits for."""
    if member.current.state != _UNRELEASED:
        return False
    for topic_id, numbers in group.targets.get(member.member_id, {}).items():
        has = member.current.assigned.get(topic_id, {})
        missing = [number for number in numbers if number not in has]
        if len(group.taken(member.member_id, topic_id, missing)) < len(missing):
            return True
    return False
