"""LeaveGroup (key 13), v0-5: members go at once, without waiting for their session.

v3 many members, with an outcome for each, also by instance id alone (KIP-345); v5 reason (KIP-800). One
rebalance follows for all of them.
"""

from __future__ import annotations

from ...protocol import CauseKind, ErrorCode
from ...protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from ...protocol.named_tuples import NamedTuple
from ..engine.effects import Request
from ..groups.events import Cause, quote_text
from ..groups.groups import GroupShard
from .group import ClassicGroup, find_classic
from .members import cause_about, name_of, remove_member, remove_pending, report_fenced
from .rebalance import maybe_complete_join, rebalance_or_complete

#: From this version on the request names many members.
BATCH_VERSION = 3

#: Most members of one request whose refusal is an event of the group: a request may name a hundred thousand.
MOST_FENCED_TOLD = 10


class Leaver(NamedTuple):
    """A member to be removed, as a request names it."""

    member_id: str
    instance_id: str | None
    reason: str | None


def handle_leave(shard: GroupShard, request: Request, now_ms: int) -> None:
    """Remove each member that is named; if the group becomes empty, the response waits for its record."""
    body = request.body
    if not body.group_id:
        shard.refuse(request, ErrorCode.INVALID_GROUP_ID)
        return
    group = find_classic(shard, body.group_id)
    named = leavers_of(request)
    if group is None:
        shard.reply(
            request, _make_response(request, [_outcome_of(who, ErrorCode.UNKNOWN_MEMBER_ID) for who in named])
        )
        return
    cause: Cause | None = None
    outcomes = []
    fenced = 0
    for leaver in named:
        error, gone = _remove_leaver(shard, group, leaver)
        fenced += bool(error)
        if error and fenced <= MOST_FENCED_TOLD:
            report_fenced(shard, group, request, error, leaver.member_id, leaver.instance_id)
        cause = cause or gone
        outcomes.append(_outcome_of(leaver, error))
    ticket = shard.last_ticket
    if cause is not None:
        rebalance_or_complete(shard, group, cause, now_ms)
    else:
        maybe_complete_join(shard, group, now_ms)
    shard.reply_after(ticket, request, _make_response(request, outcomes))


def leavers_of(request: Request) -> list[Leaver]:
    """Return the members that a LeaveGroup names."""
    body = request.body
    if request.version < BATCH_VERSION:
        return [Leaver(body.member_id, None, None)]
    return [Leaver(m.member_id, m.group_instance_id, m.reason) for m in body.members]


def _remove_leaver(shard: GroupShard, group: ClassicGroup, leaver: Leaver) -> tuple[ErrorCode, Cause | None]:
    member_id, instance_id, reason = leaver
    why = f" ({quote_text(reason)})" if reason else ""
    if member_id in group.pending_join:
        remove_pending(
            shard, group, member_id, f"member {quote_text(member_id)} left before it had joined{why}"
        )
        return ErrorCode.NONE, None
    by_name = not member_id and instance_id is not None
    if not member_id and instance_id is not None:
        # an administrator removes a static member by its instance id
        member_id = group.static_members.get(instance_id, "")
    error = group.check_member(member_id, instance_id)
    if error:
        return error, None
    member = group.members[member_id]
    text = f"{name_of(member)} {'was removed by its instance id' if by_name else 'left'}{why}"
    cause = cause_about(member, CauseKind.LEAVE, text)
    remove_member(shard, group, member, cause)
    return ErrorCode.NONE, cause


def _outcome_of(leaver: Leaver, error: ErrorCode) -> MemberResponse:
    return MemberResponse(leaver.member_id, leaver.instance_id, error)


def _make_response(request: Request, outcomes: list[MemberResponse]) -> LeaveGroupResponse:
    if request.version < BATCH_VERSION:
        return LeaveGroupResponse(0, outcomes[0].error_code)
    return LeaveGroupResponse(members=outcomes)
