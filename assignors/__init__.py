"""Assignors, which decide which member of a group reads which partition.

Here are those of Kafka's clients (``range``, ``roundrobin``, ``sticky``, ``cooperative-sticky``), ``uniform``
of Kafka's coordinator, and ``balanced-by-weight``, which only kohort has. ``load_assignor("range")`` makes
one by name. To write your own, derive from :class:`Assignor`.
"""

from ._balanced_loads import BalanceLimit, explain_balance
from ._range_and_roundrobin import RangeAssignor, RoundRobinAssignor
from ._sticky import CooperativeStickyAssignor, RackPreference, StickyAssignor, UniformAssignor
from ._weighted import BalancedByWeightAssignor
from .base import Assignor, GroupAssignment, Member, RebalanceProtocol, TopicInfo, in_member_order
from .registry import AssignorError, available_assignors, load_assignor
from .validation import Problem, ProblemKind, validate_assignment
from .weights import Measure, MeasuringAssignor

__all__ = [
    "Assignor",
    "AssignorError",
    "BalanceLimit",
    "BalancedByWeightAssignor",
    "CooperativeStickyAssignor",
    "GroupAssignment",
    "Measure",
    "MeasuringAssignor",
    "Member",
    "Problem",
    "ProblemKind",
    "RackPreference",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "TopicInfo",
    "UniformAssignor",
    "available_assignors",
    "explain_balance",
    "in_member_order",
    "load_assignor",
    "validate_assignment",
]
