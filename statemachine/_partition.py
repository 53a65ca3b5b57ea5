"""The states of a partition and of its replicas in a cluster, as the controller sees them.

A partition is New until its first leader is elected, Online while it has a leader and Offline while it has
none. A replica is the copy of a partition on one broker.

=============  =======================================================================
State          Meaning
=============  =======================================================================
New            the topic was created; no leader was elected yet
Online         it has a leader
Offline        no in-sync replica is alive, and no other replica may lead
Deleted        the topic was deleted; final
=============  =======================================================================

The moves are data, against which tests check the controller's decisions. Both states follow from the
cluster's image (:func:`partition_state`, :func:`replica_state`) and are not stored.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

from ._machine import LifeCycle, Transition


class PartitionLife(Enum):
    """States of a partition.

    * **New**: Metadata returns it with LEADER_NOT_AVAILABLE.
    * **Online**: the leader accepts Produce and Fetch.
    * **Offline**: Metadata returns LEADER_NOT_AVAILABLE. The set of in-sync replicas does not change, so that
      the first of them that comes back leads. If the topic allows unclean elections, another replica may
      lead.
    * **Deleted**: Metadata returns UNKNOWN_TOPIC_OR_PARTITION.
    """

    NEW = "New"
    ONLINE = "Online"
    OFFLINE = "Offline"
    DELETED = "Deleted"


class PartitionTrigger(Enum):
    """Triggers that move a partition. The value is the name of the machine's event."""

    ELECT = "elect"
    LOSE_LEADER = "lose_leader"
    DELETE = "delete"


class ReplicaLife(Enum):
    """States of a replica.

    * **New**: a reassignment is adding it; it may lead once it is in sync.
    * **Online**: its broker is alive; it leads or follows.
    * **Offline**: its broker is not alive.
    * **BeingDeleted**: it is no replica of the partition any more; its broker deletes the files.
    """

    NEW = "New"
    ONLINE = "Online"
    OFFLINE = "Offline"
    BEING_DELETED = "BeingDeleted"


class ReplicaTrigger(Enum):
    """Triggers that move a replica. The value is the name of the machine's event."""

    START = "start"
    ADD = "add"
    STOP = "stop"
    DELETE = "delete"


_P, _PT, _R, _RT = PartitionLife, PartitionTrigger, ReplicaLife, ReplicaTrigger
_PartitionMove: TypeAlias = Transition[PartitionLife, PartitionTrigger]
_ReplicaMove: TypeAlias = Transition[ReplicaLife, ReplicaTrigger]

#: Every legal move of a partition; all others raise IllegalTransitionError.
PARTITION_TRANSITIONS: Final[tuple[_PartitionMove, ...]] = (
    Transition(_PT.ELECT, _P.NEW, _P.ONLINE, "the first of its replicas that is there leads"),
    Transition(
        _PT.ELECT, _P.ONLINE, _P.ONLINE, "the leader goes or is to be another: an in-sync replica leads"
    ),
    Transition(
        _PT.ELECT,
        _P.OFFLINE,
        _P.ONLINE,
        "an in-sync replica is back, or the topic allows an unclean election",
    ),
    Transition(_PT.LOSE_LEADER, _P.ONLINE, _P.OFFLINE, "the leader goes, and no in-sync replica is there"),
    *(
        Transition(_PT.DELETE, state, _P.DELETED, "the topic is deleted")
        for state in (_P.NEW, _P.ONLINE, _P.OFFLINE)
    ),
)

#: Every legal move of a replica; all others raise IllegalTransitionError.
REPLICA_TRANSITIONS: Final[tuple[_ReplicaMove, ...]] = (
    Transition(_RT.START, _R.NEW, _R.ONLINE, "the reassignment that adds it has ended"),
    Transition(_RT.START, _R.OFFLINE, _R.ONLINE, "its broker is back"),
    Transition(_RT.ADD, _R.OFFLINE, _R.NEW, "its broker is back, and it is being added still"),
    Transition(_RT.STOP, _R.NEW, _R.OFFLINE, "its broker goes"),
    Transition(_RT.STOP, _R.ONLINE, _R.OFFLINE, "its broker goes"),
    *(
        Transition(
            _RT.DELETE, state, _R.BEING_DELETED, "the topic is deleted, or a reassignment takes it away"
        )
        for state in (_R.NEW, _R.ONLINE, _R.OFFLINE)
    ),
)

PARTITION: Final = LifeCycle("partition", PARTITION_TRANSITIONS, begins=[_P.NEW], ends=[_P.DELETED])
REPLICA: Final = LifeCycle("replica", REPLICA_TRANSITIONS, begins=[_R.NEW], ends=[_R.BEING_DELETED])


def partition_state(*, was_led: bool, is_led: bool) -> PartitionLife:
    """Return the state of a partition that is not deleted. ``was_led``: it has had a leader before."""
    if is_led:
        return _P.ONLINE
    return _P.OFFLINE if was_led else _P.NEW


def replica_state(*, is_there: bool, is_being_added: bool) -> ReplicaLife:
    """Return the state of a replica that the partition has. ``is_there``: its broker is alive."""
    if not is_there:
        return _R.OFFLINE
    return _R.NEW if is_being_added else _R.ONLINE
