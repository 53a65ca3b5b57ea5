"""Administration of groups and clusters, on any broker of Kafka's protocol.

:class:`GroupAdmin` is the client for groups, on which ``kohort groups`` is built, :class:`ClusterAdmin` that
for rules, users, quotas, configs, features and the deletion of records. They are loaded on first use: the
help of a command needs no client. Each folder has commands about one subject; the modules beside them serve
all.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..lag import GroupLag, LagTracker, PartitionLag
    from .access.acls import AclQuery, AclRule
    from .access.cluster_admin import ClusterAdmin
    from .access.configs import ConfiguredResource, ConfigValue
    from .access.quotas import ClientQuota
    from .access.users import ScramUser
    from .cluster.feature_levels import FeatureLevel
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
        LagPoint,
        ListedGroup,
        MemberDescription,
        OffsetChange,
        PartitionMove,
        PartitionOffsets,
        ResetPlan,
        ShareOffsets,
        TimeStretch,
    )
    from .topics.deletion import RecordDeletion

_MODULES = {
    **dict.fromkeys(("AclQuery", "AclRule"), "access.acls"),
    "ClientQuota": "access.quotas",
    "ClusterAdmin": "access.cluster_admin",
    **dict.fromkeys(("ConfiguredResource", "ConfigValue"), "access.configs"),
    "FeatureLevel": "cluster.feature_levels",
    "GroupAdmin": "groups.group_admin",
    # a room of its own
    **dict.fromkeys(("GroupLag", "LagTracker", "PartitionLag"), ".lag"),
    "Outcome": "errors",
    "RecordDeletion": "topics.deletion",
    "ResetKind": "groups.reset",
    "ResetTo": "groups.reset",
    "ScramUser": "access.users",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(f".{_MODULES.get(name, 'groups.results')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AclQuery",
    "AclRule",
    "ClientQuota",
    "ClusterAdmin",
    "ConfigValue",
    "ConfiguredResource",
    "Coordinator",
    "FeatureLevel",
    "Generation",
    "GroupAdmin",
    "GroupDescription",
    "GroupHistory",
    "GroupLag",
    "HeldBack",
    "HistoryEntry",
    "LagPoint",
    "LagTracker",
    "ListedGroup",
    "MemberDescription",
    "OffsetChange",
    "Outcome",
    "PartitionLag",
    "PartitionMove",
    "PartitionOffsets",
    "RecordDeletion",
    "ResetKind",
    "ResetPlan",
    "ResetTo",
    "ScramUser",
    "ShareOffsets",
    "TimeStretch",
]
