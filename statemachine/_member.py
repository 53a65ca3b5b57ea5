"""The states of a member of a group, as the client sees them, and the legal moves of each protocol.

A member of a classic group sends JoinGroup and gets the generation and the leader. It sends SyncGroup (the
leader with everyone's assignment) and gets its own assignment. Then it reads and heartbeats until a response
says that a rebalance has begun or that the group has removed the member.

A member of a consumer group only sends heartbeats. The first one joins. The responses have its epoch and its
assignment: the member revokes what is missing from it, reports that, and then reads the new partitions.

===========  ===============================================================  ==========
State        Meaning                                                          Heartbeats
===========  ===============================================================  ==========
Unjoined     no generation: nothing is owned, nothing may be committed        no
Preparing    JoinGroup, or the first heartbeat, is under way; under the       no
             cooperative protocol partitions are still owned
Completing   classic: joined; SyncGroup is under way (the leader assigns      yes
             first)
Reconciling  consumer: the owned partitions are not yet the assignment        yes
Stable       the assignment is known; its partitions are read and committed   yes
Failed       the group does not accept this member; final                     no
===========  ===============================================================  ==========

While a JoinGroup is parked the coordinator does not expire the member, so Preparing needs no heartbeats.
Source: KIP-62, KIP-345, KIP-394, KIP-429, KIP-848.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ._machine import LifeCycle, Transition


class MemberState(Enum):
    """States of a member; the module's docstring explains them."""

    UNJOINED = "Unjoined"
    PREPARING = "Preparing"
    COMPLETING = "Completing"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    FAILED = "Failed"

    @property
    def heartbeats(self) -> bool:
        """Return whether heartbeats are sent in this state."""
        return self in _WITH_HEARTBEATS


_WITH_HEARTBEATS = (MemberState.COMPLETING, MemberState.RECONCILING, MemberState.STABLE)


class MemberTrigger(Enum):
    """Triggers that move a member. The value is the name of the machine's event."""

    JOIN = "join"
    JOINED = "joined"
    SYNCED = "synced"
    ASSIGNED = "assigned"
    RECONCILED = "reconciled"
    RESET = "reset"
    FAIL = "fail"


_S, _T = MemberState, MemberTrigger


def _end_transitions(*members: MemberState) -> tuple[Transition[MemberState, MemberTrigger], ...]:
    """Moves out of the group: to Unjoined from the ``members`` states, and to Failed."""
    gone = (
        Transition(_T.RESET, state, _S.UNJOINED, "it left, or the group went on without it")
        for state in members
    )
    refused = (
        Transition(_T.FAIL, state, _S.FAILED, "it was fenced or refused for good")
        for state in (_S.UNJOINED, *members)
    )
    return (*gone, *refused)


#: Every legal move of a member of a classic group; all others raise IllegalTransitionError.
MEMBER_TRANSITIONS: Final[tuple[Transition[MemberState, MemberTrigger], ...]] = (
    Transition(_T.JOIN, _S.UNJOINED, _S.PREPARING, "it wants to take part"),
    Transition(_T.JOIN, _S.COMPLETING, _S.PREPARING, "SyncGroup was refused: a newer round has begun"),
    Transition(
        _T.JOIN, _S.STABLE, _S.PREPARING, "a heartbeat told of a new round, or this member asks for one"
    ),
    Transition(_T.JOINED, _S.PREPARING, _S.COMPLETING, "JoinGroup was answered"),
    Transition(_T.SYNCED, _S.COMPLETING, _S.STABLE, "SyncGroup was answered"),
    *_end_transitions(_S.PREPARING, _S.COMPLETING, _S.STABLE),
)

#: Every legal move of a member of a consumer group; all others raise IllegalTransitionError.
CONSUMER_MEMBER_TRANSITIONS: Final[tuple[Transition[MemberState, MemberTrigger], ...]] = (
    Transition(_T.JOIN, _S.UNJOINED, _S.PREPARING, "it wants to take part: its epoch is 0"),
    Transition(_T.JOINED, _S.PREPARING, _S.RECONCILING, "the answer has an epoch and an assignment"),
    Transition(_T.RECONCILED, _S.RECONCILING, _S.STABLE, "it has revoked and taken what it was told to"),
    Transition(_T.ASSIGNED, _S.STABLE, _S.RECONCILING, "an answer brings another assignment"),
    *_end_transitions(_S.PREPARING, _S.RECONCILING, _S.STABLE),
)

MEMBER: Final = LifeCycle(
    "member", MEMBER_TRANSITIONS, begins=(_S.UNJOINED,), ends=[_S.FAILED], anywhere=_T.FAIL
)
CONSUMER_MEMBER: Final = LifeCycle(
    "member", CONSUMER_MEMBER_TRANSITIONS, begins=(_S.UNJOINED,), ends=[_S.FAILED], anywhere=_T.FAIL
)
