"""Assignors decide which member reads which partition: Kafka's own four, one by weight, and yours.

``load_assignor("range")`` finds one by name; :class:`Assignor` is the class to derive a new one from.
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
