"""ConsumerGroupHeartbeat (key 68), v0-1: a member joins, lives, moves to its target and leaves (KIP-848).

v1: the member chooses its id, and may subscribe to a regular expression. Also handles members that are silent
for a session timeout, or that do not revoke partitions in time.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ...offsets_topic import (
    CurrentAssignment,
    GroupDeleted,
    GroupRecordType,
    MemberMetadata,
    TargetAssignment,
)
from ...protocol import ApiKey, CauseKind, ErrorCode, KafkaError
from ...protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicOffsets,
    TopicPartitions,
)
from ...statemachine import AssignmentState
from ..classic_groups.group import ClassicGroup
from ..classic_groups.members import cause_by_sender
from ..engine.effects import Request
from ..engine.timers import TimerKey
from ..groups.events import (
    Cause,
    JoinRefused,
    MemberFenced,
    MemberGone,
    MemberJoined,
    MemberReplaced,
    quote_text,
)
from ..groups.groups import Group, GroupShard
from .assigning import refresh_target
from .changes import Changes, restart_session, session_timeout_ms
from .configs import config_of
from .group import (
    AWAY,
    LEAVING,
    SESSION,
    ConsumerGroup,
    ConsumerGroupMember,
    find_consumer_group,
    live_consumer_group,
    subscription_bytes,
    text_bytes,
)
from .holding import EVERYONE, answer_soon, hold_heartbeat, least_rest_ms, let_go, starts_of, with_given_up
from .migration import downgrade_group, leave_classic, turns_back, upgrade_group
from .reconciliation import NEW_MEMBER, Owned, is_settled, reconcile_member
from .regex import check_regex, maybe_resolve
from .shard_state import state_of

#: From this version on the member chooses its id.
_OWN_ID_VERSION: Final = 1
_JOINING: Final = 0
#: The fields between the instance id and the owned partitions in a heartbeat without news of its member.
_NOTHING_SAID: Final = [None, -1, None, None, None]
# makes a named tuple in half the time of calling its class
_new: Final = tuple.__new__
#: Most bytes of a subscription: with the lengths of 100,000 names it still fits a record of the log.
MOST_SUBSCRIPTION_BYTES: Final = 700_000
_UNREVOKED: Final = AssignmentState.UNREVOKED_PARTITIONS.value
_UNRELEASED: Final = AssignmentState.UNRELEASED_PARTITIONS.value
_FENCED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


def handle_heartbeat(shard: GroupShard, request: Request, now_ms: int) -> None:
    """Make the checks in Kafka's order, then answer with the member's epoch, and its assignment if that
    changed.
    """
    if request.body.gives_up:
        known = with_given_up(shard, request, now_ms)
        if known is None:
            return
        request = known
    group_id, member_id = request.body.group_id, request.body.member_id
    if group_id in state_of(shard).held and (held := let_go(shard, group_id, member_id)) is not None:
        shard.reply(*held)
        session = (SESSION, group_id, member_id)
        _leave_rest(shard, session, shard.timers.deadline(session), now_ms)
    if request.body.member_epoch > 0 and _goes_on(shard, request, now_ms):
        return
    try:
        check_request(shard, request)
        if request.body.member_epoch in (LEAVING, AWAY):
            answer = _leave_group(shard, request, now_ms)
        else:
            answer = _handle_heartbeat(shard, request, now_ms)
    except KafkaError as error:
        _tell_refused(shard, request, error)
        shard.reply(request, heartbeat_error(error.code, error.message))
    else:
        group = live_consumer_group(shard, group_id)
        if not (
            request.body.hold_ms > 0
            and group is not None
            and answer.member_epoch == request.body.member_epoch > 0
            and answer.assignment is None
            and answer.error_message is None
            and _says_nothing(request.body)
            and hold_heartbeat(shard, group, request, answer, now_ms)
        ):
            shard.reply_when_written(group_id, request, answer)


def _goes_on(shard: GroupShard, request: Request, now_ms: int) -> bool:
    """Answer a heartbeat without news, in a group that has its target, as nearly all heartbeats are: the
    member is settled, or takes its next step. Returns False for any other heartbeat.
    """
    group_id, member_id, epoch, instance_id, *said, owned, hold_ms, wants, gives_up = request.body
    group = shard.state.groups.get(group_id)
    if said != _NOTHING_SAID or type(group) is not ConsumerGroup:
        return False
    member = group.members.get(member_id)
    if member is None:
        return False
    before, metadata, context = member.current, member.metadata, request.context
    if (
        before.epoch != epoch
        or group.target_epoch != group.epoch
        or group.topics_seen is not group.topics.version()
        or group.patterns
        or group.failure is not None
        or (instance_id is not None and instance_id != metadata.instance_id)
        or metadata.classic is not None
        or metadata.client_id != context.client_id
        or metadata.client_host != context.client_host
    ):
        return False
    config = config_of(shard.state, group_id)
    shard.timers.start((SESSION, group_id, member_id), now_ms + config.session_timeout_ms)
    assignment: Assignment | None = None
    offsets: Sequence[TopicOffsets] = ()
    if member_id in group.unsettled:
        changes = Changes(shard, group, now_ms)
        advance_member(changes, member, _owned_in(owned), changed=False, gives_up=bool(gives_up))
        if not _has_alike(before, member.current):
            assignment = _to_assignment(member.current)
            offsets = starts_of(shard, group, before.assigned, member.current.assigned) if wants else ()
        changes.commit()
    answer = _new(
        ConsumerGroupHeartbeatResponse,
        (0, 0, None, member_id, member.current.epoch, config.heartbeat_interval_ms, assignment, offsets),
    )
    if not (
        hold_ms > 0
        and owned is assignment is None
        and epoch == member.current.epoch
        and hold_heartbeat(shard, group, request, answer, now_ms)
    ):
        shard.reply_when_written(group_id, request, answer)
    return True


def refused_heartbeat(_request: Request, error: int) -> ConsumerGroupHeartbeatResponse:
    """Make a heartbeat response that is an error and nothing else."""
    return heartbeat_error(error, None)


def heartbeat_error(error: int, message: str | None) -> ConsumerGroupHeartbeatResponse:
    """Make a heartbeat response that is an error with a text."""
    return ConsumerGroupHeartbeatResponse(error_code=int(error), error_message=message)


def on_session_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Remove a member whose session has expired."""
    group, member = _of_timer(shard, key)
    seconds = session_timeout_ms(shard, group, member) / 1000
    text = f"session of {member.name} expired after {seconds:.1f} s"
    remove(shard, group, [member], member.cause(CauseKind.SESSION_EXPIRED, text), now_ms)


def on_revocation_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Remove a member that has not revoked its partitions in time."""
    group, member = _of_timer(shard, key)
    seconds = member.metadata.rebalance_timeout_ms / 1000
    text = f"{member.name} did not give up its partitions within {seconds:.1f} s"
    remove(shard, group, [member], member.cause(CauseKind.LATE_REVOCATION, text), now_ms)


def on_hold_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Answer a held heartbeat as if it had come now, without restarting the session."""
    _, group_id, member_id = key
    if member_id == EVERYONE:
        answer_soon(shard, group_id, EVERYONE, now_ms)
        return
    held = let_go(shard, group_id, member_id)
    assert held is not None, "the timer of a heartbeat stops when it is answered"
    request, session = held[0], (SESSION, group_id, member_id)
    until_ms = shard.timers.deadline(session)
    # a partition without a reader waits for it, and for none of the responses that the same write allows
    shard.handle(replace(request, body=request.body._replace(hold_ms=0), awaited=True), now_ms)
    _leave_rest(shard, session, until_ms, now_ms)


def _leave_rest(shard: GroupShard, session: TimerKey, until_ms: int | None, now_ms: int) -> None:
    """Let the session of a member whose held heartbeat is answered end at ``until_ms`` or later: if the
    process stood still, the heartbeat was held too long, and the member could not send another.
    """
    if until_ms is not None and session in shard.timers:
        rest_ms = least_rest_ms(config_of(shard.state, session[1]).session_timeout_ms)
        shard.timers.start(session, max(until_ms, now_ms + rest_ms))


def remove(
    shard: GroupShard, group: ConsumerGroup, members: list[ConsumerGroupMember], cause: Cause, now_ms: int
) -> None:
    """Remove members; if only classic ones are left, the group may be downgraded."""
    if turns_back(shard, group, members):
        for member in members:
            gone = member.cause(cause.kind, cause.text)
            shard.tell(gone.event(MemberGone, group.group_id, group.epoch))
        downgrade_group(shard, group, members, cause, now_ms)
        return
    changes = Changes(shard, group, now_ms)
    changes.remove(members, cause)
    changes.commit()


def check_request(shard: GroupShard, request: Request) -> None:
    """Make the checks of a request that do not depend on the group. Raises KafkaError."""
    body, settings = request.body, shard.state.settings
    epoch, most = body.member_epoch, min(settings.kohort_member_max_metadata_bytes, MOST_SUBSCRIPTION_BYTES)
    wrong = ""
    needs_id = request.version >= _OWN_ID_VERSION or epoch > _JOINING or epoch == LEAVING
    if needs_id and not body.member_id.strip():
        wrong = "MemberId can't be empty."
    elif not body.group_id.strip():
        wrong = "GroupId can't be empty."
    elif body.instance_id is not None and not body.instance_id.strip():
        wrong = "InstanceId can't be empty."
    elif body.rack_id is not None and not body.rack_id.strip():
        wrong = "RackId can't be empty."
    elif epoch == _JOINING and body.rebalance_timeout_ms == -1:
        wrong = "RebalanceTimeoutMs must be provided in first request."
    elif epoch == _JOINING and (body.topic_partitions is None or body.topic_partitions):
        wrong = "TopicPartitions must be empty when (re-)joining."
    elif epoch == _JOINING and body.subscribed_topic_names is None and body.subscribed_topic_regex is None:
        wrong = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    elif epoch == AWAY and body.instance_id is None:
        wrong = "InstanceId can't be null."
    elif epoch < AWAY:
        wrong = "MemberEpoch is invalid."
    elif (size := _subscription_bytes(body)) > most:
        wrong = f"A subscription of {size} bytes is too large: {most} are taken."
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, wrong)
    known = state_of(shard).assignors
    if body.server_assignor is not None and body.server_assignor not in known:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {quote_text(body.server_assignor)} is not supported. "
            f"Supported assignors: {', '.join(known)}.",
        )


# --- leaving ------------------------------------------------------------------------------------------------


def _leave_group(shard: GroupShard, request: Request, now_ms: int) -> ConsumerGroupHeartbeatResponse:
    body = request.body
    group = _require_group(shard, body.group_id, "Group")
    if body.instance_id is None:
        member = known_member(group, body.member_id)
    else:
        member = known_static_member(group, body.instance_id, body.member_id)
    answer = ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=body.member_epoch)
    if body.member_epoch == AWAY:
        changes = Changes(shard, group, now_ms)
        away = {topic_id: dict.fromkeys(numbers, 0) for topic_id, numbers in member.current.assigned.items()}
        changes.set_current(member, member.current._replace(epoch=AWAY, assigned=away, revoking={}))
        changes.end_revocation(member)
        changes.commit()
        return answer
    cause = member.cause(CauseKind.LEAVE, f"{member.name} left")
    remove(shard, group, [member], cause, now_ms)
    return answer


# --- joining and living -------------------------------------------------------------------------------------


def _handle_heartbeat(shard: GroupShard, request: Request, now_ms: int) -> ConsumerGroupHeartbeatResponse:
    body = request.body
    owned = _owned_in(body.topic_partitions)
    changes, old = _group_for(shard, body, now_ms)
    group = changes.group
    check_size(shard, group, body.member_id)
    known = _find_sender(group, body, owned)
    if body.subscribed_topic_regex:
        check_regex(group, known, body.subscribed_topic_regex)
    if body.subscribed_topic_names or body.subscribed_topic_regex:
        check_room(shard, group, _subscription_bytes(body), known)
    # from here on nothing is refused
    if isinstance(old, ClassicGroup):
        leave_classic(old, changes)
    member_id = body.member_id or chosen_id(shard)
    cause, changed = _update_subscription(changes, known, member_id, request)
    member = group.members[member_id]
    refresh_epoch(changes, cause)
    refresh_target(changes)
    before = member.current
    advance_member(changes, member, owned, changed=changed, gives_up=bool(body.gives_up))
    restart_session(shard, group, member, now_ms)
    maybe_resolve(shard, group, request.context, now_ms)
    interval_ms = config_of(shard.state, group.group_id).heartbeat_interval_ms
    current = member.current
    anew = body.member_epoch == _JOINING or _is_full(body)
    tells = anew or not _has_alike(before, current)
    had = {} if anew else before.assigned
    answer = ConsumerGroupHeartbeatResponse(
        # no error: every client would stop, and its current assignment stays valid
        error_message=None if group.failure is None else group.failure.text,
        member_id=member_id,
        member_epoch=current.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=_to_assignment(current) if tells else None,
        offsets=starts_of(shard, group, had, current.assigned) if tells and body.wants_offsets else (),
    )
    changes.commit()
    return answer


def refresh_epoch(changes: Changes, cause: Cause | None) -> None:
    """Raise the epoch if there is a cause, or if topics that the group subscribes to have changed."""
    group = changes.group
    is_new = not group.epoch
    if cause is None and group.topics_seen is not (version := group.topics.version()):
        if group.subscribed_topics()[1] != group.metadata_hash:
            cause = Cause("topics that the group reads have changed", CauseKind.CHANGED_SUBSCRIPTION)
        group.topics_seen = version
    if cause is not None:
        changes.bump_epoch(cause)
    elif is_new:
        changes.set_epoch(1, group.metadata_hash)


def advance_member(
    changes: Changes, member: ConsumerGroupMember, owned: Owned, *, changed: bool, gives_up: bool = False
) -> None:
    """Make one step of a member towards its target, and start its revocation timer if it has to revoke
    partitions. ``changed``: it subscribes to other topics than before. ``gives_up``: its commit may come once
    more, and can only be refused if the epoch is another; without a new one nothing is given up.
    """
    group = changes.group
    if not changed and is_settled(member.current, group.target_epoch):
        return
    target = group.targets.get(member.member_id, {})
    taken = partial(group.taken_numbers, member.member_id)
    before = member.current
    topics = group.subscribed_by(member).ids
    current = reconcile_member(before, group.target_epoch, target, owned, taken, topics, changed)
    if gives_up and current.epoch == before.epoch:
        current = reconcile_member(before, group.target_epoch, target, None, taken, topics, changed)
    if current == before:
        return
    changes.set_current(member, current)
    if current.state == _UNREVOKED:
        changes.start_revocation(member)
    else:
        changes.end_revocation(member)


def _group_for(
    shard: GroupShard, body: ConsumerGroupHeartbeatRequest, now_ms: int
) -> tuple[Changes, Group | None]:
    """Find or create the group of a request; also return the group of another type that it replaces."""
    found = shard.state.find(body.group_id)
    if body.member_epoch != _JOINING or not (found is None or isinstance(found, ClassicGroup)):
        return Changes(shard, _require_group(shard, body.group_id, "Consumer group"), now_ms), None
    if found is not None and not found.is_empty:
        return upgrade_group(shard, found, now_ms), found
    changes = Changes(shard, ConsumerGroup(body.group_id, shard.state.topics), now_ms)
    if found is not None:
        changes.records.append(GroupDeleted(body.group_id))
    return changes, found


def _require_group(shard: GroupShard, group_id: str, noun: str) -> ConsumerGroup:
    group = find_consumer_group(shard, group_id)
    if group is None:
        text = f"{noun} {group_id} not found."
        if shard.state.find(group_id) is not None:
            text = f"Group {group_id} is not a consumer group."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
    return group


def check_size(shard: GroupShard, group: ConsumerGroup, member_id: str) -> None:
    """Raise KafkaError if there is no room for a new member."""
    most = shard.state.settings.group_consumer_max_size
    if len(group.members) >= most and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {most} members.",
        )


def check_room(shard: GroupShard, group: ConsumerGroup, size: int, known: ConsumerGroupMember | None) -> None:
    """Raise KafkaError if a group has no room for a subscription of ``size`` bytes, in place of that of
    ``known``.
    """
    most = shard.state.settings.kohort_group_max_metadata_bytes
    grown = size - (0 if known is None else subscription_bytes(known.metadata))
    if grown > 0 and group.metadata_bytes + grown > most:
        text = f"The subscriptions of the group's members would have more than {most} bytes."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)


def _find_sender(
    group: ConsumerGroup, body: ConsumerGroupHeartbeatRequest, owned: Owned
) -> ConsumerGroupMember | None:
    """Find the member that sent a request, or that its sender replaces; None for a new member."""
    joins = body.member_epoch == _JOINING
    if body.instance_id is None:
        if joins and body.member_id not in group.members:
            return None
        member = known_member(group, body.member_id)
    elif joins:
        owner = group.members.get(group.static_members.get(body.instance_id, ""))
        if owner is None:
            return group.members.get(body.member_id)
        if owner.current.epoch != AWAY and not owner.is_classic:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {body.member_id} with instance id {body.instance_id} cannot join the group "
                f"because the instance id is owned by {owner.member_id} member.",
            )
        return owner
    else:
        member = known_static_member(group, body.instance_id, body.member_id)
    _check_epoch(member, body.member_epoch, owned)
    return member


def known_member(group: ConsumerGroup, member_id: str) -> ConsumerGroupMember:
    """The member with this id. Raises KafkaError."""
    member = group.members.get(member_id)
    if member is None:
        text = f"Member {member_id} is not a member of group {group.group_id}."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, text)
    return member


def known_static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerGroupMember:
    """The member with this id and instance id. Raises KafkaError."""
    owner = group.members.get(group.static_members.get(instance_id, ""))
    if owner is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if owner.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{owner.member_id}.",
        )
    return owner


def _check_epoch(member: ConsumerGroupMember, epoch: int, owned: Owned) -> None:
    current = member.current
    if epoch in (current.epoch, _JOINING):
        return
    if epoch < current.epoch and epoch == current.previous_epoch and _is_part(owned, current):
        return  # the response with the new epoch was lost
    how = "greater" if epoch > current.epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {how} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
    )


def _is_part(owned: Owned, current: CurrentAssignment) -> bool:
    return owned is not None and all(
        number in current.assigned.get(topic_id, ())
        for topic_id, numbers in owned.items()
        for number in numbers
    )


def _update_subscription(
    changes: Changes, known: ConsumerGroupMember | None, member_id: str, request: Request
) -> tuple[Cause | None, bool]:
    """Update a member's metadata. Returns the cause of a new epoch, or None, and whether the member
    subscribes to other topics; a regular expression that is not resolved yet is no cause.
    """
    group, body, context = changes.group, request.body, request.context
    if known is not None and (
        known.member_id != member_id or (body.member_epoch == _JOINING and known.current.epoch == AWAY)
    ):
        replace_member(changes, known, member_id)
        known = group.members[member_id]
    old = MemberMetadata(None, None, "", "", (), "", -1) if known is None else known.metadata
    names, regex = body.subscribed_topic_names, body.subscribed_topic_regex
    metadata = MemberMetadata(
        old.instance_id if body.instance_id is None else body.instance_id,
        old.rack_id if body.rack_id is None else body.rack_id,
        context.client_id,
        context.client_host,
        old.topics if names is None else tuple(sorted(set(names))),
        old.regex if regex is None else regex,
        old.rebalance_timeout_ms if body.rebalance_timeout_ms == -1 else body.rebalance_timeout_ms,
        old.assignor if body.server_assignor is None else body.server_assignor,
    )
    if known is None or metadata != old:
        changes.set_member(member_id, metadata)
    changed = metadata.topics != old.topics or metadata.regex != old.regex
    if known is not None and not changed:
        return None, False
    cause = joined_cause(changes, group.members[member_id], is_new=known is None)
    if metadata.regex != old.regex:
        changes.drop_unused_regex(old.regex)
    unresolved = metadata.regex and metadata.regex not in group.regexes
    if metadata.topics == old.topics and (metadata.regex == old.regex or unresolved):
        return None, changed
    return cause, changed


def joined_cause(changes: Changes, member: ConsumerGroupMember, *, is_new: bool) -> Cause:
    """Make the cause that a member joined, which is also reported as an event, or that it changed its
    subscription.
    """
    if not is_new:
        text = f"{member.name} changed its subscription"
        return member.cause(CauseKind.CHANGED_SUBSCRIPTION, text)
    cause = member.cause(CauseKind.JOIN, f"{member.name} joined")
    changes.shard.tell(cause.event(MemberJoined, changes.group.group_id, changes.group.epoch))
    return cause


def replace_member(changes: Changes, old: ConsumerGroupMember, member_id: str, epoch: int = 0) -> None:
    """Replace a static member by one with this id, which gets its current assignment and target."""
    group = changes.group
    if group.computing is not None:
        group.computing.note_rename(old.member_id, member_id)
    target, current, metadata = group.targets.get(old.member_id, {}), old.current, old.metadata
    changes.drop_member(old)
    changes.set_member(member_id, metadata)
    changes.put_record(GroupRecordType.TARGET, member_id, TargetAssignment(target))
    member = group.members[member_id]
    # it waits for what its predecessor waited for, even if that was its whole target
    state = _UNRELEASED if current.state == _UNRELEASED else NEW_MEMBER.state
    changes.set_current(member, CurrentAssignment(epoch, epoch, state, current.assigned, {}))
    cause = member.cause(CauseKind.JOIN, f"rejoin of {member.name}")
    changes.shard.tell(cause.event(MemberReplaced, group.group_id, group.epoch, old_member=old.member_id))


def _owned_in(told: Sequence[TopicPartitions] | None) -> Owned:
    if told is None:
        return None
    owned: dict[Any, list[int]] = {}
    for topic_id, partitions in told:
        owned.setdefault(topic_id, []).extend(partitions)
    return owned


def _subscription_bytes(body: ConsumerGroupHeartbeatRequest) -> int:
    """Return the size of a subscription in bytes."""
    return text_bytes((*(body.subscribed_topic_names or ()), body.subscribed_topic_regex or ""))


def _says_nothing(body: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat has no news of its member."""
    _, _, _, _, *said, owned, _, _, _ = body
    return owned is None and said == _NOTHING_SAID


def _is_full(body: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether this is a full request, which members send when the coordinator may not know their
    state.
    """
    return (
        body.rebalance_timeout_ms != -1
        and (body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None)
        and body.topic_partitions is not None
    )


def _has_alike(before: CurrentAssignment, after: CurrentAssignment) -> bool:
    """Return whether two assignments have the same partitions, whatever their epochs."""
    if before.assigned == after.assigned:
        return True
    return before.assigned.keys() == after.assigned.keys() and all(
        numbers.keys() == after.assigned[topic_id].keys() for topic_id, numbers in before.assigned.items()
    )


def _to_assignment(current: CurrentAssignment) -> Assignment:
    return Assignment(
        [TopicPartitions(topic_id, tuple(numbers)) for topic_id, numbers in current.assigned.items()]
    )


def chosen_id(shard: GroupShard) -> str:
    """Make a member id, as long as Kafka's."""
    digest = hashlib.blake2b(shard.state.new_id().encode(), digest_size=16).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _of_timer(shard: GroupShard, key: TimerKey) -> tuple[ConsumerGroup, ConsumerGroupMember]:
    group = live_consumer_group(shard, key[1])
    assert group is not None, "timers of a group stop when it goes"
    return group, group.members[key[2]]


def _tell_refused(shard: GroupShard, request: Request, error: KafkaError) -> None:
    body = request.body
    if not body.group_id:
        return
    group = find_consumer_group(shard, body.group_id)
    epoch = -1 if group is None else group.epoch
    cause = cause_by_sender(request, quote_text(error.message or ""), body.member_id, body.instance_id)
    if error.code in _FENCED:
        api = ApiKey(request.api_key).name
        shard.tell(cause.event(MemberFenced, body.group_id, epoch, error_code=error.code, api=api))
    else:
        shard.tell(cause.event(JoinRefused, body.group_id, epoch, error_code=error.code))
