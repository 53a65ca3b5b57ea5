"""InitProducerId (22), v0-5: an id for an idempotent producer (KIP-98, KIP-360).

Transactions are not offered: a transactional id is answered INVALID_REQUEST, which every client takes as
final (COORDINATOR_NOT_AVAILABLE would have it try until its time is up).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import ErrorCode
from .._requests import Request

if TYPE_CHECKING:
    from .._node import Node


async def handle(node: Node, request: Request) -> Any:
    if request.body.transactional_id is not None:
        return request.answer(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    # an id the producer already has is not looked at: without transactions a new one serves as well
    return request.answer(producer_id=await node.producer_ids.take(), producer_epoch=0)
