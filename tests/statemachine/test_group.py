"""The table is the law: every state and trigger is tried, and what is drawn is what is legal."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest

from kohort.statemachine import (
    GROUP_DURABLE_STATES,
    GROUP_TRANSITIONS,
    GroupState,
    GroupTrigger,
    IllegalTransitionError,
    fire,
    group_diagram,
    legal_triggers,
)

TARGETS = {(row.source, row.trigger): row.target for row in GROUP_TRANSITIONS}


@dataclass(slots=True)
class Life:
    state: GroupState


@pytest.mark.parametrize(("state", "trigger"), list(product(GroupState, GroupTrigger)))
def test_a_trigger_moves_along_the_table_or_raises(state: GroupState, trigger: GroupTrigger) -> None:
    life = Life(state)
    if (state, trigger) in TARGETS:
        fire(life, trigger)
        assert life.state is TARGETS[state, trigger]
    else:
        with pytest.raises(IllegalTransitionError, match=rf"{state.value} cannot {trigger.value}"):
            fire(life, trigger)
        assert life.state is state


def test_a_state_has_one_target_for_a_trigger() -> None:
    assert len(TARGETS) == len(GROUP_TRANSITIONS)


@pytest.mark.row("2.1/edges", "2.2/can-rebalance")
@pytest.mark.parametrize(
    ("state", "predecessors"),
    [
        ("Empty", {"PreparingRebalance"}),
        ("PreparingRebalance", {"Empty", "CompletingRebalance", "Stable"}),
        ("CompletingRebalance", {"PreparingRebalance"}),
        ("Stable", {"CompletingRebalance"}),
        ("Dead", {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}),
    ],
)
def test_predecessors_are_those_of_kafka(state: str, predecessors: set[str]) -> None:
    assert {row.source.value for row in GROUP_TRANSITIONS if row.target.value == state} == predecessors


def test_dead_is_final() -> None:
    assert legal_triggers(GroupState.DEAD) == (GroupTrigger.UNLOAD,)


def test_every_state_is_reached_from_a_durable_one() -> None:
    reached = set(GROUP_DURABLE_STATES)
    for _ in GroupState:
        reached |= {row.target for row in GROUP_TRANSITIONS if row.source in reached}
    assert reached == set(GroupState)


def test_groups_share_the_machine_and_not_their_state() -> None:
    one, other = Life(GroupState.EMPTY), Life(GroupState.STABLE)
    fire(one, GroupTrigger.PREPARE)
    assert (one.state, other.state) == (GroupState.PREPARING_REBALANCE, GroupState.STABLE)


def test_the_diagram_draws_each_move_once() -> None:
    diagram = group_diagram()
    assert diagram.startswith("stateDiagram-v2\n")
    arrows = [line.split(":")[0].strip() for line in diagram.splitlines() if "-->" in line]
    moves = {f"{r.source.value} --> {r.target.value}" for r in GROUP_TRANSITIONS}
    moves -= {f"{state.value} --> Dead" for state in GroupState}
    durable = {f"[*] --> {state.value}" for state in GROUP_DURABLE_STATES}
    assert sorted(arrows) == sorted(moves | durable | {"Dead --> [*]"})
