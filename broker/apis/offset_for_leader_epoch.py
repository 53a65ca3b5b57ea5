"""OffsetForLeaderEpoch (23), v2-4: the end of an epoch, by which clients notice a truncated log (KIP-320)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ..authorizer import Access, Operation, ResourceType, right
from ..node import Node
from ._api import Guard, Request, ServedApi
from ._errors import Level, in_elements, same_fields
from ._guards import each_topic
from ._lookup import find_partition


async def handle(node: Node, request: Request[OffsetForLeaderEpochRequest]) -> OffsetForLeaderEpochResponse:
    """Return where the leader's log ends each epoch (KIP-101), for followers and consumers."""

    async def ended(topic: OffsetForLeaderTopic, wanted: OffsetForLeaderPartition) -> dict[str, object]:
        partition = find_partition(
            node, topic.topic, None, wanted.partition, known_epoch=wanted.current_leader_epoch
        )
        epoch, end_offset = partition.end_of_epoch(wanted.leader_epoch)
        return {"leader_epoch": epoch, "end_offset": end_offset}

    return await request.each_partition(OffsetForLeaderEpochResponse, ended)


_ANY_RIGHT = Access(
    Operation.CLUSTER_ACTION, ResourceType.CLUSTER, None, "every topic: the next right is not asked for"
)
_TOPIC_RIGHT = right(Operation.DESCRIBE, ResourceType.TOPIC, "each topic")


async def _guard(node: Node, request: Request[OffsetForLeaderEpochRequest]) -> object:
    if request.allows(_ANY_RIGHT):
        return await request.proceed(node)
    return await each_topic(node, request, _TOPIC_RIGHT, "topic")


API = ServedApi(
    key=ApiKey.OFFSET_FOR_LEADER_EPOCH,
    versions=(2, 4),
    handler=handle,
    guard=Guard((_ANY_RIGHT, _TOPIC_RIGHT), _guard),
    errors=in_elements(
        Level("topics", "topics", same_fields("topic")),
        Level("partitions", "partitions", same_fields("partition")),
    ),
)
