"""JoinGroup (key 11), v0-9: a member asks to be part of the next generation.

v1 rebalance timeout, v4 MEMBER_ID_REQUIRED (KIP-394), v5 instance id (KIP-345), v7 protocol type and nullable
protocol name in the response (KIP-559), v8 reason (KIP-800), v9 skip_assignment (KIP-814).

An accepted request is answered when the round ends (``rebalance.complete_join``); this module answers with an
error or a member id, or parks the request.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ...protocol import CauseKind, ErrorCode
from ...protocol.messages.join_group import JoinGroupResponse
from ...statemachine import GroupState
from ..engine.effects import Request
from ..engine.readiness import append_error
from ..groups.events import Cause, GroupRemoved, JoinRefused, quote_text
from ..groups.groups import GroupShard, forget_group
from ..shared_responses import join_failed
from .group import ClassicGroup, ClassicMember, find_classic, live_classic
from .members import (
    add_member,
    add_pending,
    answer_join_error,
    cause_about,
    cause_by_sender,
    name_of,
    park_join,
    refuse_sender,
    remove_member,
    remove_pending,
    requested_protocols,
    restart_session,
    update_member,
)
from .rebalance import join_response, maybe_complete_join, prepare_rebalance, rebalance_or_complete
from .static import replace_static_member

# plain values: reaching an enum's members costs more than a comparison
_EMPTY: Final = GroupState.EMPTY
_PREPARING: Final = GroupState.PREPARING_REBALANCE
_NONE: Final = ErrorCode.NONE

#: From this version on a dynamic member joins in two steps.
_MEMBER_ID_REQUIRED_VERSION = 4

#: Most characters of a client or instance id that a member id begins with. Ids that are handed out are kept
#: for a while even if they are never used.
MAX_ID_PREFIX = 255


def handle_join(shard: GroupShard, request: Request, now_ms: int) -> None:
    """Make the checks in Kafka's order, then proceed by who the sender is."""
    body = request.body
    error, why = join_error(shard, request)
    if error:
        _refuse_join(shard, request, error, why)
        return
    group = shard.state.find(body.group_id)
    if isinstance(group, ClassicGroup):
        _join_group(shard, group, request, now_ms)
    elif group is not None:
        text = f"the group is of type {group.type.name}"
        _refuse_join(shard, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)
    elif body.member_id:
        refuse_sender(shard, None, request, ErrorCode.UNKNOWN_MEMBER_ID)
    else:
        group = ClassicGroup(body.group_id, state_timestamp_ms=now_ms)
        shard.state.groups[body.group_id] = group
        record = group.to_record()
        _join_group(shard, group, request, now_ms)
        # a member that has joined waits for the end of the round, not for this write
        created = partial(_on_created, shard, body.group_id)
        shard.append(body.group_id, (record,), created, lazy=True)


def refused_join(request: Request, error: int) -> JoinGroupResponse:
    """Make the response to a JoinGroup that is refused."""
    return join_failed(request.version, error, request.body.member_id)


def _on_created(shard: GroupShard, group_id: str, error: ErrorCode, _now_ms: int) -> None:
    """Called when a group's first record is written; if the write failed, the group never existed."""
    group = live_classic(shard, group_id) if error else None
    if group is None or group.generation > 0 or shard.state.durable.knows(group_id):
        return
    for member in group.members.values():
        answer_join_error(shard, group, member, append_error(error), member.member_id)
    forget_group(shard, group_id)
    shard.tell(GroupRemoved(group_id, cause="its first record could not be written"))


def join_error(shard: GroupShard, request: Request) -> tuple[ErrorCode, str]:
    """Return the error of a JoinGroup that is invalid for any group, and the reason in words."""
    body, settings = request.body, shard.state.settings
    if not body.group_id:
        return ErrorCode.INVALID_GROUP_ID, "the group id is empty"
    low, high = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not low <= body.session_timeout_ms <= high:
        text = f"a session timeout of {body.session_timeout_ms} ms is not from {low} to {high} ms"
        return ErrorCode.INVALID_SESSION_TIMEOUT, text
    size = sum(len(protocol.metadata or b"") for protocol in body.protocols)
    most, most_bytes = settings.kohort_member_max_protocols, settings.kohort_member_max_metadata_bytes
    if len(body.protocols) > most or size > most_bytes:
        text = f"{len(body.protocols)} protocols with {size} bytes of metadata are too many"
        return ErrorCode.INVALID_REQUEST, text
    return _NONE, ""


def _refuse_join(shard: GroupShard, request: Request, error: int, why: str) -> None:
    _note_refused(shard, request, error, why)
    shard.refuse(request, error)


def _note_refused(shard: GroupShard, request: Request, error: int, why: str) -> None:
    body = request.body
    if body.group_id:
        group = find_classic(shard, body.group_id)
        cause = cause_by_sender(request, why, body.member_id, body.group_instance_id)
        generation = -1 if group is None else group.generation
        shard.tell(cause.event(JoinRefused, body.group_id, generation, error_code=error))


def _join_group(shard: GroupShard, group: ClassicGroup, request: Request, now_ms: int) -> None:
    body = request.body
    if not _has_room(shard, group, body.member_id):
        _turn_away(shard, group, request, now_ms)
    elif _is_too_large(group, request, most := shard.state.settings.kohort_group_max_metadata_bytes):
        text = f"the metadata of its members would have more than {most} bytes"
        _refuse_join(shard, request, ErrorCode.INVALID_REQUEST, text)
    elif not group.supports(body.protocol_type, [protocol.name for protocol in body.protocols]):
        _refuse_join(shard, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, _inconsistency_of(group, request))
    elif not body.member_id:
        _join_without_id(shard, group, request, now_ms)
    elif body.member_id in group.pending_join:
        _join_with_new_id(shard, group, request, now_ms)
    else:
        error = group.check_member(body.member_id, body.group_instance_id)
        if error:
            refuse_sender(shard, group, request, error)
        else:
            _rejoin_member(shard, group, group.members[body.member_id], request, now_ms)


def _has_room(shard: GroupShard, group: ClassicGroup, member_id: str) -> bool:
    """Return whether ``group.max.size`` leaves room for a member (KIP-389). While members are collected, only
    those that have rejoined count: the last to arrive are refused.
    """
    limit = shard.state.settings.group_max_size
    member = group.members.get(member_id)
    if group.state is _PREPARING:
        return group.awaiting_join_count < limit or (member is not None and member.parked_join is not None)
    return group.state is _EMPTY or member is not None or len(group.members) < limit


def _is_too_large(group: ClassicGroup, request: Request, most_bytes: int) -> bool:
    body = request.body
    size = sum(len(protocol.metadata or b"") for protocol in body.protocols)
    if group.metadata_bytes + size <= most_bytes:
        return False
    # a static member comes back without its id
    member = group.members.get(body.member_id or group.static_members.get(body.group_instance_id, ""))
    if member is not None:
        size -= sum(len(metadata) for _, metadata in member.protocols)
    return size > 0 and group.metadata_bytes + size > most_bytes


def _turn_away(shard: GroupShard, group: ClassicGroup, request: Request, now_ms: int) -> None:
    member_id = request.body.member_id
    shard.reply(request, join_failed(request.version, ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
    full = f"the group is full: group.max.size is {shard.state.settings.group_max_size}"
    _note_refused(shard, request, ErrorCode.GROUP_MAX_SIZE_REACHED, full)
    member = group.members.get(member_id)
    if member is not None:
        text = f"{name_of(member)} came last and {full}"
        remove_member(shard, group, member, cause_about(member, CauseKind.TOO_LARGE, text))
    remove_pending(shard, group, member_id, full)
    maybe_complete_join(shard, group, now_ms)


def _make_member_id(prefix: str, shard: GroupShard) -> str:
    """Make a member id; the prefix is cut so that the id fits a string on the wire."""
    return f"{prefix[:MAX_ID_PREFIX]}-{shard.state.new_id()}"


def _join_without_id(shard: GroupShard, group: ClassicGroup, request: Request, now_ms: int) -> None:
    instance_id = request.body.group_instance_id
    if instance_id is None:
        member_id = _make_member_id(request.context.client_id, shard)
        if len(group.pending_join) >= (most := shard.state.settings.kohort_group_max_pending_ids):
            text = f"{most} member ids are given out and not used"
            _refuse_join(shard, request, ErrorCode.GROUP_MAX_SIZE_REACHED, text)
        elif request.version >= _MEMBER_ID_REQUIRED_VERSION:
            add_pending(shard, group, member_id, request.body.session_timeout_ms, now_ms)
            error = ErrorCode.MEMBER_ID_REQUIRED
            shard.reply(request, join_failed(request.version, error, member_id))
        else:
            _add_member(shard, group, member_id, request, now_ms)
        return
    member_id = _make_member_id(instance_id, shard)
    if instance_id in group.static_members:
        replace_static_member(shard, group, member_id, request, now_ms)
    else:
        _add_member(shard, group, member_id, request, now_ms)


def _join_with_new_id(shard: GroupShard, group: ClassicGroup, request: Request, now_ms: int) -> None:
    if request.body.group_instance_id is not None:
        # only a client that mixes up two of its members sends this
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        _note_refused(shard, request, error, "the id of a dynamic member in a static member's request")
        shard.reply(request, join_failed(request.version, error, ""))
    else:
        _add_member(shard, group, request.body.member_id, request, now_ms)


def _add_member(
    shard: GroupShard, group: ClassicGroup, member_id: str, request: Request, now_ms: int
) -> None:
    member = add_member(shard, group, member_id, request, now_ms)
    rebalance_or_complete(shard, group, _cause_of_join(member, CauseKind.JOIN, "joined", request), now_ms)


def _rejoin_member(
    shard: GroupShard, group: ClassicGroup, member: ClassicMember, request: Request, now_ms: int
) -> None:
    if group.state is _PREPARING:
        update_member(group, member, request)
        park_join(shard, group, member, request)
        maybe_complete_join(shard, group, now_ms)
        return
    changed = member.protocols != requested_protocols(request)
    leads = member.member_id == group.leader_id
    if changed or (leads and group.state is GroupState.STABLE):
        # a leader rejoins unchanged to force a rebalance, for example because partitions were added
        update_member(group, member, request)
        park_join(shard, group, member, request)
        kind = CauseKind.CHANGED_SUBSCRIPTION if changed else CauseKind.ASKED_FOR
        what = "changed its metadata" if changed else "asked for a rebalance"
        prepare_rebalance(shard, group, _cause_of_join(member, kind, what, request, leads=leads), now_ms)
    else:
        # its first response was lost: send it again
        restart_session(shard, group, member, now_ms)
        shard.reply(request, join_response(group, member, request.version))


def _cause_of_join(
    member: ClassicMember, kind: CauseKind, what: str, request: Request, *, leads: bool = False
) -> Cause:
    who = f"leader {quote_text(member.member_id)}" if leads else name_of(member)
    reason = getattr(request.body, "reason", None)
    text = f"{who} {what}" + (f" ({quote_text(reason)})" if reason else "")
    return cause_by_sender(request, text, member.member_id, member.instance_id, kind)


def _inconsistency_of(group: ClassicGroup, request: Request) -> str:
    body = request.body
    if body.protocol_type != group.protocol_type and group.members:
        return (
            f"protocol type {quote_text(body.protocol_type)!r}: the group is of type {group.protocol_type!r}"
        )
    names = quote_text(", ".join(protocol.name for protocol in body.protocols))
    return f"none of its protocols ({names}) is one that all members support"
