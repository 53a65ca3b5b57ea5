"""The member's life cycles, by protocol: every state with every trigger."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest

from kohort.statemachine import (
    CONSUMER_MEMBER,
    CONSUMER_MEMBER_TRANSITIONS,
    MEMBER,
    MEMBER_TRANSITIONS,
    IllegalTransitionError,
    LifeCycle,
    MemberState,
    MemberTrigger,
    Transition,
)

_Moves = tuple[Transition[MemberState, MemberTrigger], ...]
_Life = tuple[LifeCycle[MemberState, MemberTrigger], _Moves]
LIVES = {"classic": (MEMBER, MEMBER_TRANSITIONS), "consumer": (CONSUMER_MEMBER, CONSUMER_MEMBER_TRANSITIONS)}


@dataclass(slots=True)
class _Member:
    state: MemberState


@pytest.fixture(params=LIVES)
def life(request: pytest.FixtureRequest) -> _Life:
    return LIVES[request.param]


def _targets(moves: _Moves) -> dict[tuple[MemberState, MemberTrigger], MemberState]:
    return {(row.source, row.trigger): row.target for row in moves}


@pytest.mark.parametrize(("state", "trigger"), list(product(MemberState, MemberTrigger)))
def test_each_trigger_moves_as_the_table_says_or_raises_naming_both(
    life: _Life, state: MemberState, trigger: MemberTrigger
) -> None:
    member, (cycle, moves) = _Member(state), life
    if (target := _targets(moves).get((state, trigger))) is None:
        with pytest.raises(IllegalTransitionError, match=f"{state.value}.*{trigger.value}"):
            cycle.fire(member, trigger)
        assert member.state is state
    else:
        cycle.fire(member, trigger)
        assert member.state is target


def test_a_move_is_in_the_table_once(life: _Life) -> None:
    assert len(_targets(life[1])) == len(life[1])


@pytest.mark.parametrize(
    ("protocol", "triggers"),
    [
        ("classic", (MemberTrigger.JOIN, MemberTrigger.JOINED, MemberTrigger.SYNCED) * 2),
        (
            "consumer",
            (
                MemberTrigger.JOIN,
                MemberTrigger.JOINED,
                *(MemberTrigger.RECONCILED, MemberTrigger.ASSIGNED) * 2,
                MemberTrigger.RECONCILED,
            ),
        ),
    ],
)
def test_rebalances_end_in_stable(protocol: str, triggers: tuple[MemberTrigger, ...]) -> None:
    member = _Member(MemberState.UNJOINED)
    for trigger in triggers:
        LIVES[protocol][0].fire(member, trigger)
    assert member.state is MemberState.STABLE


def test_heartbeats_are_sent_only_with_a_generation() -> None:
    beating = {MemberState.COMPLETING, MemberState.RECONCILING, MemberState.STABLE}
    assert {state for state in MemberState if state.heartbeats} == beating


def test_failed_is_final(life: _Life) -> None:
    assert life[0].legal(MemberState.FAILED) == ()


def test_the_triggers_of_a_state_come_in_the_order_of_the_table(life: _Life) -> None:
    cycle, moves = life
    for state in MemberState:
        assert list(cycle.legal(state)) == [row.trigger for row in moves if row.source is state]


def test_the_diagram_has_every_state_of_its_protocol_and_every_move_but_the_note(life: _Life) -> None:
    cycle, moves = life
    diagram = cycle.diagram()
    assert all(row.source.value in diagram and row.target.value in diagram for row in moves)
    drawn = [row for row in moves if row.trigger is not MemberTrigger.FAIL]
    assert all(f"{row.source.value} --> {row.target.value}: {row.trigger.value}" in diagram for row in drawn)
