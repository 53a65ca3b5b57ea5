"""The member's life cycle: every state with every trigger."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest

from kohort.statemachine import (
    MEMBER_TRANSITIONS,
    IllegalTransitionError,
    MemberState,
    MemberTrigger,
    fire_member,
    legal_member_triggers,
    member_diagram,
)


@dataclass(slots=True)
class _Member:
    state: MemberState


_TARGETS = {(row.source, row.trigger): row.target for row in MEMBER_TRANSITIONS}


@pytest.mark.parametrize(("state", "trigger"), list(product(MemberState, MemberTrigger)))
def test_each_trigger_moves_as_the_table_says_or_raises_naming_both(
    state: MemberState, trigger: MemberTrigger
) -> None:
    member = _Member(state)
    if (target := _TARGETS.get((state, trigger))) is None:
        with pytest.raises(IllegalTransitionError, match=f"{state.value}.*{trigger.value}"):
            fire_member(member, trigger)
        assert member.state is state
    else:
        fire_member(member, trigger)
        assert member.state is target


def test_a_move_is_in_the_table_once() -> None:
    assert len(_TARGETS) == len(MEMBER_TRANSITIONS)


def test_a_rebalance_goes_through_preparing_and_completing() -> None:
    member = _Member(MemberState.UNJOINED)
    for trigger in (MemberTrigger.JOIN, MemberTrigger.JOINED, MemberTrigger.SYNCED) * 2:
        fire_member(member, trigger)
    assert member.state is MemberState.STABLE


def test_heartbeats_are_sent_only_with_a_generation() -> None:
    assert {s for s in MemberState if s.heartbeats} == {MemberState.COMPLETING, MemberState.STABLE}


def test_failed_is_final() -> None:
    assert legal_member_triggers(MemberState.FAILED) == ()


def test_the_triggers_of_a_state_come_in_the_order_of_the_table() -> None:
    for state in MemberState:
        expected = [row.trigger for row in MEMBER_TRANSITIONS if row.source is state]
        assert list(legal_member_triggers(state)) == expected


def test_the_diagram_has_every_state_and_every_move_but_the_note() -> None:
    diagram = member_diagram()
    assert all(state.value in diagram for state in MemberState)
    drawn = [row for row in MEMBER_TRANSITIONS if row.trigger is not MemberTrigger.FAIL]
    assert all(f"{row.source.value} --> {row.target.value}: {row.trigger.value}" in diagram for row in drawn)
