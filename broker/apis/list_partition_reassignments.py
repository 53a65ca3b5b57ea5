"""ListPartitionReassignments (46), v0: none; one broker has nowhere to move a replica to (KIP-455)."""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey
from .._node import Node
from ..authorizer import Operation, ResourceType, right
from ._api import Request, ServedApi
from ._errors import at_top
from ._guards import whole


async def handle(_node: Node, request: Request) -> Any:
    return request.answer(error_message=None)


API = ServedApi(
    key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    versions=(0, 0),
    handler=handle,
    guard=whole(right(Operation.DESCRIBE, ResourceType.CLUSTER, "all reassignments")),
    errors=at_top(lambda _body, _version, _code: {"error_message": None}),
    reads_only=True,
)
