"""Members that join, change and leave: the bookkeeping that all APIs share, and parked requests.

Code that removes a member, or parks a request when one is parked already, answers the earlier request, so
that each request is answered exactly once (KAFKA-20938).
"""

from __future__ import annotations

from ...protocol import ApiKey, CauseKind, ErrorCode
from ...protocol.messages.join_group import JoinGroupResponse
from ...protocol.messages.sync_group import SyncGroupResponse
from ..engine.effects import Request
from ..groups.events import Cause, MemberFenced, MemberGone, MemberIdUnused, MemberJoined, quote_text
from ..groups.groups import Group, GroupShard, why_refused
from ..settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from ..shared_responses import join_failed
from .group import SESSION, ClassicGroup, ClassicMember, Protocols

# most names in a cause that concerns many members
_MAX_NAMES = 3


def requested_protocols(request: Request) -> Protocols:
    """Return the protocols of a JoinGroup with their metadata."""
    return tuple([(protocol.name, protocol.metadata or b"") for protocol in request.body.protocols])


def requested_rebalance_timeout_ms(request: Request) -> int:
    """The rebalance timeout of a JoinGroup: v0 has none and means the session timeout (KAFKA-8653)."""
    timeout: int = request.body.rebalance_timeout_ms
    if request.version == 0 or timeout <= 0:
        return int(request.body.session_timeout_ms)
    return timeout


def add_member(
    shard: GroupShard, group: ClassicGroup, member_id: str, request: Request, now_ms: int
) -> ClassicMember:
    """Add the sender of a JoinGroup under this id and park its request."""
    member = ClassicMember(
        member_id,
        request.body.group_instance_id,
        request.context.client_id,
        request.context.client_host,
        request.body.session_timeout_ms,
        requested_rebalance_timeout_ms(request),
        requested_protocols(request),
        is_new=True,
    )
    if group.is_initial:
        group.new_member_added = True
    group.add(member, request.body.protocol_type)
    park_join(shard, group, member, request)
    restart_session(shard, group, member, now_ms, NEW_MEMBER_JOIN_TIMEOUT_MS)
    joined = cause_about(member, CauseKind.JOIN, f"{name_of(member)} joined")
    shard.tell(joined.event(MemberJoined, group.group_id, group.generation))
    return member


def update_member(group: ClassicGroup, member: ClassicMember, request: Request) -> None:
    """Update a known member from its JoinGroup."""
    protocols = requested_protocols(request)
    if protocols != member.protocols:
        group.set_protocols(member, protocols)
    member.session_timeout_ms = request.body.session_timeout_ms
    member.rebalance_timeout_ms = requested_rebalance_timeout_ms(request)


def remove_member(shard: GroupShard, group: ClassicGroup, member: ClassicMember, cause: Cause) -> None:
    """Remove a member; its parked requests are answered UNKNOWN_MEMBER_ID. The caller starts the
    rebalance.
    """
    if group.trace is None:
        # the rebalance that follows compares with the assignments of this moment
        group.leaving[member.instance_id or member.member_id] = member.assignment
    answer_join_error(shard, group, member, ErrorCode.UNKNOWN_MEMBER_ID)
    answer_sync(shard, member, SyncGroupResponse(0, ErrorCode.UNKNOWN_MEMBER_ID))
    shard.timers.cancel((SESSION, group.group_id, member.member_id))
    group.remove(member)
    gone = cause_about(member, cause.kind, cause.text)
    shard.tell(gone.event(MemberGone, group.group_id, group.generation))


def cause_about(member: ClassicMember, kind: CauseKind, text: str) -> Cause:
    """Make a cause about a member."""
    return Cause(text, kind, member.member_id, member.instance_id, member.client_id, member.client_host)


def cause_of_lateness(members: list[ClassicMember], kind: CauseKind, what: str, timeout_ms: int) -> Cause:
    """Make the cause that members did not do ``what`` in time; it names the first few."""
    names = ", ".join(quote_text(member.member_id) for member in members[:_MAX_NAMES])
    if len(members) > _MAX_NAMES:
        names += f" and {len(members) - _MAX_NAMES} more"
    noun = "member" if len(members) == 1 else "members"
    text = f"{noun} {names} did not {what} within {timeout_ms / 1000:.1f} s"
    return cause_about(members[0], kind, text)


def name_of(member: ClassicMember) -> str:
    """Return a member's name in causes."""
    if member.instance_id is None:
        return f"member {quote_text(member.member_id)}"
    return f"static member {quote_text(member.instance_id)}"


def cause_by_sender(
    request: Request,
    text: str,
    member_id: str,
    instance_id: str | None,
    kind: CauseKind = CauseKind.OTHER,
) -> Cause:
    """Make a cause about the sender of a request, with the identity that it claims."""
    context = request.context
    return Cause(text, kind, member_id, instance_id, context.client_id, context.client_host)


def report_fenced(
    shard: GroupShard,
    group: Group | None,
    request: Request,
    error: int,
    member_id: str,
    instance_id: str | None,
) -> None:
    """Report that a request's sender was not accepted as a member."""
    body = request.body
    why = why_refused(group, member_id, instance_id, getattr(body, "generation_id", -1), error)
    cause = cause_by_sender(request, why, member_id, instance_id)
    generation, api = -1 if group is None else group.generation, ApiKey(request.api_key).name
    shard.tell(cause.event(MemberFenced, body.group_id, generation, error_code=error, api=api))


def refuse_sender(shard: GroupShard, group: ClassicGroup | None, request: Request, error: int) -> None:
    """Refuse a request whose sender is not accepted as a member, and report that."""
    report_fenced(shard, group, request, error, request.body.member_id, request.body.group_instance_id)
    shard.refuse(request, error)


def add_pending(
    shard: GroupShard, group: ClassicGroup, member_id: str, session_timeout_ms: int, now_ms: int
) -> None:
    """Remember an id that was handed out and must be used within a session timeout."""
    group.pending_join[member_id] = None
    shard.timers.start((SESSION, group.group_id, member_id), now_ms + session_timeout_ms)


def remove_pending(shard: GroupShard, group: ClassicGroup, member_id: str, why: str) -> None:
    """Forget a handed-out id, if it is one."""
    if group.pending_join.pop(member_id, member_id) is None:
        shard.timers.cancel((SESSION, group.group_id, member_id))
        note_unused(shard, group, member_id, why)


def note_unused(shard: GroupShard, group: ClassicGroup, member_id: str, why: str) -> None:
    """Report that a handed-out id was forgotten."""
    shard.tell(MemberIdUnused(group.group_id, generation=group.generation, cause=why, member=member_id))


def restart_session(
    shard: GroupShard, group: ClassicGroup, member: ClassicMember, now_ms: int, timeout_ms: int | None = None
) -> None:
    """Restart the session of a member that has shown that it is alive."""
    if timeout_ms is None:
        timeout_ms = member.session_timeout_ms
    shard.timers.start((SESSION, group.group_id, member.member_id), now_ms + timeout_ms)


def park_join(shard: GroupShard, group: ClassicGroup, member: ClassicMember, request: Request) -> None:
    """Park a JoinGroup; one that is parked already is answered NOT_COORDINATOR."""
    if member.parked_join is not None:
        answer_join_error(shard, group, member, ErrorCode.NOT_COORDINATOR, member.member_id)
    member.parked_join = request
    group.awaiting_join_count += 1


def answer_join(
    shard: GroupShard, group: ClassicGroup, member: ClassicMember, reply: JoinGroupResponse
) -> None:
    """Answer the JoinGroup that waits for this member, if one does."""
    request = member.parked_join
    if request is not None:
        member.parked_join = None
        group.awaiting_join_count -= 1
        shard.reply(request, reply)


def answer_join_error(
    shard: GroupShard, group: ClassicGroup, member: ClassicMember, error: ErrorCode, member_id: str = ""
) -> None:
    """Answer the member's parked JoinGroup, if there is one, with an error."""
    request = member.parked_join
    if request is not None:
        answer_join(shard, group, member, join_failed(request.version, error, member_id))


def park_sync(shard: GroupShard, member: ClassicMember, request: Request) -> None:
    """Park a SyncGroup; one that is parked already is answered NOT_COORDINATOR."""
    if member.parked_sync is not None:
        answer_sync(shard, member, SyncGroupResponse(0, ErrorCode.NOT_COORDINATOR))
    member.parked_sync = request


def answer_sync(shard: GroupShard, member: ClassicMember, reply: SyncGroupResponse) -> bool:
    """Answer the member's parked SyncGroup; return whether there was one."""
    request = member.parked_sync
    if request is None:
        return False
    member.parked_sync = None
    shard.reply(request, reply)
    return True
