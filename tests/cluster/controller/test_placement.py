"""Where replicas go: spread over brokers and racks."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.cluster import BrokerRegistration
from kohort.cluster.controller import place_replicas
from kohort.protocol import ErrorCode, KafkaError


def brokers(count: int, racks: int = 0) -> dict[int, BrokerRegistration]:
    return {n: BrokerRegistration(n, f"r{n % racks}" if racks else None) for n in range(count)}


@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 3), st.data())
def test_leaders_and_replicas_are_spread_over_brokers_and_racks(
    count: int, partitions: int, racks: int, data: st.DataObject
) -> None:
    there = brokers(count, racks)
    factor = data.draw(st.integers(1, count))
    placed = place_replicas(there, partitions, factor)
    assert all(len(set(replicas)) == len(replicas) == factor for replicas in placed)
    leaders = Counter(dict.fromkeys(there, 0))
    leaders.update(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.values()) <= 1
    held = Counter(dict.fromkeys(there, 0))
    held.update(node for replicas in placed for node in replicas)
    if not racks or count % racks == 0:
        assert max(held.values()) - min(held.values()) <= 2
    if racks:
        for replicas in placed:
            spread = Counter(there[node].rack for node in replicas)
            assert len(spread) == min(factor, racks, count)


def test_leaders_of_twelve_partitions_on_three_brokers_are_four_each() -> None:
    placed = place_replicas(brokers(3), 12, 3)
    assert Counter(replicas[0] for replicas in placed) == {0: 4, 1: 4, 2: 4}


def test_who_follows_a_broker_changes_so_that_its_loss_is_shared() -> None:
    placed = place_replicas(brokers(6), 60, 2)
    followers = {replicas[1] for replicas in placed if replicas[0] == 0}
    assert followers == {1, 2, 3, 4, 5}


def test_topics_of_one_partition_take_turns() -> None:
    led: Counter[int] = Counter()
    for _ in range(9):
        led.update([place_replicas(brokers(3), 1, 1, led=led)[0][0]])
    assert led == {0: 3, 1: 3, 2: 3}


def test_neighbours_are_of_different_racks() -> None:
    racks = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
    there = {node: BrokerRegistration(node, rack) for node, rack in racks.items()}
    placed = place_replicas(there, 6, 2)
    assert all(racks[first] != racks[second] for first, second in placed)
    assert [racks[replicas[0]] for replicas in placed] == ["a", "b", "a", "b", "a", "b"]


def test_new_partitions_go_on_where_those_before_them_ended() -> None:
    first = place_replicas(brokers(3), 4, 2)
    more = place_replicas(brokers(3), 5, 2, before=first)
    leaders = Counter(replicas[0] for replicas in (*first, *more))
    assert set(leaders.values()) == {3}


@pytest.mark.parametrize("factor", [0, 4])
def test_more_replicas_than_brokers_are_refused(factor: int) -> None:
    with pytest.raises(KafkaError, match="is not possible with 3 brokers") as refused:
        place_replicas(brokers(3), 1, factor)
    assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
