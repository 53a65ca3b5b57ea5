"""The controller: one broker that decides for the cluster. Its decisions are pure functions.

Only a broker of a cluster imports this.
"""

from ._controller import DELETIONS_KEPT_S, Controller
from .decisions import (
    Decision,
    IsrChange,
    NewPartitions,
    NewTopic,
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
from .writes import steps

__all__ = [
    "DELETIONS_KEPT_S",
    "Controller",
    "Decision",
    "IsrChange",
    "NewPartitions",
    "NewTopic",
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
