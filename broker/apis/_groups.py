"""The group APIs: handed to the coordinator as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import ApiKey
from .._requests import Request

if TYPE_CHECKING:
    from .._node import Node

GROUP_APIS = (
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE,
)


async def handle(node: Node, request: Request) -> Any:
    return await node.coordinator.handle(request.api.key, request.version, request.body, request.context)
