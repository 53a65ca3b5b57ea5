"""EndTxn (26), v0-5: commits or aborts a transaction (KIP-98); from v5 on the epoch rises (KIP-890)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ...transactions import EPOCH_BUMP_VERSION, TransactionEnd
from ..node import Node
from ._api import Request, ServedApi
from ._errors import AT_TOP
from ._guards import whole
from ._transactions import TRANSACTION_RIGHT, fenced_name

_FENCED_FROM, _BUMPS_FROM = 2, 5


async def handle(node: Node, request: Request[EndTxnRequest]) -> EndTxnResponse:
    """Commit or abort; from v5 the producer gets its next epoch (KIP-890)."""
    body = request.body
    version = EPOCH_BUMP_VERSION if request.version >= _BUMPS_FROM else 0
    end = TransactionEnd(
        body.transactional_id, body.producer_id, body.producer_epoch, body.committed, version
    )
    error, producer_id, epoch = await node.transactions.end(end)
    return EndTxnResponse(
        error_code=fenced_name(request, error, _FENCED_FROM), producer_id=producer_id, producer_epoch=epoch
    )


API = ServedApi(
    key=ApiKey.END_TXN,
    versions=(0, 5),
    handler=handle,
    guard=whole(TRANSACTION_RIGHT, field="transactional_id"),
    errors=AT_TOP,
)
