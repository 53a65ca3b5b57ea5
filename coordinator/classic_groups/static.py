"""Return of a static member (KIP-345): a JoinGroup without a member id, with a known instance id.

It gets a new member id and everything that the old one had; the old id is fenced. In a Stable group where
nothing has changed, no rebalance follows: the new id is made durable, then the member is answered with the
current generation. "Changed" means that another protocol would be chosen, or that it subscribes to other
topics (KAFKA-12759).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import partial

from ...protocol import CauseKind, ErrorCode, subscribed_topics
from ...protocol.messages.join_group import JoinGroupResponse
from ...protocol.messages.sync_group import SyncGroupResponse
from ...statemachine import GroupState
from ..engine.effects import Request
from ..engine.readiness import append_error
from ..groups.events import Cause, MemberReplaced, quote_text
from ..groups.groups import CONSUMER, GroupShard
from ..shared_responses import protocol_told
from .group import SESSION, ClassicGroup, ClassicMember, live_classic
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


@dataclass(slots=True)
class _Replacement:
    """A replacement whose record is being written. ``former_leader`` is the former leader's id."""

    group_id: str
    generation: int
    member_id: str
    request: Request
    former: ClassicMember
    former_leader: str

    def on_settled(self, shard: GroupShard, error: ErrorCode, now_ms: int) -> None:
        group = live_classic(shard, self.group_id)
        member = None if group is None else group.members.get(self.member_id)
        if (
            group is None
            or member is None
            or member.parked_join is not self.request
            or group.state is not GroupState.STABLE
            or group.generation != self.generation
        ):
            # a rebalance began meanwhile: the request is parked in its round
            return
        if error:
            answer_join_error(shard, group, member, append_error(error))
            self._undo_rename(shard, group, member)
        else:
            answer_join(shard, group, member, self._make_response(group, member))
        restart_session(shard, group, member, now_ms)

    def _undo_rename(self, shard: GroupShard, group: ClassicGroup, member: ClassicMember) -> None:
        _rename_member(shard, group, member, self.former.member_id)
        group.set_protocols(member, self.former.protocols)
        member.client_id, member.client_host = self.former.client_id, self.former.client_host
        member.session_timeout_ms = self.former.session_timeout_ms
        member.rebalance_timeout_ms = self.former.rebalance_timeout_ms

    def _make_response(self, group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse:
        reply = JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=protocol_told(self.request.version, group.protocol_name),
            leader=self.former_leader,
            member_id=member.member_id,
        )
        if self.request.version >= _SKIP_ASSIGNMENT_VERSION:
            leads = group.leader_id == member.member_id
            members = member_list(group) if leads else ()
            leader = group.leader_id or ""
            reply = reply._replace(leader=leader, skip_assignment=leads, members=members)
        return reply


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
    changed = group.choose_protocol() != group.protocol_name or _interest_of(group, member) != topics_before
    if group.state is GroupState.STABLE and not changed:
        made = _Replacement(group.group_id, group.generation, member_id, request, former, former_leader)
        shard.append(group.group_id, (group.to_record(),), partial(made.on_settled, shard))
    else:
        prepare_rebalance(shard, group, _cause_of_replacement(member, former, changed=changed), now_ms)


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
