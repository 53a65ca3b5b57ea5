"""ListTransactions (66), v0-2: ids by state, producer, age and pattern (KIP-664, KIP-994, KIP-1152)."""

from __future__ import annotations

from ...coordinator.re2_expressions import compile_regex
from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from ...protocol.messages.list_transactions import TransactionState as ListedTransaction
from ...statemachine import TransactionState
from ..authorizer import Access, Operation, ResourceType
from ..event_loop.time_slices import in_slices
from ..node import Node
from ._api import Request, ServedApi
from ._errors import AT_TOP
from ._guards import by_handler

_STATES = {state.value for state in TransactionState}

_ID_RIGHT = Access(
    Operation.DESCRIBE,
    ResourceType.TRANSACTIONAL_ID,
    None,
    "each transactional id; the others are left out",
)


async def handle(node: Node, request: Request[ListTransactionsRequest]) -> ListTransactionsResponse:
    """List transactions here by state, producer id, from v1 age, from v2 pattern."""
    body, found = request.body, node.transactions.transactions()
    if isinstance(found, ErrorCode):
        return ListTransactionsResponse(error_code=found)
    pattern = body.transactional_id_pattern
    expression, why = compile_regex(pattern) if pattern else (None, "")
    if why:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, why)
    states, producers = frozenset(body.state_filters), frozenset(body.producer_id_filters)
    now_ms = node.now_ms()
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in body.state_filters if name not in _STATES],
        transaction_states=[
            ListedTransaction(each.transactional_id, each.producer_id, each.state.value)
            async for each in in_slices(found)
            if (not states or each.state.value in states)
            and (not producers or each.producer_id in producers)
            and (body.duration_filter < 0 or now_ms - each.start_ms > body.duration_filter)
            and (expression is None or expression.fullmatch(each.transactional_id))
            and request.shows(_ID_RIGHT, each.transactional_id)
        ],
    )


API = ServedApi(
    key=ApiKey.LIST_TRANSACTIONS,
    versions=(0, 2),
    handler=handle,
    guard=by_handler(_ID_RIGHT),
    errors=AT_TOP,
    reads_only=True,
)
