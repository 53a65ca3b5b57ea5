"""WriteShareGroupState (85), v0-1: what has changed in share partitions (KIP-932).

The leader of the partition sends it. Version 1 adds the number of offsets that are done (KIP-1226).
"""

from __future__ import annotations

from ...protocol import ApiKey
from ._share_state import serve_share_state

API = serve_share_state(ApiKey.WRITE_SHARE_GROUP_STATE, versions=(0, 1), reads_only=False)
