"""What kohort's consumer asks for in its heartbeats, and other clients do not know of.

They may be held until there is news of their member (``HoldMs``), and their answers may tell where it begins
to read what is new (``WantsOffsets``).

A partition that moves has no reader until its next one has heard that it is free: with this it hears at once.
Only a heartbeat that tells nothing is held, and of each member only the last one. It is answered when the
group has a new epoch or target, when a partition that the member waits for is free, before the next request
of the member, and when its time is over. Then it counts as if it had come at that moment, except for the
session.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ...offsets_topic import CurrentAssignment, PartitionEpochs
from ...protocol import ErrorCode, TopicPartition
from ...protocol.messages.consumer_group_heartbeat import PartitionOffset, TopicOffsets
from ..engine.effects import Request
from ..groups import GroupShard
from .group import HOLD, ConsumerGroup

#: A heartbeat is held for this part of a session at most.
_SESSIONS: Final = 3
#: For more new partitions than this the member asks, which is answered in parts.
MOST_OFFSETS: Final = 500
#: In the place of a member id, which is never empty.
EVERYONE: Final = ""


def hold(shard: GroupShard, group: ConsumerGroup, request: Request, answer: Any, now_ms: int) -> bool:
    """Hold a heartbeat whose answer has no news; False if it may not be held."""
    config = shard.state.config_of(group.group_id)
    session_ms = config.session_timeout_ms
    until_ms = now_ms + min(
        request.body.hold_ms, config.heartbeat_interval_ms, session_ms - least_rest_ms(session_ms)
    )
    if group.epoch > group.target_epoch and group.computing is None:
        # the first heartbeat after the interval computes it
        until_ms = min(until_ms, group.target_ms + config.assignment_interval_ms)
    if until_ms <= now_ms:
        return False
    member_id = request.body.member_id
    shard.state.held.setdefault(group.group_id, {})[member_id] = request, answer
    shard.timers.start((HOLD, group.group_id, member_id), until_ms)
    return True


def least_rest_ms(session_ms: int) -> int:
    """The part of a session that is left at least when the heartbeat that began it is answered."""
    return session_ms - session_ms // _SESSIONS


def let_go(shard: GroupShard, group_id: str, member_id: str) -> tuple[Request, Any] | None:
    """The heartbeat that is held for this member, with its answer of then; None if there is none."""
    members = shard.state.held.get(group_id, {})
    held = members.pop(member_id, None)
    if held is not None:
        shard.timers.cancel((HOLD, group_id, member_id))
        if not members:
            del shard.state.held[group_id]
    return held


def tell(
    shard: GroupShard,
    group: ConsumerGroup,
    now_ms: int,
    *,
    everyone: bool,
    given_up: Iterable[CurrentAssignment] = (),
) -> None:
    """Let the heartbeats be answered of everyone, or of those who wait for partitions of assignments that
    members had.
    """
    held = shard.state.held.get(group.group_id)
    if not held:
        return
    if everyone:
        # one look at all of them for any number of members that join at the same time
        _due(shard, group.group_id, EVERYONE, now_ms)
        return
    for before in given_up:
        for topics in (before.assigned, before.revoking):
            for topic_id, numbers in topics.items():
                for member_id in group.waiting(topic_id, numbers):
                    if member_id in held:
                        _due(shard, group.group_id, member_id, now_ms)


def answer_soon(shard: GroupShard, group_id: str, member_id: str, now_ms: int) -> None:
    """Let the heartbeat of this member be answered, or that of EVERYONE; nothing if none is held."""
    held = shard.state.held.get(group_id, {})
    for each in held if member_id == EVERYONE else held.keys() & {member_id}:
        _due(shard, group_id, each, now_ms)


def _due(shard: GroupShard, group_id: str, member_id: str, now_ms: int) -> None:
    key = (HOLD, group_id, member_id)
    # what is due already keeps its place before the end of the member's session
    shard.timers.start(key, min(now_ms, shard.timers.deadline(key) or now_ms))


def starts(
    shard: GroupShard, group: ConsumerGroup, before: PartitionEpochs, now: PartitionEpochs
) -> list[TopicOffsets]:
    """What is committed for the partitions that a member has now and had not before, as OffsetFetch answers.

    Nothing while a commit is being written, or if they are many; and without the partitions for which a
    transaction is open: the member asks for those.
    """
    durable, group_id = shard.state.durable, group.group_id
    more = sum(map(len, now.values())) - sum(map(len, before.values()))
    if shard.awaits(shard.state.last_commit) or more > MOST_OFFSETS:
        return []
    told = []
    for topic_id, numbers in now.items():
        name, rows = group.topics.topic_of_id(topic_id), []
        if name is None:
            continue
        for number in numbers.keys() - before.get(topic_id, {}).keys():
            key = TopicPartition(name, number)
            if durable.is_pending(group_id, key):
                continue
            entry = durable.offset(group_id, key)
            rows.append(
                PartitionOffset(number, -1)
                if entry is None
                else PartitionOffset(number, entry.offset, entry.leader_epoch, entry.metadata)
            )
        if rows:
            told.append(TopicOffsets(topic_id, rows))
    return told


def refuse_held(shard: GroupShard) -> None:
    """Refuse every heartbeat that is held: the shard is unloaded."""
    for members in shard.state.held.values():
        for request, _ in members.values():
            shard.refuse(request, ErrorCode.NOT_COORDINATOR)
    shard.state.held.clear()
