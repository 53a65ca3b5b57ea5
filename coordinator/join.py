"""JoinGroup (key 11), v0-9: a member asks to be part of the next generation.

v1 rebalance timeout, v4 MEMBER_ID_REQUIRED (KIP-394), v5 instance id (KIP-345), v7 protocol type and nullable
protocol name in the answer (KIP-559), v8 reason (KIP-800), v9 skip_assignment (KIP-814).

The answer to an accepted request comes when the round ends (``rebalance.complete_join``); here the sender is
told what is wrong, given an id, or parked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..protocol import ErrorCode
from ..statemachine import GroupState
from .errors import append_error
from .insight import AppendRefused, Cause
from .members import (
    add_member,
    add_pending,
    answer_join_error,
    check_member,
    park_join,
    remove_member,
    remove_pending,
    requested_protocols,
    update_member,
)
from .model import Group, Member
from .rebalance import joined, maybe_complete_join, prepare, rebalance_or_complete
from .replies import JoinReply, join_failed
from .settings import MAX_GROUP_METADATA_BYTES, MAX_MEMBER_METADATA_BYTES, MAX_PENDING_IDS, MAX_PROTOCOLS
from .static import replace_static_member

if TYPE_CHECKING:
    from .effects import Request
    from .shard import Shard

#: From this version on a dynamic member joins in two steps.
_MEMBER_ID_REQUIRED_VERSION = 4

#: Most characters of a client or instance id that a member id begins with; of four bytes each they still fit.
MAX_ID_PREFIX = 8_000


def handle_join(shard: Shard, request: Request, now_ms: int) -> None:
    """Checks in Kafka's order, then the table of the sender's identity."""
    body = request.body
    error = _unacceptable(shard, request)
    if error:
        _refuse(shard, request, error)
        return
    group = shard.find(body.group_id)
    if group is not None:
        _join(shard, group, request, now_ms)
    elif body.member_id:
        _refuse(shard, request, ErrorCode.UNKNOWN_MEMBER_ID)
    else:
        group = shard.create(body.group_id, now_ms)
        record = group.to_record()
        _join(shard, group, request, now_ms)
        shard.append((record,), AfterCreate(body.group_id))


def refusal(request: Request, error: int) -> JoinReply:
    """A JoinGroup answer that is an error and nothing else."""
    return join_failed(request.version, error, request.body.member_id)


@dataclass(slots=True)
class AfterCreate:
    """Waits for the first record of a group; if it fails the group never was."""

    group_id: str

    def done(self, shard: Shard, now_ms: int) -> None:
        """Whoever joined is waiting for the round to end, not for this."""

    def failed(self, shard: Shard, error: ErrorCode, _now_ms: int) -> None:
        shard.note(AppendRefused(self.group_id, error))
        group = shard.groups.get(self.group_id)
        if group is None or group.generation > 0 or shard.durable.knows(self.group_id):
            return
        for member in list(group.members.values()):
            answer_join_error(shard, group, member, append_error(error), member.member_id)
        shard.drop(group)


def _unacceptable(shard: Shard, request: Request) -> ErrorCode:
    body, settings = request.body, shard.settings
    if not body.group_id:
        return ErrorCode.INVALID_GROUP_ID
    low, high = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not low <= body.session_timeout_ms <= high:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    size = sum(len(protocol.metadata or b"") for protocol in body.protocols)
    if len(body.protocols) > MAX_PROTOCOLS or size > MAX_MEMBER_METADATA_BYTES:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _refuse(shard: Shard, request: Request, error: int) -> None:
    shard.reply(request, refusal(request, error))


def _join(shard: Shard, group: Group, request: Request, now_ms: int) -> None:
    body = request.body
    if not _has_seat(shard, group, body.member_id):
        _turn_away(shard, group, request, now_ms)
    elif _outgrows(group, request):
        _refuse(shard, request, ErrorCode.INVALID_REQUEST)
    elif not group.supports(body.protocol_type, [protocol.name for protocol in body.protocols]):
        _refuse(shard, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    elif not body.member_id:
        _join_without_id(shard, group, request, now_ms)
    elif body.member_id in group.pending_join:
        _join_with_new_id(shard, group, request, now_ms)
    else:
        error = check_member(group, body.member_id, body.group_instance_id)
        if error:
            _refuse(shard, request, error)
        else:
            _rejoin(shard, group, group.members[body.member_id], request, now_ms)


def _has_seat(shard: Shard, group: Group, member_id: str) -> bool:
    """group.max.size (KIP-389). While collecting, those that rejoined count: the last to come lose."""
    limit = shard.settings.group_max_size
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        return group.awaiting_join_count < limit or (member is not None and member.parked_join is not None)
    return group.state is GroupState.EMPTY or member is not None or len(group.members) < limit


def _outgrows(group: Group, request: Request) -> bool:
    size = sum(len(protocol.metadata or b"") for protocol in request.body.protocols)
    member = group.members.get(request.body.member_id)
    if member is not None:
        size -= sum(len(metadata) for _, metadata in member.protocols)
    return size > 0 and group.metadata_bytes + size > MAX_GROUP_METADATA_BYTES


def _turn_away(shard: Shard, group: Group, request: Request, now_ms: int) -> None:
    member_id = request.body.member_id
    shard.reply(request, join_failed(request.version, ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
    member = group.members.get(member_id)
    if member is not None:
        remove_member(shard, group, member, "the group is full")
    remove_pending(shard, group, member_id)
    maybe_complete_join(shard, group, now_ms)


def _named(prefix: str, shard: Shard) -> str:
    """A new member id; what it begins with is cut, so that it fits a string of the wire."""
    return f"{prefix[:MAX_ID_PREFIX]}-{shard.new_id()}"


def _join_without_id(shard: Shard, group: Group, request: Request, now_ms: int) -> None:
    instance_id = request.body.group_instance_id
    if instance_id is None:
        member_id = _named(request.context.client_id, shard)
        if len(group.pending_join) >= MAX_PENDING_IDS:
            _refuse(shard, request, ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif request.version >= _MEMBER_ID_REQUIRED_VERSION:
            add_pending(shard, group, member_id, request.body.session_timeout_ms, now_ms)
            error = ErrorCode.MEMBER_ID_REQUIRED
            shard.reply(request, join_failed(request.version, error, member_id))
        else:
            _add(shard, group, member_id, request, now_ms)
        return
    member_id = _named(instance_id, shard)
    if instance_id in group.static_members:
        replace_static_member(shard, group, member_id, request, now_ms)
    else:
        _add(shard, group, member_id, request, now_ms)


def _join_with_new_id(shard: Shard, group: Group, request: Request, now_ms: int) -> None:
    if request.body.group_instance_id is not None:
        # only a client that mixes up two members sends this
        shard.reply(request, join_failed(request.version, ErrorCode.UNKNOWN_SERVER_ERROR, ""))
    else:
        _add(shard, group, request.body.member_id, request, now_ms)


def _add(shard: Shard, group: Group, member_id: str, request: Request, now_ms: int) -> None:
    member = add_member(shard, group, member_id, request, now_ms)
    rebalance_or_complete(shard, group, _cause(member, "joined", request), now_ms)


def _rejoin(shard: Shard, group: Group, member: Member, request: Request, now_ms: int) -> None:
    changed = member.protocols != requested_protocols(request)
    leads = member.member_id == group.leader_id
    if group.state is GroupState.PREPARING_REBALANCE:
        update_member(group, member, request)
        park_join(shard, group, member, request)
        maybe_complete_join(shard, group, now_ms)
    elif changed or (leads and group.state is GroupState.STABLE):
        # a leader rejoins with nothing changed to force a rebalance: partitions were added, say
        update_member(group, member, request)
        park_join(shard, group, member, request)
        what = "changed its metadata" if changed else "asked for a rebalance"
        prepare(shard, group, _cause(member, what, request, leads=leads), now_ms)
    else:
        # its first answer was lost: it gets it again
        shard.reply(request, joined(group, member))


def _cause(member: Member, what: str, request: Request, *, leads: bool = False) -> Cause:
    who = "leader" if leads else "member" if member.instance_id is None else "static member"
    reason = getattr(request.body, "reason", None)
    text = f"{who} {member.member_id} {what}" + (f" ({reason})" if reason else "")
    return Cause(text, member.member_id, request.context.client_id, request.context.client_host)
