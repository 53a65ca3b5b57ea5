"""The life of a classic consumer group, as the coordinator sees it: states, legal moves, what each answers.

A group is a set of members that agree, again and again, on who does what. Each agreement is a *generation*
and takes two rounds, because the coordinator never computes an assignment itself:

1. **Collect.** Something changed (a member came, went, changed what it wants). Every member is told to send
   JoinGroup; the coordinator holds these requests until all known members have sent one or time is up, then
   answers them together: same new generation number for all, the whole member list for the leader alone.
2. **Distribute.** Every member sends SyncGroup; the leader's carries the assignment. The coordinator makes it
   durable, then answers all of them with their share.

Between the rounds no member owns anything of the new generation. A member that misses a round is left behind:
its requests carry an old generation number and are refused. So the number is a fence, and these five states
say which requests may pass it:

======================  =========================================================================
State                   Meaning
======================  =========================================================================
Empty                   no members; committed offsets may still be there, and expire
PreparingRebalance      collecting: JoinGroup requests are parked
CompletingRebalance     joins answered; SyncGroup requests are parked until the leader's is durable
Stable                  the assignment is distributed; members heartbeat
Dead                    this object is finished (its shard moved away); final
======================  =========================================================================

A group appears as Empty (first join, or a commit without a group), or is read back from the log as Empty or
Stable, the only two states that are ever durable.

The moves are data (:data:`GROUP_TRANSITIONS`): the machine, the exhaustive tests and the diagram are made
from them. The machine has no callbacks and no conditions: the request's handler decides which trigger to
fire, and an illegal one raises.

Source: KIP-62, KIP-134, KIP-345, KIP-394 and what Apache Kafka 4.3 answers.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ._machine import LifeCycle, Transition


class GroupState(Enum):
    """The five states; the value is Kafka's name for it, as DescribeGroups and ListGroups print it.

    * **Empty**: JoinGroup adds a member and starts a rebalance (or hands out a member id first); OffsetCommit
      without generation is accepted; SyncGroup, Heartbeat and commits with a generation get
      UNKNOWN_MEMBER_ID; DeleteGroups succeeds. Leaves by the first member.
    * **PreparingRebalance**: JoinGroup is parked; SyncGroup and Heartbeat get REBALANCE_IN_PROGRESS (the
      heartbeat still counts); OffsetCommit of the generation that just ended is accepted. Leaves when all
      members have joined or the rebalance timeout is over.
    * **CompletingRebalance**: SyncGroup is parked; Heartbeat succeeds; OffsetCommit gets
      REBALANCE_IN_PROGRESS; a JoinGroup that changes nothing is answered again, any other starts over. Leaves
      when the leader's assignment is durable, or by a new rebalance.
    * **Stable**: SyncGroup is answered with the assignment; Heartbeat and OffsetCommit succeed; JoinGroup of
      the leader, or with other protocols, or of a new member starts a rebalance.
    * **Dead**: parked requests got NOT_COORDINATOR, and so does every later request: the client looks for the
      coordinator again.
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

#: Every legal move; what is not here raises.
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

#: States that a group can be read back in; the others live in memory only.
GROUP_DURABLE_STATES: Final = (GroupState.EMPTY, GroupState.STABLE)

GROUP: Final = LifeCycle(
    "group", GROUP_TRANSITIONS, begins=GROUP_DURABLE_STATES, final=_S.DEAD, anywhere=_T.UNLOAD
)
