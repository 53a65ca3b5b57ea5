"""Group administration: lists, lag, history and resets, on any broker of Kafka's protocol.

:class:`GroupAdmin` is the client; ``kohort groups`` is built on it. Both are loaded on first use: the help of
a command needs no client. Each folder has commands about one subject; the modules beside them serve all.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..lag import GroupLag, LagTracker, PartitionLag
    from .errors import Outcome
    from .groups.group_admin import GroupAdmin
    from .groups.reset import ResetKind, ResetTo
    from .groups.results import (
        Coordinator,
        Generation,
        GroupDescription,
        GroupHistory,
        HeldBack,
        HistoryEntry,
        ListedGroup,
        MemberDescription,
        OffsetChange,
        PartitionMove,
        PartitionOffsets,
        ResetPlan,
        ShareOffsets,
    )

_MODULES = {
    "GroupAdmin": "groups.group_admin",
    # a room of its own
    **dict.fromkeys(("GroupLag", "LagTracker", "PartitionLag"), ".lag"),
    "Outcome": "errors",
    "ResetKind": "groups.reset",
    "ResetTo": "groups.reset",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(f".{_MODULES.get(name, 'groups.results')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Coordinator",
    "Generation",
    "GroupAdmin",
    "GroupDescription",
    "GroupHistory",
    "GroupLag",
    "HeldBack",
    "HistoryEntry",
    "LagTracker",
    "ListedGroup",
    "MemberDescription",
    "OffsetChange",
    "Outcome",
    "PartitionLag",
    "PartitionMove",
    "PartitionOffsets",
    "ResetKind",
    "ResetPlan",
    "ResetTo",
    "ShareOffsets",
]
