"""The controller: it decides for the cluster, and its decisions are pure functions.

A broker that is alone decides by the same functions. What only a broker of a cluster needs is imported on
first use.
"""

import importlib
from typing import TYPE_CHECKING

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
    tidy_partitions,
)
from .partitions import settle_state
from .placement import place_replicas

if TYPE_CHECKING:
    from ._controller import DELETIONS_KEPT_S, Controller
    from .writes import steps_to_write

_MODULES = {"DELETIONS_KEPT_S": "_controller", "Controller": "_controller", "steps_to_write": "writes"}


def __getattr__(name: str) -> object:
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
    "place_replicas",
    "reassign",
    "reassign_partition",
    "reassignments",
    "settle_state",
    "steps_to_write",
    "tidy_partitions",
]
