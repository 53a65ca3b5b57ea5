"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members in consumer groups.

No member waits for others: a JoinGroup is answered with the member's epoch as its generation, a SyncGroup
with its current assignment, and a Heartbeat says when it has to rejoin: because there is a newer target,
because it must revoke partitions, or because partitions that it waits for are free. The owned partitions in
its subscription show what it has revoked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ...offsets_topic import ClassicMetadata, MemberMetadata
from ...protocol import (
    CauseKind,
    ErrorCode,
    KafkaError,
    MalformedMessageError,
    Subscription,
    decode_subscription,
)
from ...protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ...protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ...protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from ...protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ...statemachine import AssignmentState, ConsumerGroupState
from ..classic_groups.group import ClassicGroup
from ..classic_groups.join import handle_join as join_classic_group
from ..classic_groups.join import join_error
from ..classic_groups.leave import BATCH_VERSION, Leaver, leavers_of
from ..classic_groups.members import report_fenced
from ..classic_groups.sync import PROTOCOL_VERSION
from ..engine.effects import Request
from ..groups.events import quote_text
from ..groups.groups import CONSUMER, GroupShard, forget_group
from ..shared_responses import join_failed
from .assigning import refresh_target
from .changes import Changes, restart_session, start_revocation, write_records
from .group import (
    REVOCATION,
    ConsumerGroup,
    ConsumerGroupMember,
    assignment_bytes,
    common_protocol,
    protocol_of,
    text_bytes,
)
from .heartbeat import (
    advance_member,
    check_room,
    check_size,
    chosen_id,
    joined_cause,
    known_member,
    known_static_member,
    refresh_epoch,
    remove,
    replace_member,
)
from .migration import downgrade_group, turns_back
from .reconciliation import Owned

#: From this version on a dynamic member joins in two steps.
_MEMBER_ID_REQUIRED_VERSION: Final = 4
#: Of a member that has not joined before.
_NEW: Final = MemberMetadata(None, None, "", "", (), "", -1)
_UNREVOKED = AssignmentState.UNREVOKED_PARTITIONS.value
_UNRELEASED = AssignmentState.UNRELEASED_PARTITIONS.value


def handle_join(shard: GroupShard, group: ConsumerGroup, request: Request, now_ms: int) -> None:
    """Let a member join, or catch up with the group. An empty group is replaced by a classic one."""
    body = request.body
    error, _ = join_error(shard, request)
    if error:
        shard.reply(request, join_failed(request.version, error, body.member_id))
    elif group.is_empty:
        _become_classic(shard, group, request, now_ms)
    else:
        try:
            _join_group(shard, group, request, now_ms)
        except KafkaError as refused:
            member_id = refused.message if refused.code is ErrorCode.MEMBER_ID_REQUIRED else None
            shard.reply(request, join_failed(request.version, refused.code, member_id or ""))


def handle_sync(shard: GroupShard, group: ConsumerGroup, request: Request, now_ms: int) -> None:
    """Answer with the member's current assignment, in the version of its subscription."""
    body = request.body
    try:
        if request.version >= PROTOCOL_VERSION and None in (body.protocol_type, body.protocol_name):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        member = _find_sender(group, body)
        name = protocol_of(member)
        if body.protocol_type not in (None, CONSUMER) or body.protocol_name not in (None, name):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if member.current.epoch < group.target_epoch and member.current.state != _UNREVOKED:
            _ask_to_rejoin(shard, group, member, now_ms)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    except KafkaError as error:
        _refuse_join(shard, group, request, error)
        shard.reply(request, SyncGroupResponse(error_code=error.code))
        return
    if member.current.state != _UNREVOKED:
        shard.timers.cancel((REVOCATION, group.group_id, member.member_id))
    restart_session(shard, group, member, now_ms)
    answer = SyncGroupResponse(
        protocol_type=CONSUMER, protocol_name=name, assignment=assignment_bytes(group, member, name)
    )
    shard.reply_when_written(group.group_id, request, answer)


def handle_heartbeat(shard: GroupShard, group: ConsumerGroup, request: Request, now_ms: int) -> None:
    """Keep the member's session alive; tell it when it has to rejoin."""
    error = ErrorCode.NONE
    try:
        member = _find_sender(group, request.body)
    except KafkaError as refused:
        error = refused.code
        _refuse_join(shard, group, request, refused)
    else:
        restart_session(shard, group, member, now_ms)
        _look_after_target(shard, group, now_ms)
        if _must_rejoin(group, member):
            error = ErrorCode.REBALANCE_IN_PROGRESS
            _ask_to_rejoin(shard, group, member, now_ms)
    shard.reply(request, HeartbeatResponse(error_code=error))


def handle_leave(shard: GroupShard, group: ConsumerGroup, request: Request, now_ms: int) -> None:
    """Remove members of either protocol; the epoch is raised once."""
    gone: list[ConsumerGroupMember] = []
    outcomes: list[MemberResponse] = []
    reason = ""
    for leaver in leavers_of(request):
        error = ErrorCode.NONE
        try:
            member = _find_leaver(group, leaver)
        except KafkaError as refused:
            error = refused.code
        else:
            if member not in gone:
                gone.append(member)
            reason = reason or (f" ({quote_text(leaver.reason)})" if leaver.reason else "")
        outcomes.append(MemberResponse(leaver.member_id, leaver.instance_id, error))
    answer = LeaveGroupResponse(members=outcomes)
    if request.version < BATCH_VERSION:
        answer = LeaveGroupResponse(error_code=outcomes[0].error_code)
    if not gone:
        shard.reply(request, answer)
        return
    cause = gone[0].cause(CauseKind.LEAVE, f"{gone[0].name} left{reason}")
    remove(shard, group, gone, cause, now_ms)
    shard.reply_when_written(group.group_id, request, answer)


# --- joining ------------------------------------------------------------------------------------------------


def _join_group(shard: GroupShard, group: ConsumerGroup, request: Request, now_ms: int) -> None:
    body: JoinGroupRequest = request.body
    check_size(shard, group, body.member_id)
    known = group.members.get(body.member_id)
    before = None if known is None else known.current
    protocols = _protocols_in(shard, group, body, known)
    instance_id = body.group_instance_id
    if not body.member_id and instance_id is None and request.version >= _MEMBER_ID_REQUIRED_VERSION:
        raise KafkaError(ErrorCode.MEMBER_ID_REQUIRED, chosen_id(shard))
    subscription = _subscription_of(protocols)
    if instance_id is not None:
        owner = group.members.get(group.static_members.get(instance_id, ""))
        if body.member_id and owner is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if owner is not None and body.member_id not in ("", owner.member_id):
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        known = owner
    size = text_bytes(set(subscription.topics)) + sum(len(data) for _, data in protocols)
    check_room(shard, group, size, known)
    # nothing is refused below this line
    changes = Changes(shard, group, now_ms)
    member_id = body.member_id or chosen_id(shard)
    takes_over = known is not None and not known.is_classic
    if known is not None and known.member_id != member_id:
        replace_member(changes, known, member_id, epoch=known.current.epoch)
        known = group.members[member_id]
    old = _NEW if known is None else known.metadata
    metadata = _join_metadata(old, request, subscription, protocols)
    if known is None or metadata != old:
        changes.set_member(member_id, metadata)
    member = group.members[member_id]
    changed = (metadata.topics, metadata.regex) != (old.topics, old.regex)
    cause = joined_cause(changes, member, is_new=known is None) if changed else None
    changes.drop_unused_regex(old.regex)
    refresh_epoch(changes, cause)
    refresh_target(changes)
    advance_member(changes, member, _owned_in(group, subscription), changed=changed)
    restart_session(shard, group, member, now_ms)
    if member.current != before or _is_awaited(shard, group, member):
        # until its SyncGroup. None follows a late duplicate, which must not remove a member that has synced
        start_revocation(shard, group, member, now_ms)
    answer = JoinGroupResponse(
        generation_id=member.current.epoch,
        protocol_type=CONSUMER,
        protocol_name=protocol_of(member),
        leader="",
        member_id=member_id,
    )
    changes.commit()
    if takes_over and turns_back(shard, group, []):
        # it was the last consumer: the others continue unchanged in a classic group; but no leader there
        # would assign the partitions that wait for a new owner
        settled = group.state is ConsumerGroupState.STABLE
        text = f"{member.name} took the place of the last consumer while partitions were moving"
        downgrade_group(shard, group, [], None if settled else member.cause(CauseKind.JOIN, text), now_ms)
    shard.reply_when_written(group.group_id, request, answer)


def _become_classic(shard: GroupShard, group: ConsumerGroup, request: Request, now_ms: int) -> None:
    """Replace a group without members by a classic one; its offsets stay."""
    if request.body.member_id:
        error = join_failed(request.version, ErrorCode.UNKNOWN_MEMBER_ID, request.body.member_id)
        shard.reply(request, error)
        return
    forget_group(shard, group.group_id)
    classic = shard.state.groups[group.group_id] = ClassicGroup(group.group_id, state_timestamp_ms=now_ms)
    write_records(shard, group.group_id, (*group.tombstones(), classic.to_record()))
    join_classic_group(shard, request, now_ms)


def _protocols_in(
    shard: GroupShard, group: ConsumerGroup, body: JoinGroupRequest, known: ConsumerGroupMember | None
) -> tuple[tuple[str, bytes], ...]:
    """The protocols of a classic member. Raises KafkaError if the group takes none like it."""
    protocols = tuple((protocol.name, bytes(protocol.metadata or b"")) for protocol in body.protocols)
    fits = (
        body.protocol_type == CONSUMER
        and protocols
        and common_protocol([name for name, _ in protocols], group, known)
    )
    if not fits or shard.state.settings.group_consumer_migration_policy == "disabled":
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return protocols


def _join_metadata(
    old: MemberMetadata,
    request: Request,
    subscription: Subscription,
    protocols: tuple[tuple[str, bytes], ...],
) -> MemberMetadata:
    """The metadata that a JoinGroup gives a member."""
    body: JoinGroupRequest = request.body
    instance_id = body.group_instance_id
    return MemberMetadata(
        old.instance_id if instance_id is None else instance_id,
        subscription.rack or old.rack_id,
        request.context.client_id,
        request.context.client_host,
        tuple(sorted(set(subscription.topics))),
        "",
        body.session_timeout_ms if request.version == 0 else body.rebalance_timeout_ms,
        old.assignor,
        ClassicMetadata(body.session_timeout_ms, protocols),
    )


def _subscription_of(protocols: Sequence[tuple[str, bytes]]) -> Subscription:
    try:
        return decode_subscription(protocols[0][1])
    except MalformedMessageError as error:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from error


def _owned_in(group: ConsumerGroup, subscription: Subscription) -> Owned:
    owned: dict[UUID, list[int]] = {}
    for topic, number in subscription.owned:
        topic_id = group.topics.id_of_topic(topic)
        if topic_id is not None:
            owned.setdefault(topic_id, []).append(number)
    return owned


# --- living -------------------------------------------------------------------------------------------------


def _find_sender(group: ConsumerGroup, body: HeartbeatRequest | SyncGroupRequest) -> ConsumerGroupMember:
    if body.group_instance_id is None:
        member = known_member(group, body.member_id)
    else:
        member = known_static_member(group, body.group_instance_id, body.member_id)
    if not member.is_classic:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if body.generation_id != member.current.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member


def _look_after_target(shard: GroupShard, group: ConsumerGroup, now_ms: int) -> None:
    """Keep the target up to date for the present topics and members. Heartbeats of consumers do that, but a
    group that may not be downgraded may have none: with Apache Kafka, the last consumer's partitions then
    have no reader until a member joins.
    """
    is_due = group.epoch > group.target_epoch or group.topics_seen is not group.topics.version()
    if is_due and all(member.is_classic for member in group.members.values()):
        changes = Changes(shard, group, now_ms)
        refresh_epoch(changes, None)
        refresh_target(changes)
        changes.commit()


def _must_rejoin(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    current = member.current
    if current.epoch < group.target_epoch or current.state == _UNREVOKED:
        return True
    return current.state == _UNRELEASED and not any(
        group.taken_numbers(member.member_id, topic_id, numbers)
        for topic_id, numbers in group.targets.get(member.member_id, {}).items()
    )


def _ask_to_rejoin(shard: GroupShard, group: ConsumerGroup, member: ConsumerGroupMember, now_ms: int) -> None:
    if not _is_awaited(shard, group, member):
        start_revocation(shard, group, member, now_ms)


def _is_awaited(shard: GroupShard, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Return whether a member has to send a JoinGroup or SyncGroup within its rebalance timeout."""
    return (REVOCATION, group.group_id, member.member_id) in shard.timers


def _find_leaver(group: ConsumerGroup, leaver: Leaver) -> ConsumerGroupMember:
    if leaver.instance_id is None:
        return known_member(group, leaver.member_id)
    # an administrator removes a static member by its instance id
    owner = group.static_members.get(leaver.instance_id, "")
    return known_static_member(group, leaver.instance_id, leaver.member_id or owner)


def _refuse_join(shard: GroupShard, group: ConsumerGroup, request: Request, error: KafkaError) -> None:
    if error.code is ErrorCode.REBALANCE_IN_PROGRESS:
        return
    report_fenced(shard, group, request, error.code, request.body.member_id, request.body.group_instance_id)
