"""State of one partition: its leader, in-sync replicas and epochs, depending on the live brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from ...statemachine import (
    PARTITION,
    REPLICA,
    PartitionLife,
    PartitionTrigger,
    ReplicaLife,
    ReplicaTrigger,
    partition_state,
    replica_state,
)
from .._image import NO_LEADER, UNKNOWN_EPOCH, BrokerRegistration, PartitionState

#: Triggers that bring a replica into a state.
_TRIGGERS: Final = {
    ReplicaLife.NEW: ReplicaTrigger.ADD,
    ReplicaLife.ONLINE: ReplicaTrigger.START,
    ReplicaLife.OFFLINE: ReplicaTrigger.STOP,
}

Brokers: TypeAlias = Mapping[int, BrokerRegistration]


def settle_state(
    before: PartitionState,
    wanted: PartitionState,
    brokers: Brokers,
    *,
    unclean: bool = False,
    prefer_first: bool = False,
    newest_epoch: int = UNKNOWN_EPOCH,
) -> PartitionState:
    """The state that follows ``before`` when its replicas or its in-sync replicas become those of ``wanted``,
    with these live brokers.

    - Replicas on brokers that are dead or about to stop leave the in-sync replicas as long as one stays; the
      last ones are kept, since no other replica has all committed records.
    - A reassignment ends when all replicas that it adds are in sync (KIP-455).
    - The leader stays if it may. Else, and with ``prefer_first`` in any case, the first in-sync replica
      leads. With ``unclean`` any replica may lead if no in-sync one can.
    - A partition without a state is new, and all its live replicas are in sync. If a replica has a log its
      state was lost, and nobody knows who was in sync: only an unclean election gives it a leader.
    - The leader epoch rises with each change of the leader, and when replicas are removed, so that their
      requests are refused; the partition epoch rises with each change. ``newest_epoch`` is the newest that is
      known of replicas' logs: where the metadata are an older copy, the leader epoch rises beyond it.
    """
    may_lead = {node_id for node_id, broker in brokers.items() if not broker.shutting_down}
    if before.leader_epoch == UNKNOWN_EPOCH < newest_epoch and not unclean:
        return before
    if before.leader_epoch == newest_epoch == UNKNOWN_EPOCH:
        first = tuple(each for each in wanted.replicas if each in may_lead)
        if not first:
            return before
        return wanted._replace(leader=first[0], leader_epoch=0, isr=first, partition_epoch=0)
    now = wanted._replace(isr=_in_sync(wanted, brokers, may_lead))
    now = _after_reassignment(now, may_lead)
    leader = _choose_leader(now, brokers, may_lead, prefer_first=prefer_first)
    if leader == NO_LEADER and unclean:
        leader = next((each for each in now.replicas if each in may_lead), NO_LEADER)
        if leader != NO_LEADER:
            now = now._replace(isr=(leader,), recovering=True)
    taken = set(before.replicas) - set(now.replicas)
    epoch = before.leader_epoch + (leader != before.leader or bool(taken))
    if newest_epoch >= epoch:
        epoch = newest_epoch + 1
    now = now._replace(leader=leader, leader_epoch=epoch, partition_epoch=before.partition_epoch)
    return before if now == before else now._replace(partition_epoch=before.partition_epoch + 1)


def _in_sync(state: PartitionState, brokers: Brokers, may_lead: set[int]) -> tuple[int, ...]:
    staying = tuple(each for each in state.isr if each in may_lead)
    stopping = tuple(each for each in state.isr if each in brokers)
    return staying or stopping or state.isr


def _after_reassignment(state: PartitionState, may_lead: set[int]) -> PartitionState:
    """The state after its reassignment, if that can end now. It cannot while a leader recovers: that may lack
    records that the replicas to be removed have.
    """
    staying = tuple(each for each in state.isr if each not in state.removing)
    if state.recovering or may_lead.isdisjoint(staying) or not set(state.adding) <= set(staying):
        return state
    replicas = tuple(each for each in state.replicas if each not in state.removing)
    return state._replace(replicas=replicas, isr=staying, adding=(), removing=())


def _choose_leader(state: PartitionState, brokers: Brokers, may_lead: set[int], *, prefer_first: bool) -> int:
    candidates = [each for each in state.replicas if each in state.isr and each in may_lead]
    if prefer_first and candidates[:1] == [state.replicas[0]]:
        return candidates[0]
    if state.leader in candidates:
        return state.leader
    if candidates:
        return candidates[0]
    # a broker that is about to stop leads until it is gone, if no other can
    stays = state.leader in brokers and state.leader in state.isr and state.leader in state.replicas
    return state.leader if stays else NO_LEADER


def life_of(state: PartitionState) -> PartitionLife:
    """Return the life-cycle state of a partition."""
    return partition_state(was_led=state.leader_epoch != UNKNOWN_EPOCH, is_led=state.leader != NO_LEADER)


def replica_life_of(state: PartitionState, node_id: int, brokers: Brokers) -> ReplicaLife:
    """Return the life-cycle state of a replica on one broker."""
    return replica_state(is_there=node_id in brokers, is_being_added=node_id in state.adding)


def transition_of(before: PartitionState, after: PartitionState | None) -> PartitionLife | None:
    """The life-cycle state into which a partition has moved, None if it has not moved; ``after`` None: it is
    deleted. Raises IllegalTransitionError for a move that the table does not have.
    """
    here = life_of(before)
    if after is None:
        return PARTITION.next(here, PartitionTrigger.DELETE)
    if after.leader == before.leader:
        return None
    trigger = PartitionTrigger.LOSE_LEADER if after.leader == NO_LEADER else PartitionTrigger.ELECT
    return PARTITION.next(here, trigger)


def moved_replicas(
    before: PartitionState, after: PartitionState | None, brokers_before: Brokers, brokers: Brokers
) -> Iterator[tuple[int, ReplicaLife]]:
    """The replicas that have moved, each with its new life-cycle state. Raises IllegalTransitionError."""
    for node_id in before.replicas:
        here = replica_life_of(before, node_id, brokers_before)
        if after is None or node_id not in after.replicas:
            yield node_id, REPLICA.next(here, ReplicaTrigger.DELETE)
            continue
        there = replica_life_of(after, node_id, brokers)
        if there is not here:
            yield node_id, REPLICA.next(here, _TRIGGERS[there])
