"""The controller: it decides for the cluster, and its decisions are pure functions.

A broker that is alone decides by the same functions. What only a broker of a cluster needs is imported on
first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .decisions import (
    Decision,
    IsrChange,
    NewPartitions,
    NewTopic,
    Refusals,
    Rules,
    add_partitions,
    alter_configs,
    alter_isr,
    balance_leaders,
    create_topics,
    delete_topics,
    elect_leaders,
    leaders_to_move,
    reassign,
    reassign_partition,
    reassignments,
    tidied,
)
from .partitions import settled
from .placement import place

if TYPE_CHECKING:
    from ._controller import DELETIONS_KEPT_S, Controller
    from .writes import steps

_MODULES = {"DELETIONS_KEPT_S": "_controller", "Controller": "_controller", "steps": "writes"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DELETIONS_KEPT_S",
    "Controller",
    "Decision",
    "IsrChange",
    "NewPartitions",
    "NewTopic",
    "Refusals",
    "Rules",
    "add_partitions",
    "alter_configs",
    "alter_isr",
    "balance_leaders",
    "create_topics",
    "delete_topics",
    "elect_leaders",
    "leaders_to_move",
    "place",
    "reassign",
    "reassign_partition",
    "reassignments",
    "settled",
    "steps",
    "tidied",
]
