"""DescribeTransactions (65), v0: state, producer and partitions of transactional ids (KIP-664)."""

from __future__ import annotations

from ...coordinator.element_limits import RepeatLimit
from ...protocol import ApiKey, ErrorCode
from ...protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from ...transactions import TransactionMetadata
from ..authorizer import Access, Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._api import AnyRequest, Guard, Request, ServedApi
from ._errors import Level, in_elements
from ._guards import each

_ID_RIGHT = right(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "each transactional id")
_TOPIC_RIGHT = Access(
    Operation.DESCRIBE, ResourceType.TOPIC, None, "each topic of a transaction; the others are left out"
)


async def handle(node: Node, request: Request[DescribeTransactionsRequest]) -> DescribeTransactionsResponse:
    """Return the state of each transactional id, and the partitions that are in its transaction."""
    repeats = RepeatLimit()
    return DescribeTransactionsResponse(
        transaction_states=[
            _to_state(
                request,
                name,
                ErrorCode.INVALID_REQUEST if repeats.refuses(name) else node.transactions.describe(name),
            )
            async for name in in_slices(request.body.transactional_ids)
        ]
    )


def _to_state(request: AnyRequest, name: str, found: TransactionMetadata | ErrorCode) -> TransactionState:
    if isinstance(found, ErrorCode):
        return TransactionState(error_code=found, transactional_id=name)
    topics: dict[str, list[int]] = {}
    for topic, partition in found.partitions:
        if request.shows(_TOPIC_RIGHT, topic):
            topics.setdefault(topic, []).append(partition)
    return TransactionState(
        transactional_id=name,
        transaction_state=found.state.value,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[TopicData(topic, partitions) for topic, partitions in topics.items()],
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_TRANSACTIONS,
    versions=(0, 0),
    handler=handle,
    guard=Guard(
        (_ID_RIGHT, _TOPIC_RIGHT),
        lambda node, request: each(node, request, lambda name: (_ID_RIGHT, name)),
    ),
    errors=in_elements(Level("transactional_ids", "transaction_states", {"": "transactional_id"})),
    reads_only=True,
)
