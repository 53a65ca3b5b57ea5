"""Extensions of heartbeats that only kohort's consumer uses: tagged fields that other clients do not send.

With ``HoldMs`` the coordinator may hold the response until there is news for the member, and with
``WantsOffsets`` the response may say where the member begins to read its new partitions. A member that gives
partitions up says so right behind its commit, without waiting for the response (``GivesUp``): that counts if
the commit is stored.

A partition that moves has no reader until its next owner hears that it is free: with a held heartbeat it
hears at once. Only a heartbeat without news of its member is held, and only the last one of each member. It
is answered when the group has a new epoch or target, when a partition that the member waits for is free,
before the member's next request, and when its time is over. It then counts as if it had come at that moment,
except for the session.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from ...offsets_topic import CurrentAssignment, OffsetCommitted, PartitionEpochs
from ...protocol import ErrorCode, TopicPartition
from ...protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
    PartitionOffset,
    TopicOffsets,
    TopicPartitions,
)
from ..engine.effects import Request
from ..groups.groups import GroupShard
from .configs import config_of
from .group import HOLD, ConsumerGroup, find_consumer_group, live_consumer_group
from .reconciliation import has_all
from .shard_state import state_of

#: A heartbeat is held for at most a session timeout divided by this.
_SESSIONS: Final = 3
#: Members that have all of a new target hear of it this much later than the others.
NO_MOVE_MS: Final = 20
#: With more new partitions than this, the member sends OffsetFetch, which is answered in parts.
MOST_OFFSETS: Final = 500
#: Used instead of a member id, which is never empty.
EVERYONE: Final = ""


def hold_heartbeat(
    shard: GroupShard,
    group: ConsumerGroup,
    request: Request,
    answer: ConsumerGroupHeartbeatResponse,
    now_ms: int,
) -> bool:
    """Hold a heartbeat whose response would have no news; return False if it may not be held."""
    config = config_of(shard.state, group.group_id)
    session_ms = config.session_timeout_ms
    until_ms = now_ms + min(
        request.body.hold_ms, config.heartbeat_interval_ms, session_ms - least_rest_ms(session_ms)
    )
    due_ms = _target_due_ms(shard, group, now_ms)
    if until_ms <= now_ms or due_ms == now_ms:
        return False
    if due_ms is not None:
        _on_due(shard, group.group_id, EVERYONE, due_ms)
    member_id = request.body.member_id
    state_of(shard).held.setdefault(group.group_id, {})[member_id] = request, answer
    shard.timers.start((HOLD, group.group_id, member_id), until_ms)
    return True


def least_rest_ms(session_ms: int) -> int:
    """The least time of a session that is left when the heartbeat that began it is answered."""
    return session_ms - session_ms // _SESSIONS


def let_go(
    shard: GroupShard, group_id: str, member_id: str
) -> tuple[Request, ConsumerGroupHeartbeatResponse] | None:
    """Stop holding this member's heartbeat, and return it with its response; None if none is held."""
    members = state_of(shard).held.get(group_id, {})
    held = members.pop(member_id, None)
    if held is not None:
        shard.timers.cancel((HOLD, group_id, member_id))
        if not members:
            del state_of(shard).held[group_id]
    return held


def answer_held(
    shard: GroupShard,
    group: ConsumerGroup,
    now_ms: int,
    *,
    everyone: bool,
    given_up: Iterable[CurrentAssignment] = (),
) -> None:
    """Have held heartbeats answered: those of everyone, or of members that wait for partitions in
    ``given_up`` assignments.
    """
    held = state_of(shard).held.get(group.group_id)
    if not held:
        return
    if everyone:
        # looks at them once, however many members join at the same time
        _on_due(shard, group.group_id, EVERYONE, now_ms)
    for before in given_up:
        for topics in (before.assigned, before.revoking):
            for topic_id, numbers in topics.items():
                for member_id in group.members_waiting(topic_id, numbers):
                    if member_id in held:
                        _on_due(shard, group.group_id, member_id, now_ms)
                        # a partition has no reader until then
                        shard.before_write[HOLD, group.group_id, member_id] = group.group_id


def answer_soon(shard: GroupShard, group_id: str, member_id: str, now_ms: int) -> None:
    """Have the held heartbeat of this member answered, or those of EVERYONE for whom there is news.

    Of everyone those come first who have to give something up or get something: partitions wait for them. Who
    is at the group's target waits for others at most, and keeps its heartbeat for that. A new target is
    computed with one heartbeat; the others are told of it then.
    """
    held = state_of(shard).held.get(group_id, {})
    if member_id != EVERYONE:
        if member_id in held:
            _on_due(shard, group_id, member_id, now_ms)
        return
    group = live_consumer_group(shard, group_id)
    due_ms = None if group is None else _target_due_ms(shard, group, now_ms)
    if group is not None and due_ms is not None and due_ms > now_ms:
        _on_due(shard, group_id, EVERYONE, due_ms)
        if group.told_epoch == group.target_epoch:
            return  # they know the target, and thousands may come and go before the next
    if group is not None:
        group.told_epoch = group.target_epoch
    computes = due_ms == now_ms
    for each in held:
        member = None if group is None else group.members.get(each)
        if group is None or member is None or computes:
            _on_due(shard, group_id, each, now_ms)
            computes = False
        elif member.current.epoch != group.target_epoch:
            moves = not has_all(member.current, group.targets.get(each, {}))
            _on_due(shard, group_id, each, now_ms if moves else now_ms + NO_MOVE_MS)


def _target_due_ms(shard: GroupShard, group: ConsumerGroup, now_ms: int) -> int | None:
    """When the next heartbeat will compute the group's target, from ``now_ms`` on; None if it has one."""
    if group.epoch <= group.target_epoch or group.computing is not None:
        return None
    due_ms = group.target_ms + config_of(shard.state, group.group_id).assignment_interval_ms
    return due_ms if group.target_ms <= now_ms < due_ms else now_ms


def _on_due(shard: GroupShard, group_id: str, member_id: str, at_ms: int) -> None:
    key = (HOLD, group_id, member_id)
    # one that is already due keeps its place before the end of the member's session
    shard.timers.start(key, min(at_ms, shard.timers.deadline(key) or at_ms))


def with_given_up(shard: GroupShard, request: Request, now_ms: int) -> Request | None:
    """The request with what its member owns when it has given that up, if all of it is committed as it says,
    or not its own any more; else without what it gives up. None while commits are being written: then it is
    handled again.
    """
    body = request.body
    plain = body._replace(gives_up=())
    group = find_consumer_group(shard, body.group_id)
    member = None if group is None else group.members.get(body.member_id)
    if group is None or member is None:
        return replace(request, body=plain)
    has: dict[UUID, set[int]] = {}
    for topics in (member.current.assigned, member.current.revoking):
        for topic_id, numbers in topics.items():
            has.setdefault(topic_id, set()).update(numbers)
    gone: dict[UUID, set[int]] = {}
    for topic_id, rows in body.gives_up:
        name, own = group.topics.topic_of_id(topic_id), has.get(topic_id, ())
        for number, *told in rows:
            if number in own and not _is_committed(shard, body.group_id, name, topic_id, number, told):
                if not shard.is_busy(body.group_id):
                    return replace(request, body=plain)
                shard.defer(request, now_ms)
                return None
            gone.setdefault(topic_id, set()).add(number)
    owned: Iterable[tuple[UUID, Iterable[int]]] = body.topic_partitions or ()
    if body.topic_partitions is None:
        owned = has.items()
    left = [
        TopicPartitions(topic_id, [*{*numbers} - gone.get(topic_id, set())]) for topic_id, numbers in owned
    ]
    return replace(request, body=body._replace(topic_partitions=left))


def _is_committed(
    shard: GroupShard, group_id: str, name: str | None, topic_id: UUID, number: int, told: list[Any]
) -> bool:
    """Return whether this is committed: offset, -1 for whatever it is, leader epoch and metadata."""
    offset, leader_epoch, metadata = told
    if offset < 0:
        return True
    entry = None if name is None else shard.state.durable.offset(group_id, TopicPartition(name, number))
    if entry is None or not entry.is_of(topic_id.bytes):
        return False
    return (entry.offset, entry.leader_epoch, entry.metadata) == (offset, leader_epoch, metadata or "")


def starts_of(
    shard: GroupShard, group: ConsumerGroup, before: PartitionEpochs, now: PartitionEpochs
) -> list[TopicOffsets]:
    """The committed offsets of partitions that a member has now and had not before, as OffsetFetch returns
    them.

    Empty if there are too many partitions. Leaves out partitions with an open transaction, or with a commit
    that is being written: the member sends OffsetFetch for those.
    """
    durable, group_id = shard.state.durable, group.group_id
    more = sum(map(len, now.values())) - sum(map(len, before.values()))
    if more > MOST_OFFSETS:
        return []
    written: set[tuple[str, int]] = set()
    if shard.awaits(shard.state.last_commit):
        written = {
            (each.topic, each.partition)
            for each in shard.records_in_flight()
            if type(each) is OffsetCommitted and each.group == group_id
        }
    told = []
    for topic_id, numbers in now.items():
        name, rows = group.topics.topic_of_id(topic_id), []
        if name is None:
            continue
        for number in numbers.keys() - before.get(topic_id, {}).keys():
            key = TopicPartition(name, number)
            if key in written or durable.is_pending(group_id, key):
                continue
            entry = durable.offset(group_id, key)
            rows.append(
                PartitionOffset(number, -1)
                if entry is None or not entry.is_of(topic_id.bytes)
                else PartitionOffset(number, entry.offset, entry.leader_epoch, entry.metadata)
            )
        if rows:
            told.append(TopicOffsets(topic_id, rows))
    return told


def refuse_held(shard: GroupShard) -> None:
    """Refuse every held heartbeat, because the shard is unloaded."""
    for members in state_of(shard).held.values():
        for request, _ in members.values():
            shard.refuse(request, ErrorCode.NOT_COORDINATOR)
    state_of(shard).held.clear()
