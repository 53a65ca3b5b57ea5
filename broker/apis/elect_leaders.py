"""ElectLeaders (43), v0-2: elects preferred or unclean leaders (KIP-183, KIP-460)."""

from __future__ import annotations

from itertools import islice

from ...protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from ...protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ._api import Request, ServedApi, always
from ._errors import at_top
from ._guards import whole

#: Kafka's numbers of types of election.
_PREFERRED, _UNCLEAN = 0, 1


async def handle(node: Node, request: Request[ElectLeadersRequest]) -> ElectLeadersResponse:
    """Elect preferred leaders or, from v1, any replica of partitions without a leader (unclean)."""
    body, wanted = request.body, request.body.topic_partitions
    if body.election_type not in (_PREFERRED, _UNCLEAN):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"election type {body.election_type}")
    keys = [TopicPartition(item.topic, index) for item in wanted or () for index in item.partitions]
    outcomes = await node.control.elect(
        None if wanted is None else dict.fromkeys(keys), unclean=body.election_type == _UNCLEAN
    )
    if wanted is None:
        # as in Apache Kafka: every topic, with the partitions that needed an election
        found: dict[str, list[PartitionResult]] = {name: [] for name in node.topics.names()}
        for key, error in outcomes.items():
            found.setdefault(key.topic, []).append(_partition_result(key, error))
        return ElectLeadersResponse(
            replica_election_results=[ReplicaElectionResult(*each) for each in found.items()]
        )
    results = iter([_partition_result(key, outcomes[key]) for key in keys])
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(item.topic, list(islice(results, len(item.partitions)))) for item in wanted
        ]
    )


def _partition_result(key: TopicPartition, error: KafkaError | None) -> PartitionResult:
    code, message = (ErrorCode.NONE, None) if error is None else (error.code, error.message)
    return PartitionResult(key.partition, code, message)


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
