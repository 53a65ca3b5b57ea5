"""FindCoordinator (10), v0-6: this broker, for every group (KIP-699 asks for many at once).

Transactions and share groups are not offered: INVALID_REQUEST, which clients take as final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import ErrorCode
from .._requests import Request

if TYPE_CHECKING:
    from .._node import Node

_GROUP = 0
_MANY_FROM = 4


async def handle(node: Node, request: Request) -> Any:
    body = request.body
    host, port = request.endpoint
    found: dict[str, Any] = {
        "error_code": ErrorCode.NONE,
        "node_id": node.node_id,
        "host": host,
        "port": port,
    }
    if body.key_type != _GROUP:
        found = {
            "error_code": ErrorCode.INVALID_REQUEST,
            "error_message": f"key type {body.key_type} is not offered by this broker: groups (0) are",
            "node_id": -1,
            "host": "",
            "port": -1,
        }
    if request.version < _MANY_FROM:
        # Kafka names the error here, none too; with many keys it says nothing
        return request.answer(**{"error_message": "NONE", **found})
    make = request.part("Coordinator")
    return request.answer(coordinators=[make(key=key, **found) for key in body.coordinator_keys])
