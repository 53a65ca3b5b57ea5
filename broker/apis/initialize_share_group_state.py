"""InitializeShareGroupState (83), v0: begins the state of share partitions, or replaces it (KIP-932).

The group's coordinator sends it, with a state epoch: writes for an older one are fenced.
"""

from __future__ import annotations

from ...protocol import ApiKey
from ._share_state import serve_share_state

API = serve_share_state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=(0, 0), reads_only=False)
