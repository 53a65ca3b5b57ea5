"""ReadShareGroupState (84), v0: the state of share partitions, for the leader that takes over (KIP-932).

Its leader epoch is kept: what earlier leaders still write is fenced. So it does write.
"""

from __future__ import annotations

from ...protocol import ApiKey
from ._share_state import serve_share_state

API = serve_share_state(ApiKey.READ_SHARE_GROUP_STATE, versions=(0, 0), reads_only=False)
