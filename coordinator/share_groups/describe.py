"""ShareGroupDescribe (key 77), v1. Groups are described one by one.

Members may have many partitions: a response has the members as they were, and lists the partitions of each
when it is written, so that other requests have their turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ...offsets_topic import ShareAssignment, ShareMemberMetadata
from ...protocol import ErrorCode
from ...protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from ..admin import GroupRequest
from ..element_limits import RepeatLimit
from ..engine.effects import Request
from ..engine.shard import FanOut
from ..groups.groups import GroupShard
from ..replies import GROUP_OPERATIONS
from .group import ShareGroup, find_share_group


def _split_describe(body: ShareGroupDescribeRequest) -> list[GroupRequest]:
    """Split a ShareGroupDescribe body into one request for each group."""
    repeats = RepeatLimit()
    return [
        GroupRequest(
            group_id,
            bool(body.include_authorized_operations),
            int(ErrorCode.INVALID_REQUEST) if repeats.refuses(group_id) else 0,
        )
        for group_id in (named or "" for named in body.group_ids)
    ]


FAN_OUT: Final = FanOut(
    lambda _version, body, _topics: _split_describe(body),
    lambda _version, groups, _topics: ShareGroupDescribeResponse(groups=groups),
)


def handle_describe(shard: GroupShard, request: Request, _now_ms: int) -> None:
    """Describe the group as it is now."""
    asked: GroupRequest = request.body
    group_id = asked.group_id
    if asked.error or not group_id:
        shard.reply(request, describe_error(request, asked.error or int(ErrorCode.INVALID_GROUP_ID)))
        return
    group = find_share_group(shard, group_id)
    if group is None:
        missing = shard.state.find(group_id) is None
        text = f"Group {group_id} not found." if missing else f"Group {group_id} is not a share group."
        shard.reply(
            request, describe_error(request, ErrorCode.GROUP_ID_NOT_FOUND)._replace(error_message=text)
        )
        return
    described = DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=shard.state.settings.group_share_assignors,
        members=_ShareMembers(group),
    )
    if asked.with_operations:
        described = described._replace(authorized_operations=GROUP_OPERATIONS)
    # the response waits for pending writes, whose effect it shows
    shard.reply_when_written(group_id, request, described)


def describe_error(request: Request, error: int) -> DescribedGroup:
    """Make the response for a group that cannot be described."""
    return DescribedGroup(error_code=int(error), group_id=request.body.group_id)


class _SeenShareMember(NamedTuple):
    """A member as it was when its group was described. None of the values changes."""

    member_id: str
    metadata: ShareMemberMetadata
    current: ShareAssignment


class _ShareMembers(Sequence[Member]):
    """The members of a group as they were, each described when it is asked for."""

    def __init__(self, group: ShareGroup) -> None:
        self._topics = group.topics
        self._seen = [
            _SeenShareMember(member_id, member.metadata, member.current)
            for member_id, member in group.members.items()
        ]

    def __len__(self) -> int:
        return len(self._seen)

    def __iter__(self) -> Iterator[Member]:
        return map(self._describe_member, self._seen)

    def __getitem__(self, at: int) -> Member:  # type: ignore[override]
        return self._describe_member(self._seen[at])

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
