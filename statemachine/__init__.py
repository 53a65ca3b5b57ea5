"""The two life cycles as data: the group on the broker's side, the member on the client's."""

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
from ._group_answers import (
    COLUMNS,
    ERRORS,
    GROUP_ANSWERS,
    PARKED,
    Generation,
    GroupAnswer,
    answers_table,
    errors_table,
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
    "COLUMNS",
    "ERRORS",
    "GROUP_ANSWERS",
    "GROUP_DURABLE_STATES",
    "GROUP_TRANSITIONS",
    "MEMBER_TRANSITIONS",
    "PARKED",
    "Generation",
    "GroupAnswer",
    "GroupState",
    "GroupTransition",
    "GroupTrigger",
    "HasGroupState",
    "HasMemberState",
    "IllegalTransitionError",
    "MemberState",
    "MemberTransition",
    "MemberTrigger",
    "answers_table",
    "errors_table",
    "fire",
    "fire_member",
    "group_diagram",
    "legal_member_triggers",
    "legal_triggers",
    "member_diagram",
]
