"""balanced-by-weight: even by weight, within its tolerance and its budget of moves, always the same.

Covers: assignors/weights.py.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.assignors import (
    Assignor,
    BalancedByWeightAssignor,
    GroupAssignment,
    Measure,
    Member,
    RebalanceProtocol,
    TopicInfo,
    load_assignor,
    validate_assignment,
)
from kohort.protocol import Subscription, TopicPartition

Weights = Mapping[TopicPartition, float]


def member(
    name: str, topics: Sequence[str], owned: Sequence[TopicPartition] = (), generation: int = 1
) -> Member:
    return Member(name, Subscription(tuple(topics), None, tuple(owned), generation))


def parts(topic: str, *numbers: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


def loads(answer: GroupAssignment, weights: Weights) -> list[float]:
    return sorted(sum(weights.get(p, 1.0) for p in mine) for mine in answer.values())


def settle(
    make: Assignor, topics: Mapping[str, TopicInfo], members: Mapping[str, Member], rounds: int = 2
) -> GroupAssignment:
    """What the group has after at most so many rounds under one leader; each of them valid."""
    for generation in range(2, rounds + 2):
        answer = make.assign(topics, members)
        assert validate_assignment(topics, members, answer, RebalanceProtocol.COOPERATIVE) == []
        members = {m: member(m, members[m].topics, answer[m], generation) for m in members}
    assert sum(map(len, answer.values())) == sum(
        topics[t].partition_count for t in {t for m in members.values() for t in m.topics if t in topics}
    )
    return answer


HOT = {**dict.fromkeys(parts("t", *range(9)), 1.0), TopicPartition("t", 0): 8.0}


def test_a_hot_partition_gets_a_member_to_itself() -> None:
    members = {name: member(name, ["t"]) for name in ("a", "b")}
    answer = BalancedByWeightAssignor(HOT).assign({"t": TopicInfo(9)}, members)
    assert sorted(answer.values(), key=len) == [parts("t", 0), parts("t", *range(1, 9))]


@pytest.mark.parametrize(
    ("weights", "alone"),
    [
        ({"t": 1.0, "hot": 8.0}, parts("hot", 0)),
        (lambda partitions: {p: 8.0 if p.topic == "hot" else 1.0 for p in partitions}, parts("hot", 0)),
        ({"hot": 1.0, "t": 0.125}, parts("hot", 0)),
    ],
)
def test_weights_by_topic_and_by_function(weights: Any, alone: list[TopicPartition]) -> None:
    members = {name: member(name, ["t", "hot"]) for name in ("a", "b")}
    answer = BalancedByWeightAssignor(weights).assign({"t": TopicInfo(8), "hot": TopicInfo(1)}, members)
    assert alone in answer.values()


def test_unknown_partitions_weigh_the_mean_and_idle_ones_are_spread_too() -> None:
    topics, members = {"t": TopicInfo(40)}, {name: member(name, ["t"]) for name in "abcd"}
    assert {len(mine) for mine in BalancedByWeightAssignor().assign(topics, members).values()} == {10}
    some = BalancedByWeightAssignor({TopicPartition("t", 0): 5.0, TopicPartition("t", 1): 5.0})
    assert {len(mine) for mine in some.assign(topics, members).values()} == {10}
    idle = BalancedByWeightAssignor({TopicPartition("t", n): float(n < 4) for n in range(40)})
    assert {len(mine) for mine in idle.assign(topics, members).values()} == {10}


@pytest.mark.parametrize("unit", [5e-324, 1e-300, 1.0, 1e300, 1.7e308])
def test_any_unit_of_weight_will_do(unit: float) -> None:
    weights = {TopicPartition("t", number): unit for number in range(1, 8)}
    members = {name: member(name, ["t"]) for name in "ab"}
    answer = BalancedByWeightAssignor(weights).assign({"t": TopicInfo(8)}, members)
    assert {len(mine) for mine in answer.values()} == {4}


def test_owners_keep_what_is_within_the_tolerance() -> None:
    topics = {"t": TopicInfo(20)}
    members = {
        "a": member("a", ["t"], parts("t", *range(11))),
        "b": member("b", ["t"], parts("t", *range(11, 20))),
    }
    kept = BalancedByWeightAssignor(tolerance=0.2).assign(topics, members)
    assert kept == {"a": parts("t", *range(11)), "b": parts("t", *range(11, 20))}
    moved = settle(BalancedByWeightAssignor(tolerance=0.1), topics, members)
    assert {len(mine) for mine in moved.values()} == {10}


@pytest.mark.parametrize("moves", [0, 1, 3, 100])
def test_no_more_than_the_budget_is_taken_from_owners(moves: int) -> None:
    topics = {"t": TopicInfo(20)}
    members = {"a": member("a", ["t"], parts("t", *range(20))), "b": member("b", ["t"])}
    answer = settle(BalancedByWeightAssignor(moves=moves), topics, members)
    assert len(answer["b"]) == min(moves, 10)


def test_what_is_unowned_costs_no_moves() -> None:
    topics = {"t": TopicInfo(20)}
    members = {"a": member("a", ["t"], parts("t", *range(10))), "b": member("b", ["t"])}
    answer = settle(BalancedByWeightAssignor(moves=0), topics, members)
    assert answer == {"a": parts("t", *range(10)), "b": parts("t", *range(10, 20))}


def test_partitions_are_exchanged_where_none_alone_would_help() -> None:
    weights = dict(zip(parts("t", *range(4)), (7.0, 6.0, 5.0, 2.0), strict=True))
    members = {"a": member("a", ["t"], parts("t", 0, 1)), "b": member("b", ["t"], parts("t", 2, 3))}
    answer = settle(BalancedByWeightAssignor(weights, tolerance=0.0), {"t": TopicInfo(4)}, members)
    assert loads(answer, weights) == [9.0, 11.0] or loads(answer, weights) == [10.0, 10.0]


def test_the_second_round_goes_where_the_first_meant_to_whatever_weighs_what_by_then() -> None:
    topics, rnd = {"t": TopicInfo(30)}, random.Random(1)
    leader = BalancedByWeightAssignor(lambda ps: {p: rnd.uniform(0.5, 2) for p in ps})
    members = {"a": member("a", ["t"], parts("t", *range(30))), "b": member("b", ["t"])}
    first = leader.assign(topics, members)
    gone = set(parts("t", *range(30))) - set(first["a"])
    assert gone
    second = leader.assign(topics, {m: member(m, ["t"], first[m], 2) for m in members})
    assert (second["a"], set(second["b"])) == (first["a"], gone)


def test_an_eager_round_remembers_who_had_what() -> None:
    topics = {"t": TopicInfo(10)}
    had = {"a": parts("t", 0, 2, 4, 6, 8), "b": parts("t", 1, 3, 5, 7, 9)}
    members = {}
    for name, mine in had.items():
        assignor = BalancedByWeightAssignor()
        assignor.on_assignment(mine, 4)
        members[name] = Member(name, Subscription(("t",), assignor.user_data(["t"])))
    assert BalancedByWeightAssignor().assign(topics, members) == had


TOPICS = {"t": TopicInfo(9), "u": TopicInfo(4), "v": TopicInfo(1)}
ALL = [TopicPartition(t, n) for t, info in TOPICS.items() for n in range(info.partition_count)]


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, Member], dict[TopicPartition, float]]:
    names = [f"m{n}" for n in range(draw(st.integers(1, 5)))]
    wanted = {name: draw(st.sets(st.sampled_from(["t", "u", "v", "gone"]), max_size=3)) for name in names}
    weights = {p: draw(st.floats(0, allow_infinity=False)) for p in ALL if draw(st.booleans())}
    owners = {p: draw(st.sampled_from([*names, None])) for p in ALL}
    members = {
        name: member(
            name, sorted(wanted[name]), [p for p in ALL if owners[p] == name], draw(st.integers(-1, 3))
        )
        for name in names
    }
    return members, weights


@given(groups(), st.sampled_from([0.0, 0.05, 0.5]))
def test_it_settles_in_two_rounds_and_stays(
    group: tuple[dict[str, Member], dict[TopicPartition, float]], tolerance: float
) -> None:
    members, weights = group
    answer = settle(BalancedByWeightAssignor(weights, tolerance=tolerance), TOPICS, members)
    again = {m: member(m, members[m].topics, answer[m], 9) for m in reversed(members)}
    topics = dict(reversed(TOPICS.items()))
    later = BalancedByWeightAssignor(weights, tolerance=tolerance).assign(topics, again)
    assert {m: set(mine) for m, mine in later.items()} == {m: set(mine) for m, mine in answer.items()}


@given(st.lists(st.floats(1, 100), min_size=1, max_size=14), st.integers(1, 5))
def test_no_member_is_heavier_than_the_lightest_by_more_than_its_lightest_partition(
    heavy: list[float], count: int
) -> None:
    """Else that partition would have moved; but those within the tolerance need not."""
    weights = dict(zip(parts("t", *range(len(heavy))), heavy, strict=True))
    members = {f"m{n}": member(f"m{n}", ["t"]) for n in range(count)}
    tolerance = 0.01
    answer = BalancedByWeightAssignor(weights, tolerance=tolerance).assign(
        {"t": TopicInfo(len(heavy))}, members
    )
    sums = loads(answer, weights)
    slack = tolerance * sum(heavy) / count + 0.001
    for mine in answer.values():
        if noticed := [weights[p] for p in mine if weights[p] > slack]:
            lightest = min(noticed)
            assert sum(weights[p] for p in mine) - sums[0] <= lightest + 2 * slack


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"weights": "size"}, "weights 'size': give 'lag', 'throughput', a mapping or a function"),
        ({"weights": 3}, "weights 3: give 'lag'"),
        ({"moves": -1}, "moves is -1"),
        ({"moves": True}, "moves is True"),
        ({"tolerance": 1.5}, "tolerance is 1.5"),
        ({"tolerance": "low"}, "tolerance is 'low'"),
        ({"weights": "lag", "window_ms": 0}, "window_ms is 0"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        BalancedByWeightAssignor(**options)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), "heavy", [1]])
def test_a_weight_that_is_none_is_named(weight: Any) -> None:
    assignor = BalancedByWeightAssignor({TopicPartition("t", 1): weight})
    with pytest.raises(ValueError, match=r"the weight of t-1 is .*: give a number of 0 or more"):
        assignor.assign({"t": TopicInfo(2)}, {"a": member("a", ["t"])})


def test_settings_come_with_the_name() -> None:
    assignor = load_assignor("balanced-by-weight?weights=throughput,window_ms=60000,moves=3,tolerance=0.1")
    assert isinstance(assignor, BalancedByWeightAssignor)
    assert assignor.measure == Measure("throughput", 60_000)
    assignor.measured(HOT)
    members = {name: member(name, ["t"]) for name in ("a", "b")}
    assert parts("t", 0) in assignor.assign({"t": TopicInfo(9)}, members).values()
