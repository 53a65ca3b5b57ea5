"""DeleteShareGroupState (86), v0: deletes the state of share partitions (KIP-932)."""

from __future__ import annotations

from ...protocol import ApiKey
from ._share_state import serve_share_state

API = serve_share_state(ApiKey.DELETE_SHARE_GROUP_STATE, versions=(0, 0), reads_only=False)
