"""Steps for the test kit on a group of any type: end a session, start a rebalance, list members.

Each is a step on a shard, with the clock's time; ``GroupCoordinator.steer`` runs it and carries out its
effects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..coordinator.classic_groups.group import ClassicGroup
from ..coordinator.classic_groups.group import ClassicMember as ClassicMember
from ..coordinator.classic_groups.members import cause_about, name_of, remove_member
from ..coordinator.classic_groups.rebalance import prepare_rebalance, rebalance_or_complete
from ..coordinator.consumer_groups.changes import Changes
from ..coordinator.consumer_groups.group import ConsumerGroup
from ..coordinator.consumer_groups.heartbeat import remove
from ..coordinator.groups.events import Cause
from ..coordinator.groups.groups import GroupShard
from ..coordinator.share_groups.changes import ShareChanges
from ..coordinator.share_groups.group import ShareGroup
from ..protocol import CauseKind, ErrorCode, KafkaError


class FoundMember(NamedTuple):
    """A member of a group: its ids and, in a classic group, the member itself."""

    member_id: str
    instance_id: str | None
    classic: ClassicMember | None = None


def members_of(shard: GroupShard, group_id: str) -> list[FoundMember]:
    """The members of a group, in the order in which they joined. Raises KafkaError (GROUP_ID_NOT_FOUND)."""
    group = _group(shard, group_id)
    if isinstance(group, ConsumerGroup):
        return [FoundMember(each.member_id, each.metadata.instance_id) for each in group.members.values()]
    if isinstance(group, ShareGroup):
        return [FoundMember(member_id, None) for member_id in group.members]
    return [FoundMember(each.member_id, each.instance_id, each) for each in group.members.values()]


def member_of(shard: GroupShard, group_id: str, name: str) -> FoundMember:
    """A member by its id or instance id. Raises KafkaError (GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID)."""
    for member in members_of(shard, group_id):
        if name in (member.member_id, member.instance_id):
            return member
    known = _names(members_of(shard, group_id))
    raise KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id!r} has no member {name!r}; its members: {known}"
    )


def end_session(shard: GroupShard, group_id: str, name: str, now_ms: int) -> None:
    """Remove the member as if its session had just expired."""
    group, seat = _group(shard, group_id), member_of(shard, group_id, name)
    if isinstance(group, ConsumerGroup):
        one = group.members[seat.member_id]
        cause = one.cause(CauseKind.SESSION_EXPIRED, f"session of {one.name} was ended")
        remove(shard, group, [one], cause, now_ms)
        return
    if isinstance(group, ShareGroup):
        sharing, changes = group.members[seat.member_id], ShareChanges(shard, group, now_ms)
        text = f"session of {sharing.name} was ended"
        changes.remove(sharing, sharing.cause(CauseKind.SESSION_EXPIRED, text))
        changes.commit()
        return
    member = group.members[seat.member_id]
    cause = cause_about(member, CauseKind.SESSION_EXPIRED, f"session of {name_of(member)} was ended")
    remove_member(shard, group, member, cause)
    rebalance_or_complete(shard, group, cause, now_ms)


def begin_rebalance(shard: GroupShard, group_id: str, reason: str, now_ms: int) -> bool:
    """Make all members rejoin, or move to a new epoch; return False if a rebalance is already under way.
    Raises KafkaError (GROUP_ID_NOT_FOUND).
    """
    group = _group(shard, group_id)
    if isinstance(group, ConsumerGroup | ShareGroup):
        if not group.members or group.epoch > group.target_epoch:
            return False
        changes: Changes | ShareChanges
        if isinstance(group, ShareGroup):
            changes = ShareChanges(shard, group, now_ms)
            changes.bump(Cause(reason))
        else:
            changes = Changes(shard, group, now_ms)
            changes.bump_epoch(Cause(reason))
        changes.commit()
        return True
    if not group.members or not group.can_rebalance:
        return False
    prepare_rebalance(shard, group, Cause(reason), now_ms)
    return True


def _names(members: Iterable[FoundMember]) -> str:
    return ", ".join(member.member_id for member in members) or "nobody"


def _group(shard: GroupShard, group_id: str) -> ClassicGroup | ConsumerGroup | ShareGroup:
    group = shard.state.find(group_id)
    if not isinstance(group, ClassicGroup | ConsumerGroup | ShareGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
    return group
