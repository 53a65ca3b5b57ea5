"""Group administration: lists, lag, history and resets, on any broker of Kafka's protocol.

:class:`GroupAdmin` is the client; ``kohort groups`` is built on it (:mod:`kohort.admin.commands`).
"""

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
)

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
]
