"""The states of a consumer group (KIP-848) and of its members, as the coordinator sees them.

In a rebalance no member stops reading what it keeps. The group has an *epoch*, which is bumped whenever
something changes that the assignment depends on. On a later heartbeat the coordinator computes the *target
assignment*, which has the epoch that it was computed for. From then on each member moves to its part of the
target by its own heartbeats, in at most two steps: it revokes the partitions that it loses, then it is at the
new epoch and is assigned the partitions that others have revoked. For a partition that is still owned, it
waits for the owner only.

The state of a group is not stored; it follows from the epochs (:func:`consumer_group_state`):

===========  ====================================================================
State        Meaning
===========  ====================================================================
Empty        no members
Assigning    the group's epoch has no target yet
Reconciling  some members are not at their target yet
Stable       every member has its target
Dead         this object is finished (its shard moved away); final
===========  ====================================================================

The state of a member is stored, as a number, in the record of its current assignment. The moves of both are
data, from which the documentation and tests are made.

Source: KIP-848 and the behaviour of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class ConsumerGroupState(Enum):
    """States of a group; the value is Kafka's name of the state.

    * **Empty**: a heartbeat with epoch 0 adds a member; commits without a member are accepted; DeleteGroups
      succeeds; a JoinGroup replaces the group by a classic one.
    * **Assigning**: members keep their assignments; those that join get none until the assignment interval is
      over and a member's heartbeat computes the target.
    * **Reconciling**: responses to heartbeats tell members which partitions to revoke and which they got.
    * **Stable**: responses to heartbeats have no assignment, unless the request was a full one.
    * **Dead**: every request gets NOT_COORDINATOR.
    """

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerGroupMove(NamedTuple):
    """A change of a group's state that can be seen between two requests, and its cause."""

    source: ConsumerGroupState
    target: ConsumerGroupState
    when: str


_EMPTY, _ASSIGNING, _RECONCILING, _STABLE, _DEAD = ConsumerGroupState
_NEW_EPOCH = "a member comes, goes or changes what it reads, or topics change"

#: Every change that can be seen. One request may cause several steps at once.
CONSUMER_GROUP_MOVES: tuple[ConsumerGroupMove, ...] = (
    ConsumerGroupMove(_EMPTY, _ASSIGNING, "a member joins before the assignment interval is over"),
    ConsumerGroupMove(_EMPTY, _RECONCILING, "classic members are taken over in the middle of a handover"),
    ConsumerGroupMove(_EMPTY, _STABLE, "the first member joins and gets everything"),
    ConsumerGroupMove(_ASSIGNING, _RECONCILING, "a heartbeat computes the target"),
    ConsumerGroupMove(_ASSIGNING, _STABLE, "a heartbeat computes the target, and all have it"),
    ConsumerGroupMove(_RECONCILING, _STABLE, "the last member has reached its target"),
    ConsumerGroupMove(_RECONCILING, _ASSIGNING, _NEW_EPOCH),
    ConsumerGroupMove(_STABLE, _ASSIGNING, _NEW_EPOCH),
    ConsumerGroupMove(
        _STABLE, _RECONCILING, "the same, and the target is computed at once; or a static member is away"
    ),
    *(
        ConsumerGroupMove(state, _EMPTY, "the last member has gone")
        for state in (_ASSIGNING, _RECONCILING, _STABLE)
    ),
    *(ConsumerGroupMove(state, _DEAD, "the shard moves away") for state in ConsumerGroupState),
)


def consumer_group_state(*, members: int, epoch: int, target_epoch: int, settled: bool) -> ConsumerGroupState:
    """Return the state of a group with so many ``members``. ``settled``: all of them have their targets."""
    if not members:
        return _EMPTY
    if epoch > target_epoch:
        return _ASSIGNING
    return _STABLE if settled else _RECONCILING


class AssignmentState(Enum):
    """States of a member; the value is the state's number in Kafka's records.

    * **Stable** (0): it has its whole target, at the epoch of its record.
    * **UnrevokedPartitions** (1): it has to revoke partitions, stays at its old epoch until it has, and must
      report that by a heartbeat within its rebalance timeout.
    * **UnreleasedPartitions** (2): it is at the new epoch and waits for partitions that others still own.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


class AssignmentMove(NamedTuple):
    """A change of a member's state by a heartbeat, and its cause."""

    source: AssignmentState
    target: AssignmentState
    when: str


_HAS, _UNREVOKED, _UNRELEASED = AssignmentState

#: Every change of a member's state.
ASSIGNMENT_MOVES: tuple[AssignmentMove, ...] = (
    AssignmentMove(_HAS, _UNREVOKED, "a newer target, or its subscription, takes away what it has"),
    AssignmentMove(_HAS, _UNRELEASED, "a newer target gives it partitions that others have"),
    AssignmentMove(_HAS, _HAS, "a newer target gives it free partitions, or none"),
    AssignmentMove(_UNREVOKED, _UNREVOKED, "it has given up, and a newer target takes away more"),
    AssignmentMove(_UNREVOKED, _UNRELEASED, "it has given up, and others have not"),
    AssignmentMove(_UNREVOKED, _HAS, "it has given up"),
    AssignmentMove(_UNRELEASED, _UNREVOKED, "a newer target takes away what it has"),
    AssignmentMove(_UNRELEASED, _UNRELEASED, "some of what it waits for is free"),
    AssignmentMove(_UNRELEASED, _HAS, "the last that it waits for is free"),
)


def consumer_group_diagram() -> str:
    """Return the moves of a group as a Mermaid state diagram; those to Dead are a note."""
    lines = ["stateDiagram-v2", f"    [*] --> {_EMPTY.value}"]
    for source, target, when in CONSUMER_GROUP_MOVES:
        if target is not _DEAD:
            lines.append(f"    {source.value} --> {target.value}: {_draw_condition(when)}")
    lines += [f"    note right of {_DEAD.value}: from every state, when the shard moves away"]
    return "\n".join([*lines, f"    {_DEAD.value} --> [*]"]) + "\n"


def assignment_diagram() -> str:
    """Return the moves of a member as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {_kafka_name(_HAS)}"]
    for source, target, when in ASSIGNMENT_MOVES:
        lines.append(f"    {_kafka_name(source)} --> {_kafka_name(target)}: {_draw_condition(when)}")
    return "\n".join(lines) + "\n"


def _kafka_name(state: AssignmentState) -> str:
    return "".join(word.capitalize() for word in state.name.split("_"))


def _draw_condition(when: str) -> str:
    return when.replace(";", ",")
