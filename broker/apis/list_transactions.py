"""ListTransactions (66), v0-1: transactional ids by state, producer and age (KIP-664, KIP-994)."""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey, ErrorCode
from ...statemachine import TransactionState
from .._node import Node
from ..authorizer import Access, Operation, ResourceType
from ._api import Asked, Guard, Request, ServedApi, replaced
from ._errors import AT_TOP

_STATES = {state.value for state in TransactionState}


async def handle(node: Node, request: Request) -> Any:
    body, found = request.body, node.transactions.transactions()
    if isinstance(found, ErrorCode):
        return request.answer(error_code=found)
    now_ms = node.now_ms()
    make = request.part("TransactionState")
    return request.answer(
        unknown_state_filters=[name for name in body.state_filters if name not in _STATES],
        transaction_states=[
            make(each.transactional_id, each.producer_id, each.state.value)
            for each in found
            if (not body.state_filters or each.state.value in body.state_filters)
            and (not body.producer_id_filters or each.producer_id in body.producer_id_filters)
            and (body.duration_filter < 0 or now_ms - each.start_ms > body.duration_filter)
        ],
    )


_ID_RIGHT = Access(
    Operation.DESCRIBE,
    ResourceType.TRANSACTIONAL_ID,
    None,
    "each transactional id; the others are left out",
)


async def _guard(asked: Asked) -> Any:
    answer = await asked.proceed()
    seen = [each for each in answer.transaction_states if asked.shows(_ID_RIGHT, each.transactional_id)]
    return replaced(answer, transaction_states=seen)


API = ServedApi(
    key=ApiKey.LIST_TRANSACTIONS,
    versions=(0, 1),
    handler=handle,
    guard=Guard((_ID_RIGHT,), _guard),
    errors=AT_TOP,
    reads_only=True,
)
