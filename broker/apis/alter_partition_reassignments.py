"""AlterPartitionReassignments (45), v0-1: reassigns partitions to other replicas, or cancels that
(KIP-455, KIP-860); a single broker has all replicas already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from ...protocol import ApiKey, ErrorCode, TopicPartition
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


async def handle(
    node: Node, request: Request[AlterPartitionReassignmentsRequest]
) -> AlterPartitionReassignmentsResponse:
    body, slices = request.body, Slices()
    # a partition that is named again is reassigned again, as in Apache Kafka
    rounds: list[dict[TopicPartition, Sequence[int] | None]] = []
    times: Counter[TopicPartition] = Counter()
    for topic in body.topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            if times[key] == len(rounds):
                rounds.append({})
            rounds[times[key]][key] = each.replicas
            times[key] += 1
    same_factor = not body.allow_replication_factor_change
    outcomes = [await node.control.reassign(each, same_factor=same_factor) for each in rounds]
    times.clear()
    make = partial(make_result, ReassignablePartitionResponse)
    responses = []
    for topic in body.topics:
        results = []
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            error = outcomes[times[key]][key]
            times[key] += 1
            results.append(make(error, partition_index=each.partition_index))
            await slices.end_if_due()
        responses.append(ReassignableTopicResponse(topic.name, results))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=body.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )


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
