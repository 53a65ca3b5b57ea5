"""The moves of share groups, and what is drawn of them."""

from __future__ import annotations

from kohort.statemachine import SHARE_GROUP_MOVES, ShareGroupState, share_group_diagram

EMPTY, STABLE, DEAD = ShareGroupState


def test_a_move_is_in_its_table_once() -> None:
    assert len({(row.source, row.target) for row in SHARE_GROUP_MOVES}) == len(SHARE_GROUP_MOVES)


def test_dead_is_final_and_reached_from_everywhere() -> None:
    assert {row.source for row in SHARE_GROUP_MOVES if row.target is DEAD} == set(ShareGroupState)
    assert {row.target for row in SHARE_GROUP_MOVES if row.source is DEAD} == {DEAD}


def test_the_diagram_draws_each_move_between_living_states_once() -> None:
    arrows = [line for line in share_group_diagram().splitlines() if "-->" in line and "[*]" not in line]
    assert len(set(arrows)) == len([row for row in SHARE_GROUP_MOVES if row.target is not DEAD]) == 2
    assert "    Stable --> Empty: the last member leaves, or its session expires" in arrows
