"""The states of a classic consumer group, as the coordinator sees it, and its legal moves.

The members of a group agree on an assignment again and again. Each agreement is a *generation* and takes two
rounds, because it is a member, the leader, that computes the assignment:

1. **Join.** A member joins, leaves or changes its subscription. Every member is told to send JoinGroup. The
   coordinator parks these requests until all known members have sent one, or until the rebalance timeout is
   over. Then it answers them together: all members get the new generation, the leader also gets the list of
   members.
2. **Sync.** Every member sends SyncGroup; the leader's request has the assignment. The coordinator writes it
   to the log, then answers each member with its part.

Between the rounds no member owns anything in the new generation. A member that misses a round is fenced: its
requests have an old generation and are refused. The five states say which requests are accepted:

======================  =========================================================================
State                   Meaning
======================  =========================================================================
Empty                   no members; committed offsets may still be there, and expire
PreparingRebalance      first round: JoinGroup requests are parked
CompletingRebalance     second round: SyncGroup requests are parked until the assignment is durable
Stable                  the members have their assignments and heartbeat
Dead                    this object is finished (its shard moved away); final
======================  =========================================================================

A group begins as Empty (by its first member, or by a commit without a group), or is loaded from the log as
Empty or Stable, the only two states that are written to it.

The moves are data (:data:`GROUP_TRANSITIONS`): the machine, the exhaustive tests and the diagram are made
from them. The machine has neither callbacks nor conditions: the handler of a request decides which trigger to
fire, and an illegal trigger raises.

Source: KIP-62, KIP-134, KIP-345, KIP-394 and the behaviour of Apache Kafka 4.3.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ._machine import LifeCycle, Transition


class GroupState(Enum):
    """The five states; the value is Kafka's name of the state, which DescribeGroups and ListGroups return.

    * **Empty**: JoinGroup adds a member and starts a rebalance (or returns a member id first); OffsetCommit
      without a generation is accepted; SyncGroup, Heartbeat and commits with a generation get
      UNKNOWN_MEMBER_ID; DeleteGroups succeeds. Ends with the first member.
    * **PreparingRebalance**: JoinGroup is parked; SyncGroup and Heartbeat get REBALANCE_IN_PROGRESS (the
      heartbeat still keeps the member alive); OffsetCommit in the generation that just ended is accepted.
      Ends when all members have joined or the rebalance timeout is over.
    * **CompletingRebalance**: SyncGroup is parked; Heartbeat succeeds; OffsetCommit gets
      REBALANCE_IN_PROGRESS; a JoinGroup that changes nothing is answered again, any other starts a new
      rebalance. Ends when the leader's assignment is durable, or with a new rebalance.
    * **Stable**: SyncGroup is answered with the assignment; Heartbeat and OffsetCommit succeed; a JoinGroup
      by the leader, by a new member, or with changed protocols starts a rebalance.
    * **Dead**: parked requests have got NOT_COORDINATOR, and later requests get it, too: the client looks up
      the coordinator again.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupTrigger(Enum):
    """Triggers that move a group. The value is the name of the machine's event."""

    PREPARE = "prepare_rebalance"
    COMPLETE_JOIN = "complete_join"
    COMPLETE_EMPTY = "complete_empty"
    ASSIGN = "assign"
    UNLOAD = "unload"


_S, _T = GroupState, GroupTrigger

#: Every legal move; all others raise IllegalTransitionError.
GROUP_TRANSITIONS: Final[tuple[Transition[GroupState, GroupTrigger], ...]] = (
    Transition(_T.PREPARE, _S.EMPTY, _S.PREPARING_REBALANCE, "the first member joins"),
    Transition(
        _T.PREPARE,
        _S.COMPLETING_REBALANCE,
        _S.PREPARING_REBALANCE,
        "a member joins, changes, goes or does not sync; or the assignment could not be written",
    ),
    Transition(
        _T.PREPARE,
        _S.STABLE,
        _S.PREPARING_REBALANCE,
        "a member joins, changes, goes; or the leader asks for it",
    ),
    Transition(
        _T.COMPLETE_JOIN,
        _S.PREPARING_REBALANCE,
        _S.COMPLETING_REBALANCE,
        "all members have joined, or the rebalance timeout is over",
    ),
    Transition(_T.COMPLETE_EMPTY, _S.PREPARING_REBALANCE, _S.EMPTY, "nobody is left"),
    Transition(_T.ASSIGN, _S.COMPLETING_REBALANCE, _S.STABLE, "the leader's assignment is durable"),
    *(Transition(_T.UNLOAD, state, _S.DEAD, "the shard moves away") for state in GroupState),
)

#: States that a group can have when it is loaded from the log; the others are in memory only.
GROUP_DURABLE_STATES: Final = (GroupState.EMPTY, GroupState.STABLE)

GROUP: Final = LifeCycle(
    "group", GROUP_TRANSITIONS, begins=GROUP_DURABLE_STATES, ends=[_S.DEAD], anywhere=_T.UNLOAD
)
