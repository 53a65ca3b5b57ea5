"""Steps that the test kit runs on a group from outside: end a session, start a rebalance, list its members.

Each is a step on a shard, with the clock's time; ``GroupCoordinator.steer`` runs it and carries out its
effects.
"""

from __future__ import annotations

from ...protocol import ErrorCode, KafkaError
from ..events import Cause, CauseKind
from ..groups import GroupShard
from .group import ClassicGroup, Member, find
from .members import about, name_of, remove_member
from .rebalance import prepare, rebalance_or_complete


def members_of(shard: GroupShard, group_id: str) -> list[Member]:
    """The members of a group, in the order in which they joined. Raises KafkaError (GROUP_ID_NOT_FOUND)."""
    return list(_group(shard, group_id).members.values())


def member_of(shard: GroupShard, group_id: str, name: str) -> Member:
    """A member by its id or instance id. Raises KafkaError (GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID)."""
    for member in members_of(shard, group_id):
        if name in (member.member_id, member.instance_id):
            return member
    known = ", ".join(member.member_id for member in members_of(shard, group_id)) or "nobody"
    raise KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id!r} has no member {name!r}; its members: {known}"
    )


def end_session(shard: GroupShard, group_id: str, name: str, now_ms: int) -> None:
    """Remove the member as if its session had just expired."""
    group, member = _group(shard, group_id), member_of(shard, group_id, name)
    cause = about(member, CauseKind.SESSION_EXPIRED, f"session of {name_of(member)} was ended")
    remove_member(shard, group, member, cause)
    rebalance_or_complete(shard, group, cause, now_ms)


def begin_rebalance(shard: GroupShard, group_id: str, reason: str, now_ms: int) -> bool:
    """Make every member join again; return False if they have to already. Raises KafkaError
    (GROUP_ID_NOT_FOUND).
    """
    group = _group(shard, group_id)
    if not group.members or not group.can_rebalance:
        return False
    prepare(shard, group, Cause(reason), now_ms)
    return True


def _group(shard: GroupShard, group_id: str) -> ClassicGroup:
    group = find(shard, group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
    return group
