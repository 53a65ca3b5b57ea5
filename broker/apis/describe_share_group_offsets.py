"""DescribeShareGroupOffsets (90), v0-1: where share groups go on; v1 with the lag (KIP-932, KIP-1226)."""

from __future__ import annotations

from ...coordinator.share_groups import SHARE_VERSION
from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ..authorizer import Operation, ResourceType, right
from ..coordinators.share_groups import describe_offsets
from ..node import Node
from ._api import Guard, Request, ServedApi, hand_over
from ._errors import Level, in_elements, same_fields
from ._guards import GroupOffsetsGuard

_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "each group")
_TOPIC_RIGHT = right(
    Operation.DESCRIBE, ResourceType.TOPIC, "each topic; without names, the others are left out"
)


async def handle(
    node: Node, request: Request[DescribeShareGroupOffsetsRequest]
) -> DescribeShareGroupOffsetsResponse:
    """The coordinator says which partitions to read, one group after the other."""
    asked = await hand_over(node, request)
    return DescribeShareGroupOffsetsResponse(groups=[await describe_offsets(node, each) for each in asked])


def _without_offsets(
    topic: DescribeShareGroupOffsetsRequestTopic,
) -> DescribeShareGroupOffsetsResponseTopic:
    partitions = [
        DescribeShareGroupOffsetsResponsePartition(
            number, -1, error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        )
        for number in topic.partitions
    ]
    return DescribeShareGroupOffsetsResponseTopic(topic.topic_name, None, partitions)


API: ServedApi[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse] = ServedApi(
    key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    versions=(0, 1),
    handler=handle,
    feature=SHARE_VERSION,
    guard=Guard(
        (_GROUP_RIGHT, _TOPIC_RIGHT),
        GroupOffsetsGuard(_GROUP_RIGHT, _TOPIC_RIGHT, "topic_name", _without_offsets).admit_many,
    ),
    errors=in_elements(Level("groups", "groups", same_fields("group_id"))),
    reads_only=True,
)
