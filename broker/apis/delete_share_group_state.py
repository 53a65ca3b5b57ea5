"""DeleteShareGroupState (86), v0: deletes the state of share partitions (KIP-932)."""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from ..node import Node
from ._api import Request
from ._share_state import answer_share_state, serve_share_state


async def _handle(
    node: Node, request: Request[DeleteShareGroupStateRequest]
) -> DeleteShareGroupStateResponse:
    """Answer for the partitions whose state this broker keeps; for others NOT_COORDINATOR."""
    return await answer_share_state(node, request, DeleteShareGroupStateResponse)


API = serve_share_state(ApiKey.DELETE_SHARE_GROUP_STATE, _handle, versions=(0, 0), reads_only=False)
