"""ListGroups: what tools see."""

from __future__ import annotations

import pytest

from tests.coordinator.driver import World


@pytest.mark.row("3.11/all")
def test_every_group_with_its_type_and_state() -> None:
    world = World()
    world.stable()
    world.commit("s")
    world.new_member("new", type_="connect")
    world.crash()
    world.new_member("new", type_="connect")
    listed = [(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in world.list_groups()]
    assert sorted(listed) == [
        ("g", "consumer", "Stable", "classic"),
        ("new", "connect", "PreparingRebalance", "classic"),
        ("s", "", "Empty", "classic"),
    ]


@pytest.mark.row("3.11/filters", "3.1/ListGroups-v4", "3.1/ListGroups-v5")
@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        (["Stable"], [], ["g"]),
        ([" stable ", "EMPTY"], [], ["g", "s"]),
        (["nonsense"], [], []),
        ([], ["Classic"], ["g", "s"]),
        ([], [" classic "], []),
        ([], ["consumer"], []),
        (["Empty"], ["classic", "consumer"], ["s"]),
    ],
)
def test_filters_are_taken_without_regard_to_case(
    states: list[str], types: list[str], found: list[str]
) -> None:
    world = World()
    world.stable()
    world.commit("s")
    assert [g.group_id for g in world.list_groups(states, types)] == found
