"""Racks and slack: beside OR-tools, partition by partition, for every order of what comes first."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from kohort.assignors import (
    CooperativeStickyAssignor,
    GroupAssignment,
    Member,
    RackPreference,
    StickyAssignor,
    TopicInfo,
    explain_balance,
    validate_assignment,
)
from kohort.assignors.user_data import encode_sticky
from kohort.protocol import Subscription, TopicPartition

Topics = dict[str, TopicInfo]
Members = dict[str, Member]
#: What a mismatch, a move and a step of the load cost.
Weights = tuple[int, int, int]

BEFORE, AFTER, IGNORED = RackPreference.BEFORE_MOVES, RackPreference.AFTER_MOVES, RackPreference.IGNORED
#: Above any sum of costs that come later.
BIG = 1 << 14


def random_group(rnd: random.Random) -> tuple[Topics, Members]:
    racks = ["r0", "r1", "r2"]
    replicas = rnd.choice([1, 2])
    topics = {}
    for topic in [f"t{i}" for i in range(rnd.randint(1, 5))]:
        of_partitions = (frozenset(rnd.sample(racks, replicas)) for _ in range(rnd.randint(1, 9)))
        topics[topic] = TopicInfo(len(known := tuple(of_partitions)), known if rnd.random() < 0.9 else ())
    wants = rnd.choice([0.5, 1.0])
    members, owned = {}, dict[str, list[TopicPartition]]()
    names = [f"m{i}" for i in range(rnd.randint(1, 7))]
    holders = names if rnd.random() < 0.5 else names[: len(names) // 3 + 1]
    for topic, info in topics.items():
        for number in range(info.partition_count):
            if rnd.random() < 0.8:
                owned.setdefault(rnd.choice(holders), []).append(TopicPartition(topic, number))
    for name in names:
        wanted = tuple(topic for topic in topics if rnd.random() < wants)
        claims = tuple(owned.get(name, ()))
        rack = rnd.choice([*racks, "elsewhere", None])
        members[name] = Member(name, Subscription(wanted, encode_sticky(claims, 1), claims, 1, rack))
    return topics, members


def mismatch(info: TopicInfo, number: int, member: Member) -> bool:
    return bool(info.racks) and member.rack is not None and member.rack not in info.racks[number]


def cost(topics: Topics, members: Members, answer: GroupAssignment, weights: Weights) -> int:
    """What the answer costs: mismatches, partitions that are not kept, and squares of loads."""
    rack, move, load = weights
    total = 0
    for name, given in answer.items():
        owned = set(members[name].subscription.owned)
        total += load * len(given) ** 2
        total += sum(
            rack * mismatch(topics[t], n, members[name]) + move * ((t, n) not in owned) for t, n in given
        )
    return total


def least_cost(topics: Topics, members: Members, weights: Weights, slack: int | None) -> int:
    """OR-tools' optimum of :func:`cost`. With ``slack``, loads are bounded by those of best balance."""
    rack, move, load = weights
    names, arcs, supplies = list(members), list[tuple[int, int, int, int]](), dict[int, int]()
    sink, node = len(names), len(names) + 1
    for topic, info in topics.items():
        takers = [m for m, name in enumerate(names) if topic in members[name].topics]
        for number in range(info.partition_count if takers else 0):
            for m in takers:
                one = members[names[m]]
                price = rack * mismatch(info, number, one)
                price += move * ((topic, number) not in one.subscription.owned)
                arcs.append((node, m, 1, price))
            supplies[node], node = 1, node + 1
    bounds = {
        name: (limit.low, limit.high) for limit in explain_balance(topics, members) for name in limit.members
    }
    must = BIG**3  # a load below its bound costs more than all else
    for m, name in enumerate(names):
        low, high = bounds.get(name, (0, 0)) if slack is not None else (0, len(supplies))
        low, high = (low, high) if slack is None else (max(0, low - slack), high + slack)
        arcs += [(m, sink, 1, load * (2 * k + 1) - (must if k < low else 0)) for k in range(high)]
    flow = SimpleMinCostFlow()
    if not supplies:
        return 0
    flow.add_arcs_with_capacity_and_unit_cost(*np.array(arcs).T)
    for each, units in supplies.items():
        flow.set_node_supply(each, units)
    flow.set_node_supply(sink, -len(supplies))
    assert flow.solve() == flow.OPTIMAL
    least = sum(max(0, low - (slack or 0)) for low, _ in bounds.values()) if slack is not None else 0
    return int(flow.optimal_cost()) + must * least


ORDERS = {BEFORE: (BIG, 1, BIG**2), AFTER: (1, BIG, BIG**2), IGNORED: (0, 1, BIG)}
WITH_SLACK = {BEFORE: (BIG**2, BIG, 1), AFTER: (BIG, BIG**2, 1), IGNORED: (0, BIG, 1)}


@pytest.mark.parametrize("racks", list(RackPreference))
def test_balance_comes_first_then_racks_and_moves_in_the_order_that_is_set(racks: RackPreference) -> None:
    rnd = random.Random(881)
    for _ in range(150):
        topics, members = random_group(rnd)
        answer = StickyAssignor(racks=racks).assign(topics, members)
        assert validate_assignment(topics, members, answer) == []
        weights = ORDERS[racks]
        assert cost(topics, members, answer, weights) == least_cost(topics, members, weights, None)


@pytest.mark.parametrize("racks", list(RackPreference))
@pytest.mark.parametrize("slack", [1, 3])
def test_slack_saves_moves_within_its_bounds_and_keeps_what_balance_it_can(
    racks: RackPreference, slack: int
) -> None:
    rnd = random.Random(slack)
    for _ in range(100):
        topics, members = random_group(rnd)
        answer = StickyAssignor(racks=racks, slack=slack).assign(topics, members)
        assert validate_assignment(topics, members, answer) == []
        for limit in explain_balance(topics, members):
            loads = [len(answer[name]) for name in limit.members]
            assert limit.low - slack <= min(loads) <= max(loads) <= limit.high + slack
        weights = WITH_SLACK[racks]
        assert cost(topics, members, answer, weights) == least_cost(topics, members, weights, slack)


@pytest.mark.parametrize("slack", [0, 1])
@pytest.mark.parametrize("racks", list(RackPreference))
def test_two_rounds_are_enough_whatever_is_set_and_a_third_changes_nothing(
    racks: RackPreference, slack: int
) -> None:
    rnd = random.Random(429)
    for _ in range(60):
        topics, members = random_group(rnd)
        rounds = []
        for generation in (2, 3, 4):
            answer = CooperativeStickyAssignor(racks=racks, slack=slack).assign(topics, members)
            shuffled = dict(rnd.sample(list(members.items()), len(members)))
            assert CooperativeStickyAssignor(racks=racks, slack=slack).assign(topics, shuffled) == answer
            rounds.append(answer)
            members = {
                name: replace(
                    one,
                    subscription=replace(one.subscription, owned=tuple(answer[name]), generation=generation),
                )
                for name, one in members.items()
            }
        assert validate_assignment(topics, members, rounds[1]) == []
        assert all(set(rounds[0][name]) <= set(rounds[1][name]) for name in members)
        assert rounds[1] == rounds[2]


def one_topic(
    owned: dict[str, str], racks: dict[str, str | None], of_partitions: str
) -> tuple[Topics, Members]:
    topics = {"t": TopicInfo(len(of_partitions), tuple(frozenset({rack}) for rack in of_partitions))}
    members = {}
    for name, numbers in owned.items():
        claims = tuple(TopicPartition("t", int(number)) for number in numbers.split())
        members[name] = Member(name, Subscription(("t",), encode_sticky(claims, 1), claims, 1, racks[name]))
    return topics, members


@pytest.mark.parametrize(
    ("racks", "expected"),
    [
        (BEFORE, {"a": [0, 2], "b": [1, 3]}),
        (AFTER, {"a": [0, 1], "b": [2, 3]}),
        (IGNORED, {"a": [0, 1], "b": [2, 3]}),
    ],
)
def test_members_read_from_their_own_rack_where_that_is_set(
    racks: RackPreference, expected: dict[str, list[int]]
) -> None:
    topics, members = one_topic({"a": "0 1", "b": "2 3"}, {"a": "x", "b": "y"}, "xyxy")
    answer = StickyAssignor(racks=racks).assign(topics, members)
    assert {name: [number for _, number in given] for name, given in answer.items()} == expected


def test_slack_leaves_a_little_imbalance_alone() -> None:
    topics, members = one_topic({"a": "0 1 2", "b": "3"}, {"a": None, "b": None}, "xxxx")
    assert [len(given) for given in StickyAssignor(slack=1).assign(topics, members).values()] == [3, 1]
    assert [len(given) for given in StickyAssignor().assign(topics, members).values()] == [2, 2]


def test_slack_does_not_unbalance_what_nobody_owns() -> None:
    topics, members = one_topic({"a": "", "b": "", "c": ""}, {"a": None, "b": "x", "c": None}, "xxxxyyyy")
    assert sorted(len(given) for given in StickyAssignor(slack=2).assign(topics, members).values()) == [
        2,
        3,
        3,
    ]


def test_slack_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        CooperativeStickyAssignor(slack=-1)
