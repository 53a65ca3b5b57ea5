"""AlterConfigs (33), v0-2: all configs of topics, or settings of the broker, anew (KIP-133, KIP-226)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...protocol import ApiKey
from ._api import Request, ServedApi
from ._configs import ALTER_ERRORS, ALTER_RIGHTS, Given, Rows, alter, configs_guard

if TYPE_CHECKING:
    from .._node import Node


async def handle(node: Node, request: Request) -> Any:
    return await alter(node, request, _whole)


def _whole(_before: Mapping[str, Any], _rows: Rows, configs: Any) -> Given:
    """All configs anew: what is not named has its default again."""
    return {config.name: config.value for config in configs}


API = ServedApi(
    key=ApiKey.ALTER_CONFIGS,
    versions=(0, 2),
    handler=handle,
    access=ALTER_RIGHTS,
    guard=configs_guard(*ALTER_RIGHTS, altering=True),
    errors=ALTER_ERRORS,
)
