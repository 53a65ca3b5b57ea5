"""Balanced loads: water level, blocks, and proof that no path leads from a load to one lower by two."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import Member, TopicInfo
from kohort.assignors._balanced_loads import balanced_loads, bits_of, water_level
from kohort.assignors._group import IndexedGroup
from kohort.protocol import Subscription


def group_of(counts: dict[str, int], wanted: dict[str, str]) -> IndexedGroup:
    topics = {topic: TopicInfo(count) for topic, count in counts.items()}
    members = {name: Member(name, Subscription(tuple(of.split()))) for name, of in wanted.items()}
    return IndexedGroup.of(topics, members)


def loads_of(group: IndexedGroup, given: list[list[int]]) -> list[int]:
    return [sum(row[m] for row in given) for m in range(len(group.member_ids))]


def improving_path_exists(group: IndexedGroup, given: list[list[int]]) -> bool:
    """Plain search from every member: can a unit travel to a load that is lower by two?"""
    loads = loads_of(group, given)
    for start in group.active:
        seen, todo = {start}, [start]
        while todo:
            m = todo.pop()
            for t in group.wanted[m]:
                if given[t][m]:
                    fresh = set(group.subscribers[t]) - seen
                    seen |= fresh
                    todo.extend(fresh)
        if any(loads[start] >= loads[m] + 2 for m in seen):
            return True
    return False


@pytest.mark.parametrize(
    ("loads", "units", "expected"),
    [
        ([0, 0, 0], 7, {0: 3, 1: 2, 2: 2}),
        ([5, 0, 3], 4, {1: 4}),
        ([5, 0, 3], 6, {1: 5, 2: 1}),
        ([9, 9], 1, {0: 1}),
        ([1, 2], 0, {}),
    ],
)
def test_units_are_poured_like_water(loads: list[int], units: int, expected: dict[int, int]) -> None:
    poured = water_level(loads, list(range(len(loads))), units)
    assert {m: gets for m, gets in poured if gets} == expected


def test_bits_come_lowest_first() -> None:
    assert list(bits_of(0b1010_0001 | 1 << 100)) == [0, 5, 7, 100]


def test_members_that_cannot_share_form_blocks() -> None:
    group = group_of({"big": 9, "small": 3}, {"a": "big", "b": "big", "c": "big small", "d": "small"})
    blocks = [(block.members, block.low, block.high, block.total) for block in balanced_loads(group).blocks]
    assert blocks == [([0, 1, 2, 3], 3, 3, 12)]
    group = group_of({"big": 9, "small": 3}, {"a": "big", "b": "big", "c": "small", "d": "small", "idle": ""})
    blocks = [(block.members, block.low, block.high, block.total) for block in balanced_loads(group).blocks]
    assert blocks == [([0, 1], 4, 5, 9), ([2, 3], 1, 2, 3)]


def test_units_travel_along_chains_of_members() -> None:
    # pouring each topic by itself cannot see that b has to make room for a by way of c
    counts = {"ab": 6, "bc": 6, "cd": 6, "de": 0}
    group = group_of(counts, {"a": "ab", "b": "ab bc", "c": "bc cd", "d": "cd", "e": "ab"})
    best = balanced_loads(group)
    assert sorted(loads_of(group, best.given)) == [3, 3, 4, 4, 4]


def test_a_long_chain_of_members_is_levelled_all_along() -> None:
    # each shares one topic with the next: units are passed on from end to end, which no pouring finishes
    names = [f"m{i:02}" for i in range(11)]
    wanted = {name: " ".join(f"t{t}" for t in (i - 1, i) if 0 <= t < 10) for i, name in enumerate(names)}
    group = group_of({f"t{t}": 10 for t in range(10)}, wanted)
    assert sorted(loads_of(group, balanced_loads(group).given)) == [9] * 10 + [10]


def test_what_a_member_has_been_passed_can_be_passed_on() -> None:
    # a unit travels over a member that held nothing of that topic before
    wanted = ["a b c d", "d", "e", "c e d", "b", "a", "b", "e", "c", "a"]
    group = group_of(
        {"a": 2, "b": 3, "c": 1, "d": 2, "e": 2}, {f"m{i}": topics for i, topics in enumerate(wanted)}
    )
    assert not improving_path_exists(group, balanced_loads(group).given)


def test_many_sparse_groups_are_levelled() -> None:
    rnd = random.Random(5)
    for _ in range(150):
        counts = {f"t{i:02}": rnd.randint(0, 8) for i in range(20)}
        wanted = {f"m{i:02}": " ".join(t for t in counts if rnd.random() < 0.15) for i in range(20)}
        group = group_of(counts, wanted)
        assert not improving_path_exists(group, balanced_loads(group).given)


@st.composite
def groups(draw: st.DrawFn) -> IndexedGroup:
    counts = {f"t{i}": draw(st.integers(0, 20)) for i in range(draw(st.integers(1, 9)))}
    some_topics = st.sets(st.sampled_from(sorted(counts)), max_size=3)
    wanted = {f"m{i:02}": " ".join(draw(some_topics)) for i in range(draw(st.integers(1, 12)))}
    return group_of(counts, wanted)


@given(groups())
def test_no_improving_path_is_left(group: IndexedGroup) -> None:
    given = balanced_loads(group).given
    assert [sum(row) for row in given] == group.partition_counts
    for t, row in enumerate(given):
        assert all(m in group.subscribers[t] for m, units in enumerate(row) if units)
    assert not improving_path_exists(group, given)


@given(groups())
def test_blocks_hold_every_active_member_once_at_their_loads(group: IndexedGroup) -> None:
    best = balanced_loads(group)
    loads = loads_of(group, best.given)
    assert sorted(m for block in best.blocks for m in block.members) == group.active
    for block in best.blocks:
        assert {loads[m] for m in block.members} <= {block.low, block.high}
        assert sum(loads[m] for m in block.members) == block.total
