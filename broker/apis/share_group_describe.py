"""ShareGroupDescribe (77), v1: epochs, members and assignments of share groups (KIP-932)."""

from __future__ import annotations

from ...coordinator.share_groups import SHARE_VERSION
from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ._api import Asked, Guard, ServedApi, hand_over, replaced
from ._errors import Level, in_elements
from ._guards import each_group, with_operations

_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "each group")
_TOPIC_RIGHT = right(Operation.DESCRIBE, ResourceType.TOPIC, "each topic that members of the group have")


async def _guard(
    asked: Asked[ShareGroupDescribeRequest, ShareGroupDescribeResponse],
) -> ShareGroupDescribeResponse:
    answer = await each_group(asked, _GROUP_RIGHT)
    return replaced(answer, groups=[await _without_hidden(asked, group) for group in answer.groups])


async def _without_hidden(
    asked: Asked[ShareGroupDescribeRequest, ShareGroupDescribeResponse], group: DescribedGroup
) -> DescribedGroup:
    if group.error_code:
        return group
    names: set[str] = set()
    async for member in in_slices(group.members):
        names.update(topic.topic_name for topic in member.assignment.topic_partitions)
    if not all(asked.shows(_TOPIC_RIGHT, name) for name in names):
        return DescribedGroup(
            error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            error_message="The group has described topic(s) that the client is not authorized to describe.",
            group_id=group.group_id,
        )
    if not asked.request.body.include_authorized_operations:
        return group
    return with_operations(asked, group, ResourceType.GROUP, group.group_id, "authorized_operations")


API: ServedApi[ShareGroupDescribeRequest, ShareGroupDescribeResponse] = ServedApi(
    key=ApiKey.SHARE_GROUP_DESCRIBE,
    versions=(1, 1),
    handler=hand_over,
    feature=SHARE_VERSION,
    guard=Guard((_GROUP_RIGHT, _TOPIC_RIGHT), _guard),
    errors=in_elements(Level("group_ids", "groups", {"": "group_id"})),
    reads_only=True,
)
