"""The states of a share group (KIP-932), as the coordinator sees them.

Members of a share group may read the same partitions, and none waits for another: a member has its target
with its next heartbeat. So a group has only these states, which follow from its members:

======  ===========================================================================
State   Meaning
======  ===========================================================================
Empty   no members
Stable  there are members, even while the group's epoch has no target yet
Dead    there is no such group, or this object is finished; final
======  ===========================================================================

Source: KIP-932 and the behaviour of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class ShareGroupState(Enum):
    """States of a group; the value is Kafka's name of the state.

    * **Empty**: offsets may be altered and deleted, and the group be deleted.
    * **Stable**: responses to heartbeats have an assignment if it has changed, or the request names topics.
    * **Dead**: every request gets NOT_COORDINATOR.
    """

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class ShareGroupMove(NamedTuple):
    """A change of a group's state, and its cause."""

    source: ShareGroupState
    target: ShareGroupState
    when: str


_EMPTY, _STABLE, _DEAD = ShareGroupState

#: Every change of a group's state.
SHARE_GROUP_MOVES: tuple[ShareGroupMove, ...] = (
    ShareGroupMove(_EMPTY, _STABLE, "the first member joins"),
    ShareGroupMove(_STABLE, _EMPTY, "the last member leaves, or its session expires"),
    *(ShareGroupMove(state, _DEAD, "the shard moves away") for state in ShareGroupState),
)


def share_group_diagram() -> str:
    """Return the moves of a group as a Mermaid state diagram; those to Dead are a note."""
    lines = ["stateDiagram-v2", f"    [*] --> {_EMPTY.value}"]
    lines += [
        f"    {source.value} --> {target.value}: {when}"
        for source, target, when in SHARE_GROUP_MOVES
        if target is not _DEAD
    ]
    lines += [f"    note right of {_DEAD.value}: from every state, when the shard moves away"]
    return "\n".join([*lines, f"    {_DEAD.value} --> [*]"]) + "\n"
