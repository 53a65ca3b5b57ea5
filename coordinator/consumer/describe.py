"""ConsumerGroupDescribe (key 69), v0-1. v1 has the type of each member. Groups are described one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from ...protocol import ErrorCode
from ...protocol.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    TopicPartitions,
)
from ...protocol.messages.consumer_group_describe import Member as DescribedMember
from ..admin import GroupRequest
from ..engine.effects import Request
from ..groups import GroupShard
from ..repeats import Repeats
from ..replies import GROUP_OPERATIONS
from .group import ConsumerGroup, Member, find

_CLASSIC, _CONSUMER = 0, 1


def split_describe(body: Any) -> list[GroupRequest]:
    """Split a ConsumerGroupDescribe body into one request for each group."""
    repeats = Repeats()
    return [
        GroupRequest(
            group_id,
            bool(body.include_authorized_operations),
            int(ErrorCode.INVALID_REQUEST) if repeats.refuses(group_id) else 0,
        )
        for group_id in (named or "" for named in body.group_ids)
    ]


def handle_describe(shard: GroupShard, request: Request, _now_ms: int) -> None:
    """Describe the group as it is now."""
    asked: GroupRequest = request.body
    group_id = asked.group_id
    if asked.error or not group_id:
        shard.reply(request, refusal(request, asked.error or int(ErrorCode.INVALID_GROUP_ID)))
        return
    group = find(shard, group_id)
    if group is None:
        missing = shard.state.find(group_id) is None
        text = f"Group {group_id} not found." if missing else f"Group {group_id} is not a consumer group."
        shard.reply(request, refusal(request, ErrorCode.GROUP_ID_NOT_FOUND)._replace(error_message=text))
        return
    described = DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor(next(iter(shard.state.assignors))),
        members=[_member(group, member) for member in group.members.values()],
    )
    if asked.with_operations:
        described = described._replace(authorized_operations=GROUP_OPERATIONS)
    # the response waits for pending writes, whose effect it shows
    shard.reply_when_written(group_id, request, described)


def refusal(request: Request, error: int) -> DescribedGroup:
    """Make the response for a group that cannot be described."""
    return DescribedGroup(error_code=int(error), group_id=request.body.group_id)


def _member(group: ConsumerGroup, member: Member) -> DescribedMember:
    metadata, current = member.metadata, member.current
    has: dict[UUID, list[int]] = {}
    for topics in (current.assigned, current.revoking):
        for topic_id, numbers in topics.items():
            has.setdefault(topic_id, []).extend(numbers)
    return DescribedMember(
        member.member_id,
        metadata.instance_id,
        metadata.rack_id,
        current.epoch,
        metadata.client_id,
        metadata.client_host,
        metadata.topics,
        metadata.regex,
        _assignment(group, has),
        _assignment(group, group.targets.get(member.member_id, {})),
        _CLASSIC if member.is_classic else _CONSUMER,
    )


def _assignment(group: ConsumerGroup, partitions: Mapping[UUID, Iterable[int]]) -> Assignment:
    """List the partitions, of topics that still exist."""
    return Assignment(
        [
            TopicPartitions(topic_id, name, tuple(numbers))
            for topic_id, numbers in partitions.items()
            if (name := group.topics.topic_of_id(topic_id)) is not None
        ]
    )
