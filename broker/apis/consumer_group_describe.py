"""ConsumerGroupDescribe (69), v0-1: epochs, members and assignments of consumer groups (KIP-848)."""

from __future__ import annotations

from ...coordinator.consumer_groups import GROUP_VERSION
from ...protocol import ApiKey
from ...protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    Member,
)
from ..authorizer import Operation, ResourceType, right
from ._api import ServedApi, hand_over
from ._errors import Level, in_elements
from ._guards import described_groups

_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "each group")
_TOPIC_RIGHT = right(Operation.DESCRIBE, ResourceType.TOPIC, "each topic that members of the group read")


def _topics_of(member: Member) -> set[str]:
    parts = (member.assignment, member.target_assignment)
    return {topic.topic_name for part in parts for topic in part.topic_partitions}.union(
        member.subscribed_topic_names
    )


API: ServedApi[ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse] = ServedApi(
    key=ApiKey.CONSUMER_GROUP_DESCRIBE,
    versions=(0, 1),
    handler=hand_over,
    feature=GROUP_VERSION,
    guard=described_groups(_GROUP_RIGHT, _TOPIC_RIGHT, _topics_of),
    errors=in_elements(Level("group_ids", "groups", {"": "group_id"})),
    reads_only=True,
)
