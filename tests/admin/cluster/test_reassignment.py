"""Plans for replicas of a broker that is to have none.

Covers: admin/cluster/reassignment.py.
"""

from __future__ import annotations

import pytest

from kohort.admin.cluster.reassignment import without_broker
from kohort.client import ConfigError
from kohort.protocol import TopicPartition

NO_RACKS = dict.fromkeys(range(1, 6))


def place(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, number)


def test_others_take_its_places_evenly_as_leaders_and_as_followers() -> None:
    there = {place(n): [1, 2] if n % 2 == 0 else [2, 1] for n in range(8)}
    found = without_broker(there, there, 1, [2, 3, 4], NO_RACKS)
    assert [found[place(n)] for n in range(4)] == [[3, 2], [2, 4], [4, 2], [2, 3]]
    held = [each for replicas in found.values() for each in replicas or ()]
    assert [held.count(each) for each in (1, 2, 3, 4)] == [0, 8, 4, 4]
    first = [(replicas or [0])[0] for replicas in found.values()]
    assert [first.count(each) for each in (2, 3, 4)] == [4, 2, 2]


def test_a_rack_that_the_partition_does_not_have_comes_first() -> None:
    racks = {1: "a", 2: "b", 3: "b", 4: "c"}
    # 4 has more replicas already
    there = {place(0): [2, 1], place(1): [4, 3], place(2): [4, 3], place(3): [4]}
    assert without_broker(there, [place(0)], 1, [2, 3, 4], racks) == {place(0): [2, 4]}


def test_with_fewer_replicas_none_takes_its_place() -> None:
    there = {place(0): [1, 2, 3], place(1): [3, 1], place(2): [1]}
    found = without_broker(there, there, 1, [2, 3], NO_RACKS, 2)
    assert found == {place(0): [2, 3], place(1): [3, 2], place(2): [2]}


def test_a_partition_on_all_brokers_cannot_leave_one() -> None:
    with pytest.raises(ConfigError, match=r"t-0 has 3 replicas.*start one, or lower --replication-factor"):
        without_broker({place(0): [1, 2, 3]}, [place(0)], 1, [2, 3], NO_RACKS)
