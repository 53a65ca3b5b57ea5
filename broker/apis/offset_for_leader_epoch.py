"""OffsetForLeaderEpoch (23), v2-4: where an epoch ended, so that clients notice a cut log (KIP-320)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import ApiKey, ErrorCode, KafkaError
from ..authorizer import Access, Operation, ResourceType, right
from ._api import Asked, Request, ServedApi
from ._errors import Level, in_elements, same
from ._guards import topics
from ._lookup import check_leader_epoch, find_partition

if TYPE_CHECKING:
    from .._node import Node


async def handle(node: Node, request: Request) -> Any:
    make_topic = request.part("OffsetForLeaderTopicResult")
    make_partition = request.part("EpochEndOffset")
    topics = []
    for topic in request.body.topics:
        partitions = []
        for wanted in topic.partitions:
            code = ErrorCode.NONE
            epoch, end_offset = -1, -1
            try:
                partition = find_partition(node, topic.topic, None, wanted.partition)
                check_leader_epoch(partition, wanted.current_leader_epoch)
                epoch, end_offset = partition.end_of_epoch(wanted.leader_epoch)
            except KafkaError as error:
                code = error.code
            partitions.append(
                make_partition(
                    error_code=code, partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset
                )
            )
        topics.append(make_topic(topic=topic.topic, partitions=partitions))
    return request.answer(topics=topics)


_ANY_RIGHT = Access(
    Operation.CLUSTER_ACTION, ResourceType.CLUSTER, None, "every topic: the next right is not asked for"
)
_TOPIC_RIGHT = right(Operation.DESCRIBE, ResourceType.TOPIC, "each topic")


async def _guard(asked: Asked) -> Any:
    return await (asked.proceed() if asked.may(_ANY_RIGHT) else topics(_TOPIC_RIGHT, "topic")(asked))


API = ServedApi(
    key=ApiKey.OFFSET_FOR_LEADER_EPOCH,
    versions=(2, 4),
    handler=handle,
    access=(_ANY_RIGHT, _TOPIC_RIGHT),
    guard=_guard,
    errors=in_elements(
        Level("topics", "topics", same("topic")), Level("partitions", "partitions", same("partition"))
    ),
)
