"""The tables of a partition and of a replica are the law: every state and trigger is tried."""

from __future__ import annotations

from itertools import product

import pytest

from kohort.statemachine import (
    PARTITION,
    PARTITION_TRANSITIONS,
    REPLICA,
    REPLICA_TRANSITIONS,
    IllegalTransitionError,
    PartitionLife,
    PartitionTrigger,
    ReplicaLife,
    ReplicaTrigger,
    partition_state,
    replica_state,
)

PARTITION_TARGETS = {(row.source, row.trigger): row.target for row in PARTITION_TRANSITIONS}
REPLICA_TARGETS = {(row.source, row.trigger): row.target for row in REPLICA_TRANSITIONS}


@pytest.mark.parametrize(("state", "trigger"), list(product(PartitionLife, PartitionTrigger)))
def test_a_trigger_moves_a_partition_along_the_table_or_raises(
    state: PartitionLife, trigger: PartitionTrigger
) -> None:
    if (state, trigger) in PARTITION_TARGETS:
        assert PARTITION.next(state, trigger) is PARTITION_TARGETS[state, trigger]
    else:
        with pytest.raises(IllegalTransitionError, match=rf"{state.value} cannot {trigger.value}"):
            PARTITION.next(state, trigger)


@pytest.mark.parametrize(("state", "trigger"), list(product(ReplicaLife, ReplicaTrigger)))
def test_a_trigger_moves_a_replica_along_the_table_or_raises(
    state: ReplicaLife, trigger: ReplicaTrigger
) -> None:
    if (state, trigger) in REPLICA_TARGETS:
        assert REPLICA.next(state, trigger) is REPLICA_TARGETS[state, trigger]
    else:
        with pytest.raises(IllegalTransitionError, match=rf"{state.value} cannot {trigger.value}"):
            REPLICA.next(state, trigger)


def test_a_state_has_one_target_for_a_trigger() -> None:
    assert len(PARTITION_TARGETS) == len(PARTITION_TRANSITIONS)
    assert len(REPLICA_TARGETS) == len(REPLICA_TRANSITIONS)


def test_a_partition_that_has_had_a_leader_is_never_new_again() -> None:
    assert all(row.target is not PartitionLife.NEW for row in PARTITION_TRANSITIONS)


def test_states_follow_from_the_image() -> None:
    assert partition_state(was_led=False, is_led=False) is PartitionLife.NEW
    assert partition_state(was_led=True, is_led=False) is PartitionLife.OFFLINE
    assert partition_state(was_led=True, is_led=True) is PartitionLife.ONLINE
    assert replica_state(is_there=True, is_being_added=False) is ReplicaLife.ONLINE
    assert replica_state(is_there=True, is_being_added=True) is ReplicaLife.NEW
    assert replica_state(is_there=False, is_being_added=True) is ReplicaLife.OFFLINE


def test_the_diagrams_have_every_move() -> None:
    for cycle, rows in ((PARTITION, PARTITION_TRANSITIONS), (REPLICA, REPLICA_TRANSITIONS)):
        drawn = cycle.diagram()
        for row in rows:
            assert f"{row.source.value} --> {row.target.value}: {row.trigger.value}" in drawn
