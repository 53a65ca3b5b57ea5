"""Life cycles as data: group and transactional id on the broker's side, the member on the client's.

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
from ._transaction import (
    TRANSACTION_DURABLE_STATES,
    TRANSACTION_TRANSITIONS,
    TransactionState,
    TransactionTransition,
    TransactionTrigger,
    next_transaction_state,
    transaction_diagram,
)

__all__ = [
    "GROUP_DURABLE_STATES",
    "GROUP_TRANSITIONS",
    "MEMBER_TRANSITIONS",
    "TRANSACTION_DURABLE_STATES",
    "TRANSACTION_TRANSITIONS",
    "GroupState",
    "GroupTransition",
    "GroupTrigger",
    "HasGroupState",
    "HasMemberState",
    "IllegalTransitionError",
    "MemberState",
    "MemberTransition",
    "MemberTrigger",
    "TransactionState",
    "TransactionTransition",
    "TransactionTrigger",
    "fire",
    "fire_member",
    "group_diagram",
    "legal_member_triggers",
    "legal_triggers",
    "member_diagram",
    "next_transaction_state",
    "transaction_diagram",
]
