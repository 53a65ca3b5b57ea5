"""Return of a static member (KIP-345): a JoinGroup without a member id, with a known instance id.

It gets a new member id and everything that the old one had; the old id is fenced. In a Stable group where
nothing has changed, no rebalance follows: the new id is made durable, then the member is answered with the
current generation. "Changed" means that another protocol would be chosen, or that it subscribes to other
topics (KAFKA-12759).
"""

from __future__ import annotations

from copy import copy

from ...protocol import CauseKind, ErrorCode, subscribed_topics
from ...protocol.messages.join_group import JoinGroupResponse
from ...protocol.messages.sync_group import SyncGroupResponse
from ...statemachine import GroupState
from ..engine.effects import Request
from ..engine.readiness import append_error
from ..engine.timers import TimerKey
from ..groups.events import Cause, MemberReplaced, quote_text
from ..groups.groups import CONSUMER, GroupShard
from ..shared_responses import protocol_told
from .group import CLASSIC_TYPE, RETURN, SESSION, ClassicGroup, ClassicMember, Replacement, live_classic
from .members import (
    answer_join,
    answer_join_error,
    answer_sync,
    cause_about,
    park_join,
    restart_session,
    update_member,
)
from .rebalance import maybe_complete_join, member_list, prepare_rebalance

#: From this version on a returning leader is told that it leads and that it need not assign (KIP-814).
_SKIP_ASSIGNMENT_VERSION = 9

#: Members for each of which the record of a return takes up to 10 us, and others get four times as much.
MEMBERS_A_MS = 20


def replace_static_member(
    shard: GroupShard, group: ClassicGroup, member_id: str, request: Request, now_ms: int
) -> None:
    """Give the known instance id its new member id, and rebalance only if something changed."""
    member = group.members[group.static_members[request.body.group_instance_id]]
    # to undo the replacement if its record is refused
    former = copy(member)
    former_leader = group.leader_id or ""
    topics_before = _interest_of(group, member)
    answer_join_error(shard, group, member, ErrorCode.FENCED_INSTANCE_ID, member.member_id)
    answer_sync(shard, member, SyncGroupResponse(0, ErrorCode.FENCED_INSTANCE_ID))
    _rename_member(shard, group, member, member_id)
    update_member(group, member, request)
    member.client_id = request.context.client_id
    member.client_host = request.context.client_host
    restart_session(shard, group, member, now_ms)
    park_join(shard, group, member, request)
    back = cause_about(member, CauseKind.JOIN, f"rejoin of {_came_back(member, former)}")
    old_id = former.member_id
    shard.tell(back.event(MemberReplaced, group.group_id, group.generation, old_member=old_id))
    if group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete_join(shard, group, now_ms)
        return
    chosen = group.protocol_name if member.protocols == former.protocols else group.choose_protocol()
    changed = chosen != group.protocol_name or _interest_of(group, member) != topics_before
    if group.state is GroupState.STABLE and not changed:
        group.returned.append(Replacement(group.generation, member_id, request, former, former_leader))
        due_ms = group.return_ms + len(group.members) // MEMBERS_A_MS
        shard.timers.start((RETURN, group.group_id), due_ms)
        if due_ms <= now_ms:
            write_returned(shard, (RETURN, group.group_id), now_ms)
    else:
        prepare_rebalance(shard, group, _cause_of_replacement(member, former, changed=changed), now_ms)


def write_returned(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Write a group for the static members that have returned. The record has all members of the group, and
    thousands may return at once: the next one comes a while later, for all that return until then.
    """
    shard.timers.cancel(key)
    group = live_classic(shard, key[1])
    assert group is not None, "timers of a group stop when it goes"
    made, group.returned = [each for each in group.returned if each.waits_in(group)], []
    if not made:
        return
    group.return_ms = now_ms

    def settled(error: ErrorCode, now_ms: int) -> None:
        group = live_classic(shard, key[1])
        waiting = [] if group is None else [each for each in made if each.waits_in(group)]
        if group is None or not waiting:
            return
        for each in waiting:
            _answer_returned(shard, group, each, error, now_ms)
        if error:
            _restore_order(shard, group)

    shard.append(group.group_id, (group.to_record(),), settled)


def _answer_returned(
    shard: GroupShard, group: ClassicGroup, made: Replacement, error: ErrorCode, now_ms: int
) -> None:
    member = group.members[made.member_id]
    if error:
        answer_join_error(shard, group, member, append_error(error))
        _undo_rename(shard, group, member, made.former)
    else:
        answer_join(shard, group, member, _make_response(group, member, made))
    restart_session(shard, group, member, now_ms)


def _restore_order(shard: GroupShard, group: ClassicGroup) -> None:
    """Put members in the order of the log, in which a load would put them."""
    stored = shard.state.durable.of_type(CLASSIC_TYPE)[group.group_id]
    places = {each.member_id: nth for nth, each in enumerate(stored.members)}
    group.members = dict(sorted(group.members.items(), key=lambda each: places.get(each[0], len(places))))


def _undo_rename(
    shard: GroupShard, group: ClassicGroup, member: ClassicMember, former: ClassicMember
) -> None:
    _rename_member(shard, group, member, former.member_id)
    group.set_protocols(member, former.protocols)
    member.client_id, member.client_host = former.client_id, former.client_host
    member.session_timeout_ms = former.session_timeout_ms
    member.rebalance_timeout_ms = former.rebalance_timeout_ms


def _make_response(group: ClassicGroup, member: ClassicMember, made: Replacement) -> JoinGroupResponse:
    reply = JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=protocol_told(made.request.version, group.protocol_name),
        leader=made.former_leader,
        member_id=member.member_id,
    )
    if made.request.version >= _SKIP_ASSIGNMENT_VERSION:
        leads = group.leader_id == member.member_id
        members = member_list(group) if leads else ()
        leader = group.leader_id or ""
        reply = reply._replace(leader=leader, skip_assignment=leads, members=members)
    return reply


def _rename_member(shard: GroupShard, group: ClassicGroup, member: ClassicMember, member_id: str) -> None:
    shard.timers.cancel((SESSION, group.group_id, member.member_id))
    group.rename_member(member, member_id)


def _interest_of(group: ClassicGroup, member: ClassicMember) -> frozenset[str] | bytes:
    """Return the part of a member's metadata that matters: its topics, or the bytes themselves if they cannot
    be read.
    """
    metadata = member.metadata(group.protocol_name)
    if group.protocol_type == CONSUMER:
        topics = subscribed_topics(metadata)
        if topics is not None:
            return topics
    return metadata


def _cause_of_replacement(member: ClassicMember, former: ClassicMember, *, changed: bool) -> Cause:
    how = "with other subscriptions" if changed else "before the assignment was known"
    return cause_about(
        member, CauseKind.CHANGED_SUBSCRIPTION, f"rejoin of {_came_back(member, former)} {how}"
    )


def _came_back(member: ClassicMember, former: ClassicMember) -> str:
    who = f"static {quote_text(member.instance_id or '')}"
    if member.client_host == former.client_host:
        return who
    return f"{who} from another host {quote_text(member.client_host)}"
