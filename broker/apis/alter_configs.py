"""AlterConfigs (33), v0-2: replaces all configs of topics, or dynamic settings of the broker (KIP-133,
KIP-226).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...protocol import ApiKey
from ...protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ..node import Node
from ._api import Request, ServedApi
from ._configs import ALTER_ERRORS, ALTER_GUARD, Rows, alter, by_controller


async def handle(node: Node, request: Request[AlterConfigsRequest]) -> AlterConfigsResponse:
    """Replace all configs of each resource: one that is not named returns to its default."""
    return AlterConfigsResponse(
        responses=await alter(node, request, _replace_all, AlterConfigsResourceResponse)
    )


def _replace_all(
    _before: Mapping[str, object], _rows: Rows, configs: Sequence[AlterableConfig]
) -> dict[str, str]:
    """Replace all configs: a config that is not named returns to its default."""
    return {config.name: config.value or "" for config in configs}


API = ServedApi(
    key=ApiKey.ALTER_CONFIGS,
    versions=(0, 2),
    handler=handle,
    guard=ALTER_GUARD,
    errors=ALTER_ERRORS,
    by_controller=by_controller,
    one_at_a_time=True,
)
