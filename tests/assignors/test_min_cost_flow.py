"""Fewest moves at best balance: brute force on small groups, no better cycle on larger ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest

from kohort.assignors import Member, StickyAssignor, TopicInfo
from kohort.assignors._balanced_loads import balanced_loads
from kohort.assignors._group import IndexedGroup
from kohort.assignors._min_cost_flow import fewest_moves
from kohort.assignors.user_data import encode_sticky
from kohort.protocol import Subscription, TopicPartition

Counts = list[list[int]]


def splits(units: int, among: list[int], size: int) -> Iterator[list[int]]:
    """Every way to give ``units`` to the members ``among``, as rows of ``size``."""
    if len(among) == 1:
        yield [units if m == among[0] else 0 for m in range(size)]
        return
    for first in range(units + 1):
        for row in splits(units - first, among[1:], size):
            row[among[0]] = first
            yield row


def score(group: IndexedGroup, own: Counts, given: Counts) -> tuple[list[int], int]:
    """Smaller is better: loads from the highest down, then moves."""
    loads = sorted((sum(row[m] for row in given) for m in group.active), reverse=True)
    moves = sum(
        max(0, o - x) for mine, row in zip(own, given, strict=True) for o, x in zip(mine, row, strict=True)
    )
    return loads, moves


def brute_force(group: IndexedGroup, own: Counts) -> tuple[list[int], int]:
    size = len(group.member_ids)
    ways = [
        list(splits(count, of, size))
        for count, of in zip(group.partition_counts, group.subscribers, strict=True)
    ]
    return min(score(group, own, list(given)) for given in product(*ways))


def random_group(
    rnd: random.Random, members: int, topics: int, partitions: int, wants: float = 0.6
) -> tuple[IndexedGroup, Counts]:
    """``wants``: chance that a member wants a topic. Each topic is owned by some of its subscribers only."""
    infos = {f"t{i:02}": TopicInfo(rnd.randint(1, partitions)) for i in range(rnd.randint(1, topics))}
    names = [f"m{i:02}" for i in range(rnd.randint(1, members))]
    wanted = {name: tuple(topic for topic in infos if rnd.random() < wants) for name in names}
    group = IndexedGroup.of(
        infos, {name: Member(name, Subscription(topics)) for name, topics in wanted.items()}
    )
    own = [[0] * len(group.member_ids) for _ in group.topics]
    for t, count in enumerate(group.partition_counts):
        owners = rnd.sample(group.subscribers[t], rnd.randint(1, len(group.subscribers[t])))
        for _ in range(count):
            if rnd.random() < 0.9:
                own[t][rnd.choice(owners)] += 1
    return group, own


@pytest.mark.parametrize("seed", range(8))
def test_small_groups_against_brute_force(seed: int) -> None:
    rnd = random.Random(seed)
    for _ in range(100):
        group, own = random_group(rnd, members=4, topics=3, partitions=4)
        given = fewest_moves(group, own, balanced_loads(group).blocks)
        assert score(group, own, given) == brute_force(group, own), (group, own)


@pytest.mark.parametrize(
    ("members", "topics", "partitions", "wants"),
    [(14, 6, 30, 0.6), (8, 6, 20, 0.4), (12, 12, 8, 0.2), (20, 20, 8, 0.15)],
)
def test_no_exchange_makes_fewer_moves_in_larger_groups(
    members: int, topics: int, partitions: int, wants: float
) -> None:
    rnd = random.Random(members)
    for _ in range(60):
        group, own = random_group(rnd, members, topics, partitions, wants)
        best = balanced_loads(group)
        given = fewest_moves(group, own, best.blocks)
        assert [sum(row) for row in given] == group.partition_counts
        assert score(group, own, given)[0] == score(group, own, best.given)[0]
        assert not has_better_cycle(group, own, given), (group, own)


def has_better_cycle(group: IndexedGroup, own: Counts, given: Counts) -> bool:
    """Bellman-Ford over all ways to pass a unit on: a cycle of negative cost would save a move.

    Members whose loads differ by one may also swap their loads.
    """
    loads = [sum(row[m] for row in given) for m in range(len(group.member_ids))]
    arcs: list[tuple[object, object, int]] = []
    for t, of in enumerate(group.subscribers):
        for m in of:
            x, o = given[t][m], own[t][m]
            arcs.append((("topic", t), m, -1 if x < o else 0))
            if x:
                arcs.append((m, ("topic", t), 1 if x <= o else 0))
    for m in group.active:
        arcs.append((m, ("level", loads[m]), 0))
        arcs.append((("level", loads[m] - 1), m, 0))
    distance: dict[object, int] = {node: 0 for arc in arcs for node in arc[:2]}
    for _ in range(len(distance) + 1):
        shorter = [
            (head, distance[tail] + cost)
            for tail, head, cost in arcs
            if distance[tail] + cost < distance[head]
        ]
        if not shorter:
            return False
        for head, value in shorter:
            distance[head] = min(distance[head], value)
    return True


def test_the_check_for_better_cycles_finds_one() -> None:
    group = IndexedGroup(["a", "b"], ["t", "u"], [1, 1], [[0, 1], [0, 1]], [[0, 1], [0, 1]])
    own = [[1, 0], [0, 1]]
    assert has_better_cycle(group, own, [[0, 1], [1, 0]])
    assert not has_better_cycle(group, own, own)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("wants", [0.6, 1.0], ids=["mixed", "uniform"])
def test_the_assignors_answer_is_the_best_of_all(seed: int, wants: float) -> None:
    rnd = random.Random(seed)
    for _ in range(60):
        infos = {f"t{i}": TopicInfo(rnd.randint(1, 4)) for i in range(rnd.randint(1, 3))}
        names = [f"m{i}" for i in range(rnd.randint(1, 4))]
        claims: dict[str, list[TopicPartition]] = {name: [] for name in names}
        for topic, info in infos.items():
            for number in range(info.partition_count):
                if rnd.random() < 0.8:
                    rnd.choice(list(claims.values())).append(TopicPartition(topic, number))
        wanted = {name: tuple(topic for topic in infos if rnd.random() < wants) for name in names}
        members = {
            name: Member(name, Subscription(wanted[name], encode_sticky(claims[name], 1))) for name in names
        }
        answer = StickyAssignor().assign(infos, members)
        group = IndexedGroup.of(infos, members)
        own = [
            [sum(p.topic == t for p in claims[m]) * (t in wanted[m]) for m in group.member_ids]
            for t in group.topics
        ]
        kept = sum(len(set(answer[name]) & set(claims[name])) for name in names)
        loads = sorted((len(answer[group.member_ids[m]]) for m in group.active), reverse=True)
        assert (loads, sum(map(sum, own)) - kept) == brute_force(group, own), (infos, claims, answer)
