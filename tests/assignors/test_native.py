"""The compiled part of the assignors: the answers of the Python that it stands in for, and no crash.

Covers: assignors/_native.pyx.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import (
    Member,
    RackPreference,
    StickyAssignor,
    TopicInfo,
    _balanced_loads,
    _min_cost_flow,
    _ownership,
)
from kohort.assignors._balanced_loads import _Search, balanced_loads
from kohort.assignors._group import IndexedGroup
from kohort.assignors._min_cost_flow import Preferences, fewest_moves
from kohort.assignors._owned_partitions import OwnedPartitions, OwnedPartitionsReader
from kohort.assignors.user_data import encode_sticky
from kohort.protocol import Subscription, TopicPartition
from tests.leaks import require_no_leak
from tests.native_parts import needs_native

pytestmark = needs_native("assignors")


@contextmanager
def in_python() -> Iterator[None]:
    """In the block, loads, moves and ownership are Python's."""
    with (
        patch.object(_ownership, "NATIVE", False),
        patch.object(_balanced_loads, "NATIVE", False),
        patch.object(_min_cost_flow, "NATIVE", False),
    ):
        yield


@st.composite
def groups(draw: st.DrawFn) -> IndexedGroup:
    topics = {f"t{i}": TopicInfo(draw(st.integers(0, 40))) for i in range(draw(st.integers(1, 8)))}
    members = {
        f"m{i}": Member(f"m{i}", Subscription(tuple(draw(st.sets(st.sampled_from(list(topics)))))))
        for i in range(draw(st.integers(1, 10)))
    }
    return IndexedGroup.of(topics, members)


@given(groups())
def test_balanced_loads_are_those_of_python(group: IndexedGroup) -> None:
    assert balanced_loads(group) == _Search(group).run()


@given(
    groups(),
    st.randoms(use_true_random=False),
    st.booleans(),
    st.sampled_from([0, 0, 1, 3, 10**6, 2**40]),
    st.booleans(),
)
def test_fewest_moves_are_those_of_python(
    group: IndexedGroup, rnd: random.Random, racks_first: bool, slack: int, in_racks: bool
) -> None:
    own = [[0] * len(group.member_ids) for _ in group.topics]
    for row, members, count in zip(own, group.subscribers, group.partition_counts, strict=True):
        for _ in range(rnd.randint(0, count)):
            row[rnd.choice(members)] += 1
    elsewhere = [
        frozenset(m for m in members if in_racks and rnd.random() < 0.5) for members in group.subscribers
    ]
    preferences = Preferences(elsewhere, racks_first, slack)
    blocks = balanced_loads(group).blocks
    answer = fewest_moves(group, own, blocks, preferences)
    with in_python():
        assert fewest_moves(group, own, blocks, preferences) == answer


def random_group(rnd: random.Random) -> tuple[dict[str, TopicInfo], dict[str, Member]]:
    topics = {}
    for i in range(rnd.randint(1, 12)):
        count = rnd.randint(0, 30)
        replicas = tuple(frozenset({f"r{rnd.randint(0, 2)}"}) for _ in range(count))
        topics[f"t{i}"] = TopicInfo(count, replicas if rnd.random() < 0.5 else ())
    members = {}
    for i in range(rnd.randint(1, 25)):
        owned = {
            TopicPartition(rnd.choice([*topics, "gone"]), rnd.randint(-1, 31))
            for _ in range(rnd.randint(0, 30))
        }
        data = encode_sticky(owned, rnd.randint(3, 5))
        data = data[: rnd.randint(0, len(data))] if rnd.random() < 0.1 else data
        mine = tuple(rnd.sample(list(topics), rnd.randint(0, len(topics))))
        members[f"m{i}"] = Member(f"m{i}", Subscription(mine, data, rack=rnd.choice([None, "r0", "r1"])))
    return topics, members


@pytest.mark.parametrize("seed", range(20))
def test_assignments_are_those_of_python(seed: int) -> None:
    rnd = random.Random(seed)
    for _ in range(20):
        topics, members = random_group(rnd)
        assignor = StickyAssignor(racks=rnd.choice(list(RackPreference)), slack=rnd.choice([0, 0, 1]))
        answer = assignor.assign(topics, members)
        with in_python():
            assert assignor.assign(topics, members) == answer


@given(st.data())
def test_damaged_claims_are_read_as_python_reads_them(data: st.DataObject) -> None:
    native, python = OwnedPartitionsReader(native=True), OwnedPartitionsReader(native=False)
    whole = encode_sticky([TopicPartition("t", 1), TopicPartition("t", 2), TopicPartition("uu", 3)], 7)
    for _ in range(4):
        sent = bytearray(whole)
        for _ in range(data.draw(st.integers(0, 3))):
            sent[data.draw(st.integers(0, len(sent) - 1))] = data.draw(
                st.sampled_from([0, 1, 3, 127, 128, 255])
            )
        cut = bytes(sent[: data.draw(st.integers(len(sent) - 8, len(sent)))])
        assert native.sticky(cut) == python.sticky(cut)


PLAIN = IndexedGroup(["a", "b"], ["t", "u"], [4, 3], [[0, 1], [0, 1]], [[0, 1], [0, 1]])
NOTHING = OwnedPartitions((), b"", -1)


@pytest.mark.parametrize(
    "layout",
    [(("t", 9),), (("t", -1), ("u", 9)), (("t", 2**62), ("u", 2**62)), (("x", 1), ("t", 1), ("t", 1))],
)
def test_a_layout_that_promises_more_numbers_than_there_are_is_cut_short(layout: Any) -> None:
    from kohort.assignors._native import NativeOwnership

    claim = OwnedPartitions(layout, b"\0\0\0\1\0\0\0", 1)
    NativeOwnership(PLAIN, [claim, NOTHING]).assignment()


@pytest.mark.parametrize(
    ("slices", "own", "given_units", "error"),
    [
        ([(0, range(4))], [0, 0], {0: 3, 1: 3}, ValueError),
        ([(0, range(4))], [0, 0], {0: 1}, ValueError),
        ([(0, range(9))], [0, 0], {0: 9}, IndexError),
        ([(0, range(-2, 2))], [0, 0], {0: 4}, IndexError),
        ([(0, range(0, 4, 2))], [0, 0], {0: 2}, IndexError),
        ([(0, [0, 7])], [0, 0], {0: 2}, IndexError),
        ([(0, [0, -1])], [0, 0], {0: 2}, IndexError),
        ([(5, [0, 1])], [5, 0], {0: 1, 1: 1}, IndexError),
        ([(1, [0, 1])], [5, 0], {0: 1, 1: 1}, IndexError),
        ([(0, range(4))], [0, 0], {2: 4}, IndexError),
        ([(0, range(4))], [0, 0], {-1: 4}, IndexError),
        ([(0, range(4))], [0], {1: 4}, IndexError),
        ([(0, range(4))], [0, 0], {0: -4, 1: 8}, IndexError),
        ([(0, range(4))], [0, 0], {0: 2**70}, OverflowError),
        ([(0, ["x"])], [0, 0], {0: 1}, TypeError),
    ],
)
def test_what_does_not_fit_the_group_is_refused(
    slices: Any, own: list[int], given_units: dict[int, int], error: type[Exception]
) -> None:
    from kohort.assignors._native import NativeOwnership

    with pytest.raises(error):
        NativeOwnership(PLAIN, [NOTHING, NOTHING]).distribute(slices, own, given_units)


@pytest.mark.parametrize(
    "group",
    [
        IndexedGroup(["a"], ["t"], [1], [[1]], [[0]]),
        IndexedGroup(["a"], ["t"], [1], [[-1]], [[0]]),
        IndexedGroup(["a"], ["t"], [1], [[]], [[]]),
        IndexedGroup(["a"], ["t"], [-1], [[0]], [[0]]),
        IndexedGroup(["a", "b"], ["t"], [1], [[1, 0]], [[0], [0]]),
        IndexedGroup(["a"], ["t"], [1], [], [[0]]),
        IndexedGroup(["a"], ["t"], [], [[0]], [[0]]),
    ],
)
def test_a_group_that_contradicts_itself_is_refused(group: IndexedGroup) -> None:
    from kohort.assignors._native import balanced, least_moves

    with pytest.raises(ValueError, match=r"group|subscribers"):
        balanced(group)
    with pytest.raises(ValueError, match=r"group|subscribers"):
        least_moves(group, [[1]], [([0], 1, 1, 1)], [], True, 0)


@pytest.mark.parametrize(
    ("own", "blocks", "elsewhere"),
    [
        ([[1, 0]], [([0, 1], 3, 4, 7)], []),
        ([[1], [0]], [([0, 1], 3, 4, 7)], []),
        ([[1, 0], [0, 0]], [([0, 2], 3, 4, 7)], []),
        ([[1, 0], [0, 0]], [([0, -1], 3, 4, 7)], []),
        ([[1, 0], [0, 0]], [([0, 1, 1], 3, 4, 7)], []),
        ([[1, 0], [0, 0]], [([0, 1], 3, 4, 7)], [frozenset({2})]),
        ([[1, 0], [0, 0]], [([0, 1], 3, 4, 7)], [frozenset(), frozenset(), frozenset({0})]),
        ([[1, 0], [0, 0]], [([0, 1], 1, 1, 2)], []),
    ],
)
def test_counts_that_do_not_fit_the_group_are_refused(own: Any, blocks: Any, elsewhere: Any) -> None:
    from kohort.assignors._native import least_moves

    with pytest.raises((ValueError, IndexError, AssertionError)):
        least_moves(PLAIN, own, blocks, elsewhere, True, 0)


def test_no_memory_stays_behind() -> None:
    rnd = random.Random(5)
    groups = [random_group(rnd) for _ in range(6)]
    kept = [name for topics, _ in groups for name in topics] + [*groups]

    def work() -> None:
        for topics, members in groups:
            StickyAssignor(slack=1).assign(topics, members)
            StickyAssignor(racks=RackPreference.IGNORED).assign(topics, members)

    require_no_leak(work, kept, 30)
