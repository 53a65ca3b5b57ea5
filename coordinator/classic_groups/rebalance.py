"""The rounds of a rebalance (KIP-62, KIP-134): prepare, collect joins, distribute the assignment.

The names are those of the specification's procedures. A group goes

    prepare -> (joins are parked) -> complete_join -> (syncs are parked) -> set_assignment

and every path that adds, removes or changes a member ends in ``rebalance_or_complete`` or
``maybe_complete_join``, so that the group never waits for a member that is gone (KAFKA-7909, KAFKA-9752).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...protocol import CauseKind, ErrorCode
from ...protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ...protocol.messages.sync_group import SyncGroupResponse
from ...statemachine import GroupState, GroupTrigger, fire
from ..engine.timers import TimerKey
from ..groups.events import Cause, GenerationAbandoned, RebalanceCompleted, RebalanceStarted
from ..groups.groups import GroupShard
from ..shared_responses import protocol_told
from .group import (
    CLASSIC_TYPE,
    JOIN,
    SYNC,
    ClassicGroup,
    ClassicMember,
    RebalanceTrace,
    find_classic,
    live_classic,
)
from .members import (
    answer_join,
    answer_join_error,
    answer_sync,
    cause_of_lateness,
    remove_member,
    restart_session,
)

#: An empty Assignment v0, for members of consumer groups that the leader left out: Java clients cannot read
#: zero bytes.
EMPTY_ASSIGNMENT: Final = bytes.fromhex("000000000000ffffffff")

# plain values: reaching an enum's members costs more than a comparison
_EMPTY: Final = GroupState.EMPTY
_PREPARING: Final = GroupState.PREPARING_REBALANCE

# makes a named tuple in half the time of calling its class
_new: Final = tuple.__new__


def move_group(group: ClassicGroup, trigger: GroupTrigger, now_ms: int) -> None:
    """Change the state; keep the time and the former state."""
    group.previous_state = group.state
    fire(group, trigger)
    group.state_timestamp_ms = now_ms


def prepare_rebalance(shard: GroupShard, group: ClassicGroup, cause: Cause, now_ms: int) -> None:
    """Start collecting joins. Legal from Empty, CompletingRebalance and Stable.

    From Empty the first round is held open for ``group.initial.rebalance.delay.ms``, longer while members
    keep arriving, so that a service that starts many processes causes one rebalance instead of many.
    """
    if group.state is GroupState.COMPLETING_REBALANCE:
        members = len(group.members)
        shard.tell(cause.event(GenerationAbandoned, group.group_id, group.generation, members=members))
        for member in group.members.values():
            member.assignment = b""
        _answer_syncs(shard, group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
    _trace_rebalance(shard, group, cause, now_ms)
    group.pending_sync.clear()
    shard.timers.cancel((SYNC, group.group_id))
    initial = group.state is GroupState.EMPTY
    move_group(group, GroupTrigger.PREPARE, now_ms)
    if initial:
        delay_ms = shard.state.settings.group_initial_rebalance_delay_ms
        group.initial_delay_ms = delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        shard.timers.start((JOIN, group.group_id), now_ms + delay_ms)
    elif group.all_joined:
        complete_join(shard, group, now_ms)
    else:
        shard.timers.start((JOIN, group.group_id), now_ms + group.rebalance_timeout_ms)


def maybe_complete_join(shard: GroupShard, group: ClassicGroup, now_ms: int) -> None:
    """End the collecting round if all members have joined; the initial delay always runs to its end."""
    if group.state is _PREPARING and group.previous_state is not _EMPTY and group.all_joined:
        complete_join(shard, group, now_ms)


def rebalance_or_complete(shard: GroupShard, group: ClassicGroup, cause: Cause, now_ms: int) -> None:
    """Start a rebalance, or complete the one in progress if all members have joined."""
    if group.can_rebalance:
        prepare_rebalance(shard, group, cause, now_ms)
    else:
        maybe_complete_join(shard, group, now_ms)


def on_join_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Called when the time for joining is over. An initial round is extended if members arrived meanwhile."""
    group = live_classic(shard, key[1])
    assert group is not None
    if group.is_initial and group.new_member_added and group.initial_remaining_ms:
        group.new_member_added = False
        elapsed_ms = group.initial_delay_ms
        group.initial_delay_ms = min(
            shard.state.settings.group_initial_rebalance_delay_ms, group.initial_remaining_ms
        )
        group.initial_remaining_ms = max(group.initial_remaining_ms - elapsed_ms, 0)
        shard.timers.start(key, now_ms + group.initial_delay_ms)
    else:
        complete_join(shard, group, now_ms)


def on_sync_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Remove the members, static or not, whose JoinGroup was answered and that have not sent SyncGroup in
    time (KAFKA-12890).
    """
    group = live_classic(shard, key[1])
    assert group is not None
    missing = [group.members[member_id] for member_id in group.pending_sync]
    if missing:
        cause = _remove_late(shard, group, missing, CauseKind.LATE_SYNC, "sync")
        prepare_rebalance(shard, group, cause, now_ms)


def complete_join(shard: GroupShard, group: ClassicGroup, now_ms: int) -> None:
    """End the collecting round: members that have not joined are removed, all others get the new
    generation.
    """
    shard.timers.cancel((JOIN, group.group_id))
    missing = [m for m in group.members.values() if m.parked_join is None and m.instance_id is None]
    if missing:
        cause = _remove_late(shard, group, missing, CauseKind.LATE_JOIN, "rejoin")
        if group.trace is not None:
            group.trace.add(cause)
    if group.members and not _elect_leader(group):
        # only static members are left, none of which has rejoined: they stay in the group
        shard.timers.start((JOIN, group.group_id), now_ms + group.rebalance_timeout_ms)
        return
    group.generation += 1
    group.new_member_added = False
    if group.trace is not None:
        group.trace.joined_ms = now_ms
    if group.members:
        _answer_joins(shard, group, now_ms)
    else:
        _become_empty(shard, group, now_ms)


def set_assignment(
    shard: GroupShard, group: ClassicGroup, assignments: dict[str, bytes], now_ms: int
) -> None:
    """Hand out the assignment, which is durable now."""
    move_group(group, GroupTrigger.ASSIGN, now_ms)
    for member in group.members.values():
        member.assignment = assignments[member.member_id]
        if answer_sync(shard, member, sync_response(group, member)):
            restart_session(shard, group, member, now_ms)
    _note_end(shard, group, now_ms)


def fail_assignment(shard: GroupShard, group: ClassicGroup, error: ErrorCode, now_ms: int) -> None:
    """Answer the members that wait for an assignment that could not be written, and start over."""
    _answer_syncs(shard, group, error, now_ms)
    text = f"the assignment could not be written: {error.name}"
    prepare_rebalance(shard, group, Cause(text, CauseKind.NOT_WRITTEN), now_ms)


def join_response(group: ClassicGroup, member: ClassicMember, version: int) -> JoinGroupResponse:
    """Make the response to a member's JoinGroup in the current generation; the leader's lists all members."""
    members = member_list(group) if member.member_id == group.leader_id else []
    told, leader = protocol_told(version, group.protocol_name), group.leader_id or ""
    fields = (0, 0, group.generation, group.protocol_type, told, leader, False, member.member_id, members)
    return _new(JoinGroupResponse, fields)


def sync_response(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    """Make the response to a member's SyncGroup: its assignment in the current generation."""
    fields = (0, 0, group.protocol_type, group.protocol_name, member.assignment)
    return _new(SyncGroupResponse, fields)


def member_list(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """The leader's list: every member with its metadata for the chosen protocol."""
    return [
        JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata(group.protocol_name))
        for member in group.members.values()
    ]


def assignments_by_owner(members: Iterable[ClassicMember]) -> dict[str, bytes]:
    """Assignments by owner: a static member owns under its instance id, across its restarts."""
    return {member.instance_id or member.member_id: member.assignment for member in members}


def _remove_late(
    shard: GroupShard, group: ClassicGroup, missing: list[ClassicMember], kind: CauseKind, what: str
) -> Cause:
    timeout_ms = group.rebalance_timeout_ms
    for member in missing:
        remove_member(shard, group, member, cause_of_lateness([member], kind, what, timeout_ms))
    return cause_of_lateness(missing, kind, what, timeout_ms)


def _trace_rebalance(shard: GroupShard, group: ClassicGroup, cause: Cause, now_ms: int) -> None:
    shard.tell(cause.event(RebalanceStarted, group.group_id, group.generation))
    if group.trace is None:
        settled = assignments_by_owner(member for member in group.members.values() if not member.is_new)
        before, group.leaving = {**settled, **group.leaving}, {}
        group.trace = RebalanceTrace([cause], now_ms, group.settled_members, before)
    else:
        group.trace.add(cause)


def _answer_syncs(shard: GroupShard, group: ClassicGroup, error: ErrorCode, now_ms: int) -> None:
    for member in group.members.values():
        if answer_sync(shard, member, SyncGroupResponse(0, error)):
            restart_session(shard, group, member, now_ms)


def _elect_leader(group: ClassicGroup) -> bool:
    leader = group.members.get(group.leader_id or "")
    if leader is None or leader.parked_join is None:
        present = (m.member_id for m in group.members.values() if m.parked_join is not None)
        chosen = next(present, None)
        if chosen is None:
            return False
        group.leader_id = chosen
    return True


def _answer_joins(shard: GroupShard, group: ClassicGroup, now_ms: int) -> None:
    group.protocol_name = group.choose_protocol()
    group.subscribed_topics = group.compute_subscribed_topics()
    move_group(group, GroupTrigger.COMPLETE_JOIN, now_ms)
    group.pending_sync.clear()
    for member in group.members.values():
        if member.parked_join is not None:
            # a static member that is away stays in the group, but nothing waits for its SyncGroup (KIP-345)
            group.pending_sync[member.member_id] = None
            answer_join(shard, group, member, join_response(group, member, member.parked_join.version))
        member.is_new = False
        restart_session(shard, group, member, now_ms)
    shard.timers.start((SYNC, group.group_id), now_ms + group.rebalance_timeout_ms)


def _become_empty(shard: GroupShard, group: ClassicGroup, now_ms: int) -> None:
    group.protocol_name = None
    group.subscribed_topics = group.compute_subscribed_topics()
    move_group(group, GroupTrigger.COMPLETE_EMPTY, now_ms)
    shard.append(group.group_id, (group.to_record(),))
    _note_end(shard, group, now_ms)


def _note_end(shard: GroupShard, group: ClassicGroup, now_ms: int) -> None:
    trace, group.trace = group.trace, None
    group.settled_members = len(group.members)
    if trace is None:
        return
    joined_ms = now_ms if trace.joined_ms is None else trace.joined_ms
    shard.tell(
        trace.cause().event(
            RebalanceCompleted,
            group.group_id,
            group.generation,
            leader=group.leader_id or "",
            members=len(group.members),
            members_before=trace.members_before,
            protocol_type=group.protocol_type or "",
            protocol=group.protocol_name or "",
            duration_ms=now_ms - trace.started_ms,
            join_ms=joined_ms - trace.started_ms,
            sync_ms=now_ms - joined_ms,
            before=trace.assignments,
            after=assignments_by_owner(group.members.values()),
        )
    )


def activate_groups(shard: GroupShard, now_ms: int) -> None:
    """Called when the shard is loaded."""
    for group_id, record in shard.state.durable.of_type(CLASSIC_TYPE).items():
        group = find_classic(shard, group_id) if record.members else None
        if group is not None:
            resume(shard, group, now_ms)


def resume(shard: GroupShard, group: ClassicGroup, now_ms: int) -> None:
    """Start the sessions of a group restored from the log; a group that is too large rebalances."""
    for member in group.members.values():
        restart_session(shard, group, member, now_ms)
    most = shard.state.settings.group_max_size
    if len(group.members) > most:
        text = f"{len(group.members)} members loaded, group.max.size is {most}"
        prepare_rebalance(shard, group, Cause(text, CauseKind.TOO_LARGE), now_ms)


def unload_groups(shard: GroupShard, now_ms: int) -> None:
    """Called when the shard is unloaded: parked requests are answered NOT_COORDINATOR."""
    error = ErrorCode.NOT_COORDINATOR
    for group_id in list(shard.state.groups):
        group = live_classic(shard, group_id)
        if group is None:
            continue
        for member in group.members.values():
            answer_join_error(shard, group, member, error, member.member_id)
            answer_sync(shard, member, SyncGroupResponse(0, error))
        move_group(group, GroupTrigger.UNLOAD, now_ms)
        del shard.state.groups[group_id]
