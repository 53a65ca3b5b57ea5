"""Handler of the APIs of groups: the coordinator answers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._api import Request

if TYPE_CHECKING:
    from .._node import Node


async def hand_over(node: Node, request: Request) -> Any:
    """The coordinator's answer."""
    return await node.coordinator.handle(request.api.key, request.version, request.body, request.context)
