"""The two life cycles as data: the group on the broker's side, the member on the client's.

What each state of a group answers is in ``statemachine.answers``, for documentation and tests.
"""

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
    "GROUP_DURABLE_STATES",
    "GROUP_TRANSITIONS",
    "MEMBER_TRANSITIONS",
    "GroupState",
    "GroupTransition",
    "GroupTrigger",
    "HasGroupState",
    "HasMemberState",
    "IllegalTransitionError",
    "MemberState",
    "MemberTransition",
    "MemberTrigger",
    "fire",
    "fire_member",
    "group_diagram",
    "legal_member_triggers",
    "legal_triggers",
    "member_diagram",
]
