"""ShareGroupDescribe (key 77), v1. Groups are described one by one."""

from __future__ import annotations

from typing import Final

from ...offsets_topic import ShareAssignment, ShareMemberMetadata
from ...protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from ...protocol.named_tuples import NamedTuple
from ..engine.effects import Request
from ..engine.shard import FanOut
from ..groups.describing import SeenMembers, describe_group, split_describe
from ..groups.groups import GroupShard
from .group import ShareGroup, find_share_group

FAN_OUT: Final = FanOut(
    lambda _version, body, _topics: split_describe(
        body.group_ids, with_operations=bool(body.include_authorized_operations)
    ),
    lambda _version, groups, _topics: ShareGroupDescribeResponse(groups=groups),
)


def handle_describe(shard: GroupShard, request: Request, _now_ms: int) -> None:
    """Describe the group as it is now."""
    describe_group(shard, request, "share", find_share_group, _describe_group, describe_error)


def _describe_group(shard: GroupShard, group: ShareGroup, operations: int) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=shard.state.settings.group_share_assignors,
        members=_ShareMembers(group),
        authorized_operations=operations,
    )


def describe_error(request: Request, error: int, message: str | None = None) -> DescribedGroup:
    """Make the response for a group that cannot be described."""
    return DescribedGroup(int(error), message, request.body.group_id)


class _SeenShareMember(NamedTuple):
    """A member as it was when its group was described. None of the values changes."""

    member_id: str
    metadata: ShareMemberMetadata
    current: ShareAssignment


class _ShareMembers(SeenMembers[_SeenShareMember, Member]):
    def __init__(self, group: ShareGroup) -> None:
        self._topics = group.topics
        self._seen = [
            _SeenShareMember(member_id, member.metadata, member.current)
            for member_id, member in group.members.items()
        ]

    def _describe_member(self, seen: _SeenShareMember) -> Member:
        metadata, current = seen.metadata, seen.current
        topics = [
            TopicPartitions(topic_id, name, numbers)
            for topic_id, numbers in current.partitions.items()
            if (name := self._topics.topic_of_id(topic_id)) is not None
        ]
        return Member(
            seen.member_id,
            metadata.rack_id,
            current.epoch,
            metadata.client_id,
            metadata.client_host,
            metadata.topics,
            Assignment(topics),
        )
