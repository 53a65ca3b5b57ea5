"""AddOffsetsToTxn (25), v0-4: adds the offsets of a group to a transaction (KIP-98)."""

from __future__ import annotations

from ...protocol import ApiKey, TopicPartition
from ...protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ...transactions import Add
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ..partitions.topic_names import OFFSETS_TOPIC
from ._api import Request, ServedApi
from ._errors import AT_TOP
from ._guards import whole
from ._transactions import TRANSACTION_RIGHT, fenced_name

_FENCED_FROM = 2


async def handle(node: Node, request: Request[AddOffsetsToTxnRequest]) -> AddOffsetsToTxnResponse:
    """Add the partition of ``__consumer_offsets`` that has the group's offsets to the transaction."""
    body = request.body
    place = TopicPartition(OFFSETS_TOPIC, node.coordinator.partition_of(body.group_id))
    add = Add(body.transactional_id, body.producer_id, body.producer_epoch, [place], 0)
    return AddOffsetsToTxnResponse(
        error_code=fenced_name(request, await node.transactions.add(add), _FENCED_FROM)
    )


API = ServedApi(
    key=ApiKey.ADD_OFFSETS_TO_TXN,
    versions=(0, 4),
    handler=handle,
    guard=whole(
        TRANSACTION_RIGHT,
        field="transactional_id",
        then=whole(right(Operation.READ, ResourceType.GROUP, "the group"), field="group_id"),
    ),
    errors=AT_TOP,
)
