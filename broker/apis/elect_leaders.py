"""ElectLeaders (43), v0-2: elects preferred or unclean leaders (KIP-183, KIP-460); a single broker needs
none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...cluster import NO_LEADER, PartitionState, TopicImage
from ...protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from ...protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._api import Request, ServedApi, always
from ._errors import at_top
from ._guards import whole

if TYPE_CHECKING:
    from ..metadata.controller_client import Control

#: Errors of a partition whose only replica cannot be served, by Kafka's number of the type of election.
_NO_CANDIDATE = {
    0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    1: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


async def handle(node: Node, request: Request[ElectLeadersRequest]) -> ElectLeadersResponse:
    body = request.body
    unled = _NO_CANDIDATE.get(body.election_type)
    if unled is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"election type {body.election_type}")
    if node.control is not None:
        results = await _by_controller(node.control, body)
    elif body.topic_partitions is None:
        results = [_of_all(unled, topic) async for topic in in_slices(node.topics.all())]
    else:
        results = [_of_some(node, unled, item) async for item in in_slices(body.topic_partitions)]
    return ElectLeadersResponse(replica_election_results=results)


async def _by_controller(control: Control, body: ElectLeadersRequest) -> list[ReplicaElectionResult]:
    wanted = body.topic_partitions
    keys = (
        None
        if wanted is None
        else [TopicPartition(item.topic, index) for item in wanted for index in item.partitions]
    )
    found: dict[str, list[PartitionResult]] = {}
    for (topic, index), error in (await control.elect(keys, unclean=bool(body.election_type))).items():
        code, message = (ErrorCode.NONE, None) if error is None else (error.code, error.message)
        found.setdefault(topic, []).append(PartitionResult(index, code, message))
    return [ReplicaElectionResult(*item) for item in found.items()]


def _of_all(unled: ErrorCode, topic: TopicImage) -> ReplicaElectionResult:
    """The partitions of a topic that would need an election."""
    found = [_election_result(unled, index, state) for index, state in enumerate(topic.partitions)]
    return ReplicaElectionResult(
        topic.name, [one for one in found if one.error_code != ErrorCode.ELECTION_NOT_NEEDED]
    )


def _of_some(node: Node, unled: ErrorCode, item: TopicPartitions) -> ReplicaElectionResult:
    topic = node.topics.get(item.topic)
    states = () if topic is None else topic.partitions
    missing = f"there is no topic {item.topic!r}" if topic is None else f"{item.topic} has no such partition"
    found = [
        _election_result(unled, index, states[index])
        if 0 <= index < len(states)
        else PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, missing)
        for index in item.partitions
    ]
    return ReplicaElectionResult(item.topic, found)


def _election_result(unled: ErrorCode, index: int, state: PartitionState) -> PartitionResult:
    if state.leader == NO_LEADER:
        return PartitionResult(index, unled, "its only replica cannot be served")
    return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, "the partition has its preferred leader")


def _with_error(body: ElectLeadersRequest, _version: int, code: ErrorCode) -> dict[str, object]:
    # as in Apache Kafka: at the top, and for each partition
    return {
        "replica_election_results": [
            ReplicaElectionResult(
                item.topic, [PartitionResult(index, code, None) for index in item.partitions]
            )
            for item in body.topic_partitions or ()
        ]
    }


API = ServedApi(
    key=ApiKey.ELECT_LEADERS,
    versions=(0, 2),
    handler=handle,
    guard=whole(right(Operation.ALTER, ResourceType.CLUSTER, "all partitions")),
    errors=at_top(_with_error),
    by_controller=always,
)
