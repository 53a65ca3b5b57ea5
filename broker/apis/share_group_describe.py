"""ShareGroupDescribe (77), v1: epochs, members and assignments of share groups (KIP-932)."""

from __future__ import annotations

from ...coordinator.share_groups import SHARE_VERSION
from ...protocol import ApiKey
from ...protocol.messages.share_group_describe import (
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi, hand_over
from ._errors import Level, in_elements
from ._guards import described_groups

_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "each group")
_TOPIC_RIGHT = right(Operation.DESCRIBE, ResourceType.TOPIC, "each topic that members of the group have")


def _topics_of(member: Member) -> set[str]:
    return {topic.topic_name for topic in member.assignment.topic_partitions}


API: ServedApi[ShareGroupDescribeRequest, ShareGroupDescribeResponse] = ServedApi(
    key=ApiKey.SHARE_GROUP_DESCRIBE,
    versions=(1, 1),
    handler=hand_over,
    feature=SHARE_VERSION,
    guard=described_groups(_GROUP_RIGHT, _TOPIC_RIGHT, _topics_of),
    errors=in_elements(Level("group_ids", "groups", {"": "group_id"})),
    reads_only=True,
)
