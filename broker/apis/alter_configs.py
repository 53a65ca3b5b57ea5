"""AlterConfigs (33), v0-2: replaces all configs of topics, or dynamic settings of the broker (KIP-133,
KIP-226).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...protocol import ApiKey
from ..node import Node
from ._api import Request, ServedApi
from ._configs import ALTER_ERRORS, ALTER_GUARD, Rows, alter, by_controller


async def handle(node: Node, request: Request) -> Any:
    return await alter(node, request, _whole)


def _whole(_before: Mapping[str, Any], _rows: Rows, configs: Any) -> dict[str, str]:
    """Replace all configs: a config that is not named returns to its default."""
    return {config.name: config.value for config in configs}


API = ServedApi(
    key=ApiKey.ALTER_CONFIGS,
    versions=(0, 2),
    handler=handle,
    guard=ALTER_GUARD,
    errors=ALTER_ERRORS,
    by_controller=by_controller,
    one_at_a_time=True,
)
