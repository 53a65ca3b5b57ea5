"""The list of all types of groups. Nothing else in the coordinator and the broker names them."""

from __future__ import annotations

from typing import Final

from ..classic_groups import CLASSIC_GROUPS
from ..consumer_groups import CONSUMER_GROUPS
from ..share_groups import SHARE_GROUPS
from .groups import GroupKind

#: All types of groups. Those that are only offsets are of the first.
KINDS: Final[tuple[GroupKind, ...]] = (CLASSIC_GROUPS, CONSUMER_GROUPS, SHARE_GROUPS)
