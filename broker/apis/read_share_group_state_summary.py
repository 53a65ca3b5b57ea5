"""ReadShareGroupStateSummary (87), v0-1: epochs and start offsets of share partitions (KIP-932).

The group's coordinator sends it; it fences nobody. Version 1 adds the number of offsets that are done.
"""

from __future__ import annotations

from ...protocol import ApiKey
from ._share_state import serve_share_state

API = serve_share_state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=(0, 1), reads_only=True)
