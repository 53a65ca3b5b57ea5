"""TxnOffsetCommit (28), v0-5: stores offsets of a group that count if the transaction commits (KIP-98,
KIP-447).

From v5 on the group is added to the transaction with its first offset (KIP-890).
"""

from __future__ import annotations

from ...coordinator import append_error
from ...protocol import ApiKey, ErrorCode, TopicPartition
from ...protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ..authorizer import Operation, ResourceType, right
from ..coordinators.transactions import Writer
from ..node import Node
from ..partitions.topic_names import OFFSETS_TOPIC
from ._api import Request, ServedApi
from ._errors import PARTITIONS, TOPICS_BY_NAME, in_elements
from ._guards import topics, whole
from ._transactions import TRANSACTION_RIGHT, written_name

_ABORTABLE_FROM, _ADDS_FROM = 4, 5


async def handle(node: Node, request: Request[TxnOffsetCommitRequest]) -> TxnOffsetCommitResponse:
    """Store offsets that count when the transaction commits; from v5 their partition is added by this."""
    body = request.body
    adds = request.version >= _ADDS_FROM
    writer = Writer(body.transactional_id, body.producer_id, body.producer_epoch, adds)
    place = TopicPartition(OFFSETS_TOPIC, node.coordinator.partition_of(body.group_id))

    async def admit() -> ErrorCode:
        error = (await writer.admit(node, [place]))[place]
        return append_error(written_name(error, knows_abortable=request.version >= _ABORTABLE_FROM))

    answer = await node.coordinator.commit_in_transaction(body, request.context, admit)
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                each.name, [TxnOffsetCommitResponsePartition(*outcome) for outcome in each.partitions]
            )
            for each in answer.topics
        ]
    )


API = ServedApi(
    key=ApiKey.TXN_OFFSET_COMMIT,
    versions=(0, 5),
    handler=handle,
    guard=whole(
        TRANSACTION_RIGHT,
        field="transactional_id",
        then=whole(
            right(Operation.READ, ResourceType.GROUP, "the group"),
            field="group_id",
            then=topics(right(Operation.READ, ResourceType.TOPIC, "each topic")),
        ),
    ),
    errors=in_elements(TOPICS_BY_NAME, PARTITIONS),
)
