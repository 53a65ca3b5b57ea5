"""WriteShareGroupState (85), v0-1: what has changed in share partitions (KIP-932).

The leader of the partition sends it. Version 1 adds the number of offsets that are done (KIP-1226).
"""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from ..node import Node
from ._api import Request
from ._share_state import answer_share_state, serve_share_state


async def _handle(node: Node, request: Request[WriteShareGroupStateRequest]) -> WriteShareGroupStateResponse:
    """Answer for the partitions whose state this broker keeps; for others NOT_COORDINATOR."""
    return await answer_share_state(node, request, WriteShareGroupStateResponse)


API = serve_share_state(ApiKey.WRITE_SHARE_GROUP_STATE, _handle, versions=(0, 1), reads_only=False)
