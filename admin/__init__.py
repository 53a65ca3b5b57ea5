"""Group administration: lists, lag, history and resets, on any broker of Kafka's protocol.

:class:`GroupAdmin` is the client; ``kohort groups`` is built on it (:mod:`kohort.admin.commands`). Both are
loaded on first use: the help of a command needs no client.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .group_admin import GroupAdmin
    from .reset import ResetKind, ResetTo
    from .results import (
        Coordinator,
        Generation,
        GroupDescription,
        GroupHistory,
        HeldBack,
        HistoryEntry,
        ListedGroup,
        MemberDescription,
        OffsetChange,
        Outcome,
        PartitionMove,
        PartitionOffsets,
        ResetPlan,
        ShareOffsets,
    )

_MODULES = {"GroupAdmin": "group_admin", "ResetKind": "reset", "ResetTo": "reset"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(f".{_MODULES.get(name, 'results')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Coordinator",
    "Generation",
    "GroupAdmin",
    "GroupDescription",
    "GroupHistory",
    "HeldBack",
    "HistoryEntry",
    "ListedGroup",
    "MemberDescription",
    "OffsetChange",
    "Outcome",
    "PartitionMove",
    "PartitionOffsets",
    "ResetKind",
    "ResetPlan",
    "ResetTo",
    "ShareOffsets",
]
