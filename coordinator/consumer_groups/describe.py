"""ConsumerGroupDescribe (key 69), v0-1. v1 has the type of each member. Groups are described one by one.

A response has the members as they were, and lists the partitions of each when it is written, so that other
requests have their turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from ...offsets_topic import CurrentAssignment, MemberMetadata, Partitions
from ...protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    TopicPartitions,
)
from ...protocol.messages.consumer_group_describe import Member as DescribedMember
from ...protocol.named_tuples import NamedTuple
from ..engine.effects import Request
from ..engine.shard import FanOut
from ..groups.describing import SeenMembers, describe_group, split_describe
from ..groups.groups import GroupShard
from .group import ConsumerGroup, find_consumer_group
from .shard_state import state_of

_CLASSIC, _CONSUMER = 0, 1


FAN_OUT: Final = FanOut(
    lambda _version, body, _topics: split_describe(
        body.group_ids, with_operations=bool(body.include_authorized_operations)
    ),
    lambda _version, groups, _topics: ConsumerGroupDescribeResponse(groups=groups),
)


def handle_describe(shard: GroupShard, request: Request, _now_ms: int) -> None:
    """Describe the group as it is now."""
    describe_group(shard, request, "consumer", find_consumer_group, _describe_group, refused_group)


def _describe_group(shard: GroupShard, group: ConsumerGroup, operations: int) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor(next(iter(state_of(shard).assignors))),
        members=_Members(group),
        authorized_operations=operations,
    )


def refused_group(request: Request, error: int, message: str | None = None) -> DescribedGroup:
    """Make the response for a group that cannot be described."""
    return DescribedGroup(int(error), message, request.body.group_id)


class _Seen(NamedTuple):
    """A member as it was when its group was described. None of the values changes."""

    member_id: str
    metadata: MemberMetadata
    current: CurrentAssignment
    target: Partitions


class _Members(SeenMembers[_Seen, DescribedMember]):
    def __init__(self, group: ConsumerGroup) -> None:
        self._topics, targets = group.topics, group.targets
        self._seen = [
            _Seen(member_id, member.metadata, member.current, targets.get(member_id, {}))
            for member_id, member in group.members.items()
        ]

    def _describe_member(self, seen: _Seen) -> DescribedMember:
        metadata, current = seen.metadata, seen.current
        has: dict[UUID, list[int]] = {}
        for topics in (current.assigned, current.revoking):
            for topic_id, numbers in topics.items():
                has.setdefault(topic_id, []).extend(numbers)
        return DescribedMember(
            seen.member_id,
            metadata.instance_id,
            metadata.rack_id,
            current.epoch,
            metadata.client_id,
            metadata.client_host,
            metadata.topics,
            metadata.regex,
            self._assignment_of(has),
            self._assignment_of(seen.target),
            _CONSUMER if metadata.classic is None else _CLASSIC,
        )

    def _assignment_of(self, partitions: Mapping[UUID, Iterable[int]]) -> Assignment:
        """List the partitions, of topics that still exist."""
        return Assignment(
            [
                TopicPartitions(topic_id, name, tuple(numbers))
                for topic_id, numbers in partitions.items()
                if (name := self._topics.topic_of_id(topic_id)) is not None
            ]
        )
