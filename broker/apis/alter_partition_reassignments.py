"""AlterPartitionReassignments (45), v0-1: reassigns partitions to other replicas, or cancels that
(KIP-455, KIP-860); a single broker has all replicas already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...cluster.controller import reassign_partition
from ...protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from ...protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import Slices
from ..node import Node
from ._api import Request, ServedApi, always, make_result
from ._errors import at_top
from ._guards import whole

if TYPE_CHECKING:
    from ..metadata.controller_client import Control


async def handle(
    node: Node, request: Request[AlterPartitionReassignmentsRequest]
) -> AlterPartitionReassignmentsResponse:
    body, control, slices = request.body, node.control, Slices()
    refused = None if control is None else await _by_controller(control, body)
    make = partial(make_result, ReassignablePartitionResponse)
    responses = []
    for topic in body.topics:
        results = []
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            error = _by_itself(node, body, key, each.replicas) if refused is None else refused[key]
            results.append(make(error, partition_index=each.partition_index))
            await slices.end_if_due()
        responses.append(ReassignableTopicResponse(topic.name, results))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=body.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )


def _by_itself(
    node: Node, body: AlterPartitionReassignmentsRequest, key: TopicPartition, replicas: Sequence[int] | None
) -> KafkaError | None:
    """What forbids this to a single broker; if nothing does, the partition is where it should be."""
    try:
        reassign_partition(node.image, key, replicas, same_factor=not body.allow_replication_factor_change)
    except KafkaError as error:
        return error
    return None


async def _by_controller(
    control: Control, body: AlterPartitionReassignmentsRequest
) -> dict[TopicPartition, KafkaError | None]:
    elements = [
        (TopicPartition(topic.name, each.partition_index), each.replicas)
        for topic in body.topics
        for each in topic.partitions
    ]
    times = Counter(key for key, _replicas in elements)
    twice = KafkaError(ErrorCode.INVALID_REQUEST, "a partition is in the request twice")
    wanted = {key: replicas for key, replicas in elements if times[key] == 1}
    same_factor = not body.allow_replication_factor_change
    return {**dict.fromkeys(times, twice), **await control.reassign(wanted, same_factor=same_factor)}


def _with_error(
    body: AlterPartitionReassignmentsRequest, _version: int, code: ErrorCode
) -> dict[str, object]:
    # as in Apache Kafka: at the top, and for each partition
    make = ReassignablePartitionResponse
    return {
        "error_message": None,
        "responses": [
            ReassignableTopicResponse(
                topic.name, [make(each.partition_index, code, None) for each in topic.partitions]
            )
            for topic in body.topics
        ],
    }


API = ServedApi(
    key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    versions=(0, 1),
    handler=handle,
    guard=whole(right(Operation.ALTER, ResourceType.CLUSTER, "all partitions")),
    errors=at_top(_with_error),
    by_controller=always,
)
