"""AlterPartition (56), v2-3: leaders ask the controller for in-sync replicas (KIP-497, KIP-704, KIP-841)."""

from __future__ import annotations

from ...cluster import PartitionState
from ...cluster.controller import IsrChange
from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    RequestPartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ._api import Request, ServedApi
from ._errors import at_top
from ._guards import whole

#: Version in which each in-sync replica comes with the epoch of its broker (KIP-903).
_EPOCHS_FROM = 3


async def handle(node: Node, request: Request[AlterPartitionRequest]) -> AlterPartitionResponse:
    """Have the controller change in-sync replicas, as the leaders of partitions ask."""
    assert node.cluster is not None, "it is served in a cluster"
    control, body = node.cluster.control, request.body
    changes = [
        IsrChange(
            topic.topic_id,
            each.partition_index,
            each.leader_epoch,
            each.partition_epoch,
            [(one.broker_id, one.broker_epoch) for one in each.new_isr_with_epochs]
            if request.version >= _EPOCHS_FROM
            else [(one, -1) for one in each.new_isr],
            bool(each.leader_recovery_state),
        )
        for topic in body.topics
        for each in topic.partitions
    ]
    decided = iter(await control.decide_isr(body.broker_id, body.broker_epoch, changes))
    return AlterPartitionResponse(
        topics=[
            ResponseTopicData(
                topic.topic_id, [_answer_topic(each, next(decided)) for each in topic.partitions]
            )
            for topic in body.topics
        ]
    )


def _answer_topic(asked: RequestPartitionData, decided: PartitionState | KafkaError) -> ResponsePartitionData:
    if not isinstance(decided, PartitionState):
        return ResponsePartitionData(asked.partition_index, decided.code)
    return ResponsePartitionData(
        asked.partition_index,
        ErrorCode.NONE,
        decided.leader,
        decided.leader_epoch,
        decided.isr,
        int(decided.recovering),
        decided.partition_epoch,
    )


API = ServedApi(
    key=ApiKey.ALTER_PARTITION,
    versions=(2, 3),
    handler=handle,
    guard=whole(right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "all of it")),
    is_of_broker=lambda _body: True,
    errors=at_top(lambda _body, _version, _code: {}),
    carried_out=True,
    cluster_only=True,
)
