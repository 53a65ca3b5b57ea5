"""AlterPartitionReassignments (45), v0-1: reassigns partitions to other replicas, or cancels that
(KIP-455, KIP-860).
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from ...protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from .._node import Node
from ..authorizer import Operation, ResourceType, right
from ._api import Request, ServedApi, always
from ._errors import at_top
from ._guards import whole


async def handle(node: Node, request: Request) -> Any:
    body, control = request.body, node.control
    assert control is not None, "it is served in a cluster"
    wanted = {
        TopicPartition(topic.name, each.partition_index): each.replicas
        for topic in body.topics
        for each in topic.partitions
    }
    times = Counter((topic.name, each.partition_index) for topic in body.topics for each in topic.partitions)
    refused: dict[TopicPartition, KafkaError | None] = {}
    for key, replicas in wanted.items():
        topic = node.image.topic(key.topic)
        known = topic.partitions if topic is not None else ()
        if times[key] > 1:
            refused[key] = KafkaError(ErrorCode.INVALID_REQUEST, "a partition is in the request twice")
        elif (
            not body.allow_replication_factor_change
            and replicas is not None
            and 0 <= key.partition < len(known)
            and len(replicas) != len(set(known[key.partition].replicas) - set(known[key.partition].adding))
        ):
            text = f"{len(replicas)} replicas are another replication factor: the request allows none"
            refused[key] = KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    refused |= await control.reassign({key: wanted[key] for key in wanted if key not in refused})
    make = partial(request.result, "ReassignablePartitionResponse")
    return request.answer(
        allow_replication_factor_change=body.allow_replication_factor_change,
        error_message=None,
        responses=[
            request.part("ReassignableTopicResponse")(
                topic.name,
                [
                    make(refused[topic.name, each.partition_index], partition_index=each.partition_index)  # type: ignore[index]
                    for each in topic.partitions
                ],
            )
            for topic in body.topics
        ],
    )


API = ServedApi(
    key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    versions=(0, 1),
    handler=handle,
    guard=whole(right(Operation.ALTER, ResourceType.CLUSTER, "all partitions")),
    errors=at_top(lambda _body, _version, _code: {"error_message": None}),
    by_controller=always,
    cluster_only=True,
)
