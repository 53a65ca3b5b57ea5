"""The life of a member of a classic consumer group, as the client sees it: states and legal moves.

A member follows its group's rounds from the outside. It asks to take part (JoinGroup), is told the
generation and who leads, asks for its share (SyncGroup; the leader brings everyone's), then works and
heartbeats until it learns that a new round has begun or that the group goes on without it.

==========  ================================================================  ==========
State       Meaning                                                           Heartbeats
==========  ================================================================  ==========
Unjoined    no generation: nothing is owned, nothing may be committed         no
Preparing   JoinGroup is under way; what was owned under the cooperative      no
            protocol still is
Completing  joined; SyncGroup is under way (the leader assigns first)         yes
Stable      the share is known; it is read and committed                      yes
Failed      the group does not take this member: final                        no
==========  ================================================================  ==========

While JoinGroup is parked the coordinator does not expire the member, so Preparing needs no heartbeat.
Source: KIP-62, KIP-345, KIP-394, KIP-429.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ._machine import LifeCycle, Transition


class MemberState(Enum):
    """The five states; what each means is in this module's text."""

    UNJOINED = "Unjoined"
    PREPARING = "Preparing"
    COMPLETING = "Completing"
    STABLE = "Stable"
    FAILED = "Failed"

    @property
    def heartbeats(self) -> bool:
        """True where heartbeats are sent: it follows from the state, there is no switch beside it."""
        return self in _WITH_HEARTBEATS


_WITH_HEARTBEATS = (MemberState.COMPLETING, MemberState.STABLE)


class MemberTrigger(Enum):
    """Triggers that move a member. The value is the name of the machine's event."""

    JOIN = "join"
    JOINED = "joined"
    SYNCED = "synced"
    RESET = "reset"
    FAIL = "fail"


_S, _T = MemberState, MemberTrigger

#: Every legal move; what is not here raises.
MEMBER_TRANSITIONS: Final[tuple[Transition[MemberState, MemberTrigger], ...]] = (
    Transition(_T.JOIN, _S.UNJOINED, _S.PREPARING, "it wants to take part"),
    Transition(_T.JOIN, _S.COMPLETING, _S.PREPARING, "SyncGroup was refused: a newer round has begun"),
    Transition(
        _T.JOIN, _S.STABLE, _S.PREPARING, "a heartbeat told of a new round, or this member asks for one"
    ),
    Transition(_T.JOINED, _S.PREPARING, _S.COMPLETING, "JoinGroup was answered"),
    Transition(_T.SYNCED, _S.COMPLETING, _S.STABLE, "SyncGroup was answered"),
    *(
        Transition(_T.RESET, state, _S.UNJOINED, "it left, or the group went on without it")
        for state in (_S.PREPARING, _S.COMPLETING, _S.STABLE)
    ),
    *(
        Transition(_T.FAIL, state, _S.FAILED, "it was fenced or refused for good")
        for state in MemberState
        if state is not _S.FAILED
    ),
)

MEMBER: Final = LifeCycle(
    "member", MEMBER_TRANSITIONS, begins=(_S.UNJOINED,), final=_S.FAILED, anywhere=_T.FAIL
)
