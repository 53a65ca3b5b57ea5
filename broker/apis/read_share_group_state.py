"""ReadShareGroupState (84), v0: the state of share partitions, for the leader that takes over (KIP-932).

Its leader epoch is kept: what earlier leaders still write is fenced. So it does write.
"""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from ..node import Node
from ._api import Request
from ._share_state import answer_share_state, serve_share_state


async def _handle(node: Node, request: Request[ReadShareGroupStateRequest]) -> ReadShareGroupStateResponse:
    """Answer for the partitions whose state this broker keeps; for others NOT_COORDINATOR."""
    return await answer_share_state(node, request, ReadShareGroupStateResponse)


API = serve_share_state(ApiKey.READ_SHARE_GROUP_STATE, _handle, versions=(0, 0), reads_only=False)
