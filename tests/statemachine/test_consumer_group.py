"""The moves of consumer groups and their members: what follows from the facts, and what is drawn."""

from __future__ import annotations

from itertools import product

import pytest

from kohort.statemachine import (
    ASSIGNMENT_MOVES,
    CONSUMER_GROUP_MOVES,
    AssignmentState,
    ConsumerGroupState,
    assignment_diagram,
    consumer_group_diagram,
    consumer_group_state,
)

EMPTY, ASSIGNING, RECONCILING, STABLE, DEAD = ConsumerGroupState


@pytest.mark.parametrize(
    ("members", "epoch", "target_epoch", "settled"),
    list(product((0, 1, 7), (0, 1, 2), (0, 1, 2), (True, False))),
)
def test_a_state_follows_from_members_and_epochs(
    members: int, epoch: int, target_epoch: int, settled: bool
) -> None:
    state = consumer_group_state(members=members, epoch=epoch, target_epoch=target_epoch, settled=settled)
    assert (state is EMPTY) == (members == 0)
    assert (state is ASSIGNING) == (members > 0 and epoch > target_epoch)
    assert (state is STABLE) == (members > 0 and epoch <= target_epoch and settled)
    assert (state is RECONCILING) == (members > 0 and epoch <= target_epoch and not settled)


def test_a_move_is_in_its_table_once() -> None:
    assert len({(row.source, row.target) for row in CONSUMER_GROUP_MOVES}) == len(CONSUMER_GROUP_MOVES)
    assert {(row.source, row.target) for row in ASSIGNMENT_MOVES} == set(product(AssignmentState, repeat=2))
    assert len(ASSIGNMENT_MOVES) == 9


def test_dead_is_final_and_reached_from_everywhere() -> None:
    assert {row.source for row in CONSUMER_GROUP_MOVES if row.target is DEAD} == set(ConsumerGroupState)
    assert {row.target for row in CONSUMER_GROUP_MOVES if row.source is DEAD} == {DEAD}


def test_the_numbers_of_states_are_those_of_kafkas_records() -> None:
    assert [(state.name, state.value) for state in AssignmentState] == [
        ("STABLE", 0),
        ("UNREVOKED_PARTITIONS", 1),
        ("UNRELEASED_PARTITIONS", 2),
    ]


def test_the_diagrams_draw_each_move_once() -> None:
    for diagram, moves in (
        (consumer_group_diagram(), [row for row in CONSUMER_GROUP_MOVES if row.target is not DEAD]),
        (assignment_diagram(), ASSIGNMENT_MOVES),
    ):
        assert diagram.startswith("stateDiagram-v2\n")
        arrows = [line for line in diagram.splitlines() if "-->" in line and "[*]" not in line]
        assert len(set(arrows)) == len(moves)
    assert "    UnrevokedPartitions --> Stable: it has given up\n" in assignment_diagram()
