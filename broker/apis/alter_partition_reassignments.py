"""AlterPartitionReassignments (45), v0-1: reassigns partitions to other replicas, or cancels that
(KIP-455, KIP-860); a single broker has all replicas already.
"""

from __future__ import annotations

from collections import Counter
from itertools import count

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
    """Give partitions other replicas, or cancel that (null); the moves themselves go on afterwards."""
    body, slices = request.body, Slices()
    named = [(topic.name, each) for topic in body.topics for each in topic.partitions]
    # a partition that is named again is reassigned again, as in Apache Kafka: in another round
    rounds: list[list[int]] = []
    times: Counter[tuple[str, int]] = Counter()
    for place, (name, each) in enumerate(named):
        before = times[name, each.partition_index]
        if before == len(rounds):
            rounds.append([])
        rounds[before].append(place)
        times[name, each.partition_index] += 1
    results: dict[int, ReassignablePartitionResponse] = {}
    for places in rounds:
        wanted = {
            TopicPartition(named[n][0], named[n][1].partition_index): named[n][1].replicas for n in places
        }
        outcome = await node.control.reassign(wanted, same_factor=not body.allow_replication_factor_change)
        for place, (key, error) in zip(places, outcome.items(), strict=True):
            results[place] = make_result(ReassignablePartitionResponse, error, partition_index=key.partition)
        await slices.end_if_due()
    order = count()
    responses = [
        ReassignableTopicResponse(topic.name, [results[next(order)] for _ in topic.partitions])
        for topic in body.topics
    ]
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
