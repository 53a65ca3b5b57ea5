"""The life cycles as data: the group on the broker's side."""

from ._group import (
    GROUP_DURABLE_STATES,
    GROUP_TRANSITIONS,
    GroupState,
    GroupTransition,
    GroupTrigger,
    HasGroupState,
    IllegalTransitionError,
    fire,
    group_diagram,
    legal_triggers,
)
from ._group_answers import GROUP_ANSWERS, PARKED, GroupAnswer, answers_table

__all__ = [
    "GROUP_ANSWERS",
    "GROUP_DURABLE_STATES",
    "GROUP_TRANSITIONS",
    "PARKED",
    "GroupAnswer",
    "GroupState",
    "GroupTransition",
    "GroupTrigger",
    "HasGroupState",
    "IllegalTransitionError",
    "answers_table",
    "fire",
    "group_diagram",
    "legal_triggers",
]
