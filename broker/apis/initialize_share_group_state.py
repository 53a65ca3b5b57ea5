"""InitializeShareGroupState (83), v0: begins the state of share partitions, or replaces it (KIP-932).

The group's coordinator sends it, with a state epoch: writes for an older one are fenced.
"""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from ..node import Node
from ._api import Request
from ._share_state import answer_share_state, serve_share_state


async def _handle(
    node: Node, request: Request[InitializeShareGroupStateRequest]
) -> InitializeShareGroupStateResponse:
    """Answer for the partitions whose state this broker keeps; for others NOT_COORDINATOR."""
    return await answer_share_state(node, request, InitializeShareGroupStateResponse)


API = serve_share_state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, _handle, versions=(0, 0), reads_only=False)
