"""OffsetFetch (9), v1-10: committed offsets of one group, from v8 of many (KIP-709)."""

from __future__ import annotations

from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ._api import Guard, Request, ServedApi
from ._errors import TOPICS_BY_NAME, ErrorShape, Level, same_fields
from ._guards import GroupOffsetsGuard

#: Version from which a request names many groups; the response has the same order.
_MANY_GROUPS_FROM = 8

_GROUP_RIGHT = right(Operation.DESCRIBE, ResourceType.GROUP, "each group")
_TOPIC_RIGHT = right(
    Operation.DESCRIBE, ResourceType.TOPIC, "each topic asked for; of all topics, the others are left out"
)


def _without_offsets(topic: OffsetFetchRequestTopic | OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    partitions = [
        OffsetFetchResponsePartitions(index, -1, error_code=error) for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(topic.name, getattr(topic, "topic_id", None), partitions)


_GUARD = GroupOffsetsGuard(_GROUP_RIGHT, _TOPIC_RIGHT, "name", _without_offsets)


async def _admit(node: Node, request: Request[OffsetFetchRequest]) -> object:
    if request.version < _MANY_GROUPS_FROM:
        return await _GUARD.admit_one(node, request)
    return await _GUARD.admit_many(node, request)


_ONE_GROUP = (
    TOPICS_BY_NAME,
    Level(
        "partition_indexes", "partitions", {"": "partition_index"}, {"committed_offset": -1, "metadata": ""}
    ),
)
_MANY_GROUPS = (Level("groups", "groups", same_fields("group_id")),)

API: ServedApi[OffsetFetchRequest, OffsetFetchResponse] = ServedApi(
    key=ApiKey.OFFSET_FETCH,
    versions=(1, 10),
    guard=Guard((_GROUP_RIGHT, _TOPIC_RIGHT), _admit),
    errors=ErrorShape(
        top=(2, _MANY_GROUPS_FROM - 1), levels={0: _ONE_GROUP, _MANY_GROUPS_FROM: _MANY_GROUPS}
    ),
    reads_only=True,
)
