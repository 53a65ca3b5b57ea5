"""SyncGroup (key 14), v0-5: members ask for their assignments; the leader's request brings all of them.

v3 instance id (KIP-345), v5 protocol type and name in request and response (KIP-559).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...protocol import ErrorCode
from ...protocol.messages.sync_group import SyncGroupRequestAssignment
from ...statemachine import GroupState
from ..engine.effects import Request
from ..engine.readiness import append_error
from ..groups.groups import CONSUMER, GroupShard
from .group import SYNC, ClassicGroup, find_classic, live_classic
from .members import park_sync, refuse_sender, restart_session
from .rebalance import EMPTY_ASSIGNMENT, fail_assignment, set_assignment, sync_response

#: From this version on the request names the protocol that the sender takes for the group's.
PROTOCOL_VERSION: Final = 5

# plain values: reaching an enum's members costs more than a comparison
_PREPARING: Final = GroupState.PREPARING_REBALANCE
_STABLE: Final = GroupState.STABLE
_NONE: Final = ErrorCode.NONE

#: Errors that say that the sender is not a member, or not in this generation.
_FENCED: Final = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.ILLEGAL_GENERATION}
)


def handle_sync(shard: GroupShard, request: Request, now_ms: int) -> None:
    """Make the checks in Kafka's order, then go by state: park while completing, answer at once
    when stable.
    """
    body = request.body
    group = find_classic(shard, body.group_id) if body.group_id else None
    error = _sync_error(group, request)
    if group is None or error:
        if error in _FENCED:
            refuse_sender(shard, group, request, error)
        else:
            shard.refuse(request, error)
        return
    member = group.members[body.member_id]
    group.pending_sync.pop(member.member_id, None)
    if not group.pending_sync:
        shard.timers.cancel((SYNC, group.group_id))
    if group.state is _STABLE:
        # its session restarts with this response
        restart_session(shard, group, member, now_ms)
        shard.reply(request, sync_response(group, member))
        return
    park_sync(shard, member, request)
    if member.member_id == group.leader_id and group.staged_generation != group.generation:
        _store_assignment(shard, group, body.assignments)


def _sync_error(group: ClassicGroup | None, request: Request) -> ErrorCode:
    body = request.body
    names_protocol = request.version >= PROTOCOL_VERSION
    if names_protocol and (body.protocol_type is None or body.protocol_name is None):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not body.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(body.member_id, body.group_instance_id)
    if error:
        return error
    if body.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if names_protocol and (body.protocol_type, body.protocol_name) != (
        group.protocol_type,
        group.protocol_name,
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is _PREPARING:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return _NONE


def _store_assignment(
    shard: GroupShard, group: ClassicGroup, assignments: Iterable[SyncGroupRequestAssignment]
) -> None:
    """Write the leader's assignment, unless one is being written: members get what the log has."""
    given = {entry.member_id: bytes(entry.assignment or b"") for entry in assignments}
    empty = EMPTY_ASSIGNMENT if group.protocol_type == CONSUMER else b""
    chosen = {member_id: given.get(member_id) or empty for member_id in group.members}
    group_id, generation = group.group_id, group.generation
    group.staged_generation = generation

    def settled(error: ErrorCode, now_ms: int) -> None:
        group = live_classic(shard, group_id)
        completing = group is not None and group.state is GroupState.COMPLETING_REBALANCE
        if group is None or not completing or group.generation != generation:
            return
        if error:
            fail_assignment(shard, group, append_error(error), now_ms)
        else:
            set_assignment(shard, group, chosen, now_ms)

    shard.append(group_id, (group.to_record(chosen),), settled)
