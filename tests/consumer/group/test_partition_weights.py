"""Weights measured by the leader: lag and throughput of a live group, and a cluster that does not answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import pytest

from kohort.assignors import BalancedByWeightAssignor, Measure
from kohort.consumer import Cluster
from kohort.consumer.events import BrokerUnavailable, Event, RebalanceCompleted
from kohort.consumer.group.partition_weights import measure_weights, tell_weights
from kohort.protocol import TopicPartition
from tests.consumer.members import Maker
from tests.waiting import until

pytestmark = pytest.mark.kafka

Name = Callable[[str], str]


@pytest.fixture
def uneven(bootstrap: str, new_topic: Callable[..., str]) -> str:
    """A topic whose partition 0 has 40 records of now, 1 to 3 have 10 each, and 4 has 20 of long ago."""
    from kafka import KafkaProducer

    topic = new_topic("uneven", partitions=5, retention_ms="-1")
    now = round(time.time() * 1_000)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for partition, count in enumerate((40, 10, 10, 10, 20)):
            for _ in range(count):
                when = 1_700_000_000_000 if partition == 4 else now
                producer.send(topic, b"value", partition=partition, timestamp_ms=when)
    return topic


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("throughput", {0: 40, 1: 10, 2: 10, 3: 10, 4: 0}), ("lag", {0: 40, 1: 3})],
)
async def test_lag_and_throughput(
    kind: Literal["lag", "throughput"], expected: dict[int, int], bootstrap: str, uneven: str, group: Name
) -> None:
    name = group("weights")
    partitions = [TopicPartition(uneven, number) for number in range(5)]
    async with Cluster(bootstrap) as cluster:
        await cluster.metadata([uneven])
        await cluster.commit(name, {partitions[0]: 0, partitions[1]: 7})
        weights = await measure_weights(cluster, name, Measure(kind), partitions)
    assert weights == {partitions[number]: weight for number, weight in expected.items()}


async def test_a_group_balances_by_what_its_leader_measured(member: Maker, uneven: str, group: Name) -> None:
    name = group("weights")
    assignor = "balanced-by-weight?weights=throughput,window_ms=600000"
    first = await member(uneven, group=name, assignor=assignor)
    await until(lambda: len(first.assignment()) == 5)
    second = await member(uneven, group=name, assignor=assignor)
    hot = frozenset({TopicPartition(uneven, 0)})
    await until(lambda: hot in (first.assignment(), second.assignment()))
    await until(lambda: len(first.assignment() | second.assignment()) == 5)
    rounds = [event for event in second.events.recent if isinstance(event, RebalanceCompleted)]
    assert {done.protocol for done in rounds} == {"balanced-by-weight"}
    assert len(rounds) == 2, "one to give up, one to take"


async def test_a_cluster_that_does_not_answer_stops_nobody() -> None:
    told: list[Event] = []
    assignor = BalancedByWeightAssignor("lag")
    cluster = Cluster("127.0.0.1:1", "test", default_api_timeout_ms=200)
    await tell_weights(assignor, cluster, "billing", ["orders"], told.append)
    assert [type(event) for event in told] == [BrokerUnavailable]
    await cluster.close()
