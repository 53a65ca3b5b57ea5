"""ListPartitionReassignments (46), v0: reassignments in progress (KIP-455); a single broker has none.

The controller answers: other brokers may not have heard of the latest ones yet.
"""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ._api import Request, ServedApi, always
from ._errors import at_top
from ._guards import whole


async def handle(
    node: Node, request: Request[ListPartitionReassignmentsRequest]
) -> ListPartitionReassignmentsResponse:
    """List the partitions that are being reassigned: all, or those of the named ones."""
    wanted = request.body.topics
    numbers = {} if wanted is None else {each.name: set(each.partition_indexes) for each in wanted}
    topics = node.topics.all() if wanted is None else filter(None, map(node.topics.get, numbers))
    found = {
        topic.name: [
            OngoingPartitionReassignment(index, state.replicas, state.adding, state.removing)
            for index, state in enumerate(topic.partitions)
            if (state.adding or state.removing) and (wanted is None or index in numbers[topic.name])
        ]
        for topic in topics
    }
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[OngoingTopicReassignment(*item) for item in found.items() if item[1]],
    )


API = ServedApi(
    key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    versions=(0, 0),
    handler=handle,
    guard=whole(right(Operation.DESCRIBE, ResourceType.CLUSTER, "all reassignments")),
    errors=at_top(lambda _body, _version, _code: {"error_message": None}),
    reads_only=True,
    by_controller=always,
)
