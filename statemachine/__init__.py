"""The life cycles as data: both types of groups on the broker's side, the classic member on the client's.

What each state of a group answers is in ``statemachine.answers``, for documentation and tests.
"""

from ._consumer_group import (
    ASSIGNMENT_MOVES,
    CONSUMER_GROUP_MOVES,
    AssignmentMove,
    AssignmentState,
    ConsumerGroupMove,
    ConsumerGroupState,
    assignment_diagram,
    consumer_group_diagram,
    consumer_group_state,
)
from ._group import (
    GROUP_DURABLE_STATES,
    GROUP_TRANSITIONS,
    GroupState,
    GroupTransition,
    GroupTrigger,
    HasGroupState,
    fire,
    group_diagram,
    legal_triggers,
)
from ._machine import IllegalTransitionError
from ._member import (
    MEMBER_TRANSITIONS,
    HasMemberState,
    MemberState,
    MemberTransition,
    MemberTrigger,
    fire_member,
    legal_member_triggers,
    member_diagram,
)

__all__ = [
    "ASSIGNMENT_MOVES",
    "CONSUMER_GROUP_MOVES",
    "GROUP_DURABLE_STATES",
    "GROUP_TRANSITIONS",
    "MEMBER_TRANSITIONS",
    "AssignmentMove",
    "AssignmentState",
    "ConsumerGroupMove",
    "ConsumerGroupState",
    "GroupState",
    "GroupTransition",
    "GroupTrigger",
    "HasGroupState",
    "HasMemberState",
    "IllegalTransitionError",
    "MemberState",
    "MemberTransition",
    "MemberTrigger",
    "assignment_diagram",
    "consumer_group_diagram",
    "consumer_group_state",
    "fire",
    "fire_member",
    "group_diagram",
    "legal_member_triggers",
    "legal_triggers",
    "member_diagram",
]
