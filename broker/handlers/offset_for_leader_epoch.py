"""OffsetForLeaderEpoch (23), v2-4: where an epoch ended, so that clients notice a cut log (KIP-320)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import ErrorCode, KafkaError
from .._requests import Request
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
