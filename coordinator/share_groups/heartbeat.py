"""ShareGroupHeartbeat (key 76), v1: a member joins, lives, gets its partitions and leaves (KIP-932).

Nothing waits for a member that loses a partition: others may have it at once. So a member has its whole
target with its next heartbeat, and a new member with its first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...offsets_topic import Partitions, ShareAssignment, ShareMemberMetadata, ShareRecordType
from ...protocol import ApiKey, CauseKind, ErrorCode, KafkaError
from ...protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from ...share_partitions import MOST_ID_CHARACTERS
from ..engine.effects import Request
from ..engine.timers import TimerKey
from ..groups.events import Cause, JoinRefused, MemberFenced, MemberJoined, quote_text
from ..groups.groups import GroupShard
from .changes import ShareChanges, remove_silent, restart_session
from .configs import config_of
from .group import LEAVING, ShareGroup, ShareMember, find_share_group, live_share_group, text_bytes
from .kept import MOST_TOPICS_BYTES, request_missing, subscribed_bytes, topic_bytes

_JOINING: Final = 0
#: Most bytes of a subscription: with the lengths of 100,000 names it still fits a record of the log.
_MOST_SUBSCRIPTION_BYTES: Final = 700_000
_FENCED: Final = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
)
_NO_METADATA: Final = ShareMemberMetadata(None, "", "", ())


def handle_heartbeat(shard: GroupShard, request: Request, now_ms: int) -> None:
    """Make the checks in Kafka's order, then answer with the member's epoch, and its assignment if that
    changed.
    """
    body: ShareGroupHeartbeatRequest = request.body
    try:
        check_request(shard, body)
        answer = (
            _leave_group(shard, body, now_ms)
            if body.member_epoch == LEAVING
            else _handle_heartbeat(shard, request, now_ms)
        )
    except KafkaError as error:
        _tell_refused(shard, request, error)
        shard.reply(request, _heartbeat_error(error.code, error.message))
    else:
        shard.reply_when_written(body.group_id, request, answer)


def refused_heartbeat(_request: Request, error: int) -> ShareGroupHeartbeatResponse:
    """Make a heartbeat response that is an error and nothing else."""
    return _heartbeat_error(error, None)


def on_session_timer(shard: GroupShard, key: TimerKey, now_ms: int) -> None:
    """Remove a member whose session has expired."""
    group = live_share_group(shard, key[1])
    assert group is not None, "timers of a group stop when it goes"
    remove_silent(shard, group, group.members[key[2]], now_ms)


def check_request(shard: GroupShard, body: ShareGroupHeartbeatRequest) -> None:
    """Make the checks of a request that do not depend on the group. Raises KafkaError."""
    most = min(shard.state.settings.kohort_member_max_metadata_bytes, _MOST_SUBSCRIPTION_BYTES)
    if not body.member_id or len(body.member_id) > MOST_ID_CHARACTERS:
        # as in Apache Kafka without a word
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    wrong = ""
    if not body.member_id.strip():
        wrong = "MemberId can't be empty."
    elif not body.group_id.strip():
        wrong = "GroupId can't be empty."
    elif body.rack_id is not None and not body.rack_id.strip():
        wrong = "RackId can't be empty."
    elif body.member_epoch == _JOINING and not body.subscribed_topic_names:
        wrong = "SubscribedTopicNames must be set in first request."
    elif body.member_epoch < LEAVING:
        wrong = "MemberEpoch is invalid."
    elif (size := text_bytes(body.subscribed_topic_names or ())) > most:
        wrong = f"A subscription of {size} bytes is too large: {most} are taken."
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, wrong)


def require_share_group(shard: GroupShard, group_id: str, noun: str = "Group") -> ShareGroup:
    """The share group with this id. Raises KafkaError."""
    group = find_share_group(shard, group_id)
    if group is None:
        text = f"{noun} {group_id} not found."
        if shard.state.find(group_id) is not None:
            text = f"Group {group_id} is not a share group."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
    return group


def _leave_group(
    shard: GroupShard, body: ShareGroupHeartbeatRequest, now_ms: int
) -> ShareGroupHeartbeatResponse:
    group = require_share_group(shard, body.group_id)
    member = _known_member(group, body.member_id)
    changes = ShareChanges(shard, group, now_ms)
    changes.remove(member, member.cause(CauseKind.LEAVE, f"{member.name} left"))
    changes.commit()
    return ShareGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEAVING)


def _handle_heartbeat(shard: GroupShard, request: Request, now_ms: int) -> ShareGroupHeartbeatResponse:
    body: ShareGroupHeartbeatRequest = request.body
    group = _group_for(shard, body)
    _check_size(shard, group, body.member_id)
    known = group.members.get(body.member_id)
    if body.member_epoch != _JOINING:
        known = _known_member(group, body.member_id)
        _check_epoch(known, body.member_epoch)
    _check_room(shard, group, body, known)
    # from here on nothing is refused
    changes = ShareChanges(shard, group, now_ms)
    cause = _update_subscription(changes, known, request)
    member = group.members[body.member_id]
    _refresh_epoch(changes, cause)
    changes.refresh_target()
    before = member.current.partitions
    _advance_member(changes, member, changed=cause is not None)
    restart_session(shard, group, member, now_ms)
    request_missing(changes)
    current = member.current
    is_told = body.member_epoch == _JOINING or body.subscribed_topic_names is not None
    answer = ShareGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=current.epoch,
        heartbeat_interval_ms=config_of(shard.state, group.group_id).heartbeat_interval_ms,
        assignment=_to_assignment(current.partitions) if is_told or current.partitions != before else None,
    )
    changes.commit()
    return answer


def _group_for(shard: GroupShard, body: ShareGroupHeartbeatRequest) -> ShareGroup:
    """Find the group of a request; a member that joins may be the first of a new one."""
    if body.member_epoch == _JOINING and shard.state.find(body.group_id) is None:
        return ShareGroup(body.group_id, shard.state.topics)
    return require_share_group(shard, body.group_id, "Share group")


def _check_size(shard: GroupShard, group: ShareGroup, member_id: str) -> None:
    most = shard.state.settings.group_share_max_size
    if len(group.members) >= most and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {most} members.",
        )


def _known_member(group: ShareGroup, member_id: str) -> ShareMember:
    member = group.members.get(member_id)
    if member is None:
        text = f"Member {member_id} is not a member of group {group.group_id}."
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, text)
    return member


def _check_epoch(member: ShareMember, epoch: int) -> None:
    current = member.current
    # the answer with the new epoch may have been lost
    if epoch in (current.epoch, current.previous_epoch):
        return
    how, more = ("greater", "")
    if epoch < current.epoch:
        how = "smaller"
        more = f", and it does not match the previous member epoch ({current.previous_epoch})"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a {how} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({current.epoch}){more}. The member must abandon all its partitions and rejoin.",
    )


def _check_room(
    shard: GroupShard, group: ShareGroup, body: ShareGroupHeartbeatRequest, known: ShareMember | None
) -> None:
    """Raise KafkaError if the group has no room for a subscription, in place of that of ``known``, or for its
    topics.
    """
    most = shard.state.settings.kohort_group_max_metadata_bytes
    before = 0 if known is None else text_bytes(known.metadata.topics)
    grown = text_bytes(body.subscribed_topic_names or ()) - before
    if grown > 0 and group.metadata_bytes + grown > most:
        text = f"The subscriptions of the group's members would have more than {most} bytes."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    _check_topics(group, body.subscribed_topic_names or (), known)


def _check_topics(group: ShareGroup, names: Sequence[str], known: ShareMember | None) -> None:
    """Raise KafkaError if a subscription, in place of that of ``known``, brings more than a record holds."""
    directory, found, readers = group.topics, group.subscribed_topics(), group.subscribed.names
    new = {name: directory.partition_count_of(name) or 0 for name in names if name not in readers}
    if not any(new.values()):
        return
    had = set() if known is None else set(known.metadata.topics).difference(names)
    gone = {name: found[name].partition_count for name in had if name in found and readers[name] == 1}
    size = subscribed_bytes(group) - sum(topic_bytes(*each) for each in gone.items())
    size += sum(topic_bytes(name, count) for name, count in new.items() if count)
    if size > MOST_TOPICS_BYTES:
        count = group.subscribed.partition_count + sum(new.values()) - sum(gone.values())
        text = (
            f"The topics of the group's members have {count} partitions and take {size} bytes: "
            f"{MOST_TOPICS_BYTES} are taken."
        )
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)


def _update_subscription(changes: ShareChanges, known: ShareMember | None, request: Request) -> Cause | None:
    """Update a member's metadata. Returns the cause of a new epoch, if there is one."""
    group, body, context = changes.group, request.body, request.context
    old = _NO_METADATA if known is None else known.metadata
    names = body.subscribed_topic_names
    metadata = ShareMemberMetadata(
        old.rack_id if body.rack_id is None else body.rack_id,
        context.client_id,
        context.client_host,
        old.topics if names is None else tuple(sorted(set(names))),
    )
    if known is None or metadata != old:
        changes.put(ShareRecordType.MEMBER, body.member_id, metadata)
    member = group.members[body.member_id]
    if known is None:
        cause = member.cause(CauseKind.JOIN, f"{member.name} joined")
        changes.shard.tell(cause.event(MemberJoined, group.group_id, group.epoch))
        return cause
    if metadata.topics != old.topics:
        return member.cause(CauseKind.CHANGED_SUBSCRIPTION, f"{member.name} changed its subscription")
    return None


def _refresh_epoch(changes: ShareChanges, cause: Cause | None) -> None:
    """Raise the epoch if there is a cause: given, or topics have changed, or partitions have got state."""
    group = changes.group
    if cause is None and group.topics_seen is not (version := group.topics.version()):
        if group.hash_topics() != group.metadata_hash:
            cause = Cause("topics that the group reads have changed", CauseKind.CHANGED_SUBSCRIPTION)
        group.topics_seen = version
    # a target that is still to be computed has them anyway
    if cause is None and group.kept_seen is not group.kept and group.epoch <= group.target_epoch:
        if group.has_unassigned():
            cause = Cause("share partitions have got their state")
        group.kept_seen = group.kept
    if cause is not None:
        changes.bump(cause)


def _advance_member(changes: ShareChanges, member: ShareMember, *, changed: bool) -> None:
    """Give a member its target. ``changed``: it subscribes to other topics than before."""
    group, before = changes.group, member.current
    epoch = group.target_epoch
    if before.epoch == epoch and not changed:
        return
    target = group.targets.get(member.member_id, {})
    if group.epoch > epoch:
        # the target is older than its subscription
        topics = group.subscribed_ids(member)
        target = {topic_id: numbers for topic_id, numbers in target.items() if topic_id in topics}
    previous = before.previous_epoch if before.epoch == epoch else before.epoch
    current = ShareAssignment(epoch, previous, target)
    if current != before:
        changes.put(ShareRecordType.CURRENT, member.member_id, current)


def _to_assignment(partitions: Partitions) -> Assignment:
    return Assignment([TopicPartitions(topic_id, numbers) for topic_id, numbers in partitions.items()])


def _heartbeat_error(error: int, message: str | None) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=int(error), error_message=message)


def _tell_refused(shard: GroupShard, request: Request, error: KafkaError) -> None:
    body, context = request.body, request.context
    if not body.group_id:
        return
    group = find_share_group(shard, body.group_id)
    epoch = -1 if group is None else group.epoch
    text = quote_text(error.message or "MemberId can't be empty.")
    cause = Cause(text, CauseKind.OTHER, body.member_id, None, context.client_id, context.client_host)
    if error.code in _FENCED:
        api = ApiKey(request.api_key).name
        shard.tell(cause.event(MemberFenced, body.group_id, epoch, error_code=error.code, api=api))
    else:
        shard.tell(cause.event(JoinRefused, body.group_id, epoch, error_code=error.code))
