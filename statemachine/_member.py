"""The life of a member of a group, as the client sees it: states and legal moves, by protocol.

A member of a classic group follows the group's rounds from the outside. It asks to take part (JoinGroup), is
told the generation and who leads, asks for its share (SyncGroup; the leader brings everyone's), then works
and heartbeats until it learns that a new round has begun or that the group goes on without it.

A member of a consumer group has heartbeats only. The first one joins; the answers bring its epoch and its
assignment, which it moves towards: it revokes, tells the coordinator so, and takes what is new.

===========  ===============================================================  ==========
State        Meaning                                                          Heartbeats
===========  ===============================================================  ==========
Unjoined     no generation: nothing is owned, nothing may be committed        no
Preparing    JoinGroup, or the first heartbeat, is under way; what was owned  no
             under the cooperative protocol still is
Completing   classic: joined; SyncGroup is under way (the leader assigns      yes
             first)
Reconciling  consumer: what is owned is not yet the assignment                yes
Stable       the share is known; it is read and committed                     yes
Failed       the group does not take this member: final                       no
===========  ===============================================================  ==========

While JoinGroup is parked the coordinator does not expire the member, so Preparing needs no heartbeat.
Source: KIP-62, KIP-345, KIP-394, KIP-429, KIP-848.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ._machine import LifeCycle, Transition


class MemberState(Enum):
    """The states; what each means is in this module's text."""

    UNJOINED = "Unjoined"
    PREPARING = "Preparing"
    COMPLETING = "Completing"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    FAILED = "Failed"

    @property
    def heartbeats(self) -> bool:
        """True where heartbeats are sent: it follows from the state, there is no separate switch."""
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


def _ends(*members: MemberState) -> tuple[Transition[MemberState, MemberTrigger], ...]:
    """The moves out of the group: from the states of a member, and to the final state from each."""
    gone = (
        Transition(_T.RESET, state, _S.UNJOINED, "it left, or the group went on without it")
        for state in members
    )
    refused = (
        Transition(_T.FAIL, state, _S.FAILED, "it was fenced or refused for good")
        for state in (_S.UNJOINED, *members)
    )
    return (*gone, *refused)


#: Every legal move of a member of a classic group; what is not here raises.
MEMBER_TRANSITIONS: Final[tuple[Transition[MemberState, MemberTrigger], ...]] = (
    Transition(_T.JOIN, _S.UNJOINED, _S.PREPARING, "it wants to take part"),
    Transition(_T.JOIN, _S.COMPLETING, _S.PREPARING, "SyncGroup was refused: a newer round has begun"),
    Transition(
        _T.JOIN, _S.STABLE, _S.PREPARING, "a heartbeat told of a new round, or this member asks for one"
    ),
    Transition(_T.JOINED, _S.PREPARING, _S.COMPLETING, "JoinGroup was answered"),
    Transition(_T.SYNCED, _S.COMPLETING, _S.STABLE, "SyncGroup was answered"),
    *_ends(_S.PREPARING, _S.COMPLETING, _S.STABLE),
)

#: Every legal move of a member of a consumer group.
CONSUMER_MEMBER_TRANSITIONS: Final[tuple[Transition[MemberState, MemberTrigger], ...]] = (
    Transition(_T.JOIN, _S.UNJOINED, _S.PREPARING, "it wants to take part: its epoch is 0"),
    Transition(_T.JOINED, _S.PREPARING, _S.RECONCILING, "the answer has an epoch and an assignment"),
    Transition(_T.RECONCILED, _S.RECONCILING, _S.STABLE, "it has revoked and taken what it was told to"),
    Transition(_T.ASSIGNED, _S.STABLE, _S.RECONCILING, "an answer brings another assignment"),
    *_ends(_S.PREPARING, _S.RECONCILING, _S.STABLE),
)

MEMBER: Final = LifeCycle(
    "member", MEMBER_TRANSITIONS, begins=(_S.UNJOINED,), final=_S.FAILED, anywhere=_T.FAIL
)
CONSUMER_MEMBER: Final = LifeCycle(
    "member", CONSUMER_MEMBER_TRANSITIONS, begins=(_S.UNJOINED,), final=_S.FAILED, anywhere=_T.FAIL
)
