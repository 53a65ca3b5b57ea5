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
from typing import NamedTuple, Protocol

from ._machine import mover


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


class MemberTransition(NamedTuple):
    """One legal move and when it happens."""

    trigger: MemberTrigger
    source: MemberState
    target: MemberState
    when: str


#: Every legal move; what is not here raises.
MEMBER_TRANSITIONS: tuple[MemberTransition, ...] = (
    MemberTransition(
        MemberTrigger.JOIN, MemberState.UNJOINED, MemberState.PREPARING, "it wants to take part"
    ),
    MemberTransition(
        MemberTrigger.JOIN,
        MemberState.COMPLETING,
        MemberState.PREPARING,
        "SyncGroup was refused: a newer round has begun",
    ),
    MemberTransition(
        MemberTrigger.JOIN,
        MemberState.STABLE,
        MemberState.PREPARING,
        "a heartbeat told of a new round, or this member asks for one",
    ),
    MemberTransition(
        MemberTrigger.JOINED, MemberState.PREPARING, MemberState.COMPLETING, "JoinGroup was answered"
    ),
    MemberTransition(
        MemberTrigger.SYNCED, MemberState.COMPLETING, MemberState.STABLE, "SyncGroup was answered"
    ),
    *(
        MemberTransition(
            MemberTrigger.RESET, state, MemberState.UNJOINED, "it left, or the group went on without it"
        )
        for state in (MemberState.PREPARING, MemberState.COMPLETING, MemberState.STABLE)
    ),
    *(
        MemberTransition(MemberTrigger.FAIL, state, MemberState.FAILED, "it was fenced or refused for good")
        for state in MemberState
        if state is not MemberState.FAILED
    ),
)


class HasMemberState(Protocol):
    """Anything the machine can move: it only needs a writable ``state``."""

    state: MemberState


def fire_member(member: HasMemberState, trigger: MemberTrigger) -> None:
    """Move ``member.state`` along the table. Raises IllegalTransitionError naming state and trigger."""
    _FIRE(member, trigger)


def legal_member_triggers(state: MemberState) -> tuple[MemberTrigger, ...]:
    """The triggers of a state, in the order of the table."""
    return tuple(row.trigger for row in MEMBER_TRANSITIONS if row.source is state)


def member_diagram() -> str:
    """The table as a Mermaid state diagram; what leads to Failed from every state is drawn as a note."""
    lines = ["stateDiagram-v2", f"    [*] --> {MemberState.UNJOINED.value}"]
    for row in MEMBER_TRANSITIONS:
        if row.trigger is not MemberTrigger.FAIL:
            when = row.when.replace(";", ",").replace(":", ",")
            lines.append(f"    {row.source.value} --> {row.target.value}: {row.trigger.value} ({when})")
    lines.append(
        f"    note right of {MemberState.FAILED.value}: {MemberTrigger.FAIL.value}, from every state"
    )
    return "\n".join(lines) + "\n"


_FIRE = mover("member", MemberState, MEMBER_TRANSITIONS)
