"""ReadShareGroupStateSummary (87), v0-1: epochs and start offsets of share partitions (KIP-932).

The group's coordinator sends it; it fences nobody. Version 1 adds the number of offsets that are done.
"""

from __future__ import annotations

from ...protocol import ApiKey
from ...protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from ..node import Node
from ._api import Request
from ._share_state import answer_share_state, serve_share_state


async def _handle(
    node: Node, request: Request[ReadShareGroupStateSummaryRequest]
) -> ReadShareGroupStateSummaryResponse:
    """Answer for the partitions whose state this broker keeps; for others NOT_COORDINATOR."""
    return await answer_share_state(node, request, ReadShareGroupStateSummaryResponse)


API = serve_share_state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, _handle, versions=(0, 1), reads_only=True)
