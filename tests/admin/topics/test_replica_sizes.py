"""Sizes of replicas: those that brokers tell, and why others do not."""

from __future__ import annotations

from typing import Any, cast

from kohort.admin.topics.replica_sizes import read_replica_sizes
from kohort.client import BrokerConnectionError, Cluster
from kohort.protocol import ErrorCode, TopicPartition
from kohort.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kohort.testing import running_broker

ORDERS = TopicPartition("orders", 0)


class Answering:
    """Brokers that answer as a test says."""

    def __init__(self, answers: dict[int, object]) -> None:
        self._answers = answers

    async def request(self, node_id: int, *_: object) -> object:
        answer = self._answers[node_id]
        if isinstance(answer, Exception):
            raise answer
        return answer


def told(*partitions: DescribeLogDirsPartition) -> DescribeLogDirsResponse:
    topics = [DescribeLogDirsTopic("orders", partitions)]
    return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="/data", topics=topics)])


async def test_a_broker_that_does_not_tell_hides_no_other() -> None:
    cluster = Answering(
        {
            # being moved to another log dir: it counts once
            1: told(DescribeLogDirsPartition(0, 100), DescribeLogDirsPartition(0, 40, is_future_key=True)),
            2: BrokerConnectionError("b:1", "away"),
            3: DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            # a broker before version 3 that refuses
            4: DescribeLogDirsResponse(),
        }
    )
    found = await read_replica_sizes(cast(Any, cluster), [1, 2, 3, 4])
    assert found.bytes_of == {ORDERS: {1: 100}}
    assert (found.size_at(ORDERS, 1), found.size_at(ORDERS, 2), found.size_at(ORDERS, None)) == (
        100,
        None,
        None,
    )
    assert found.size_at(TopicPartition("orders", 9), 1) is None
    assert sorted(found.errors) == [2, 3, 4]
    for refused in (3, 4):
        assert "ask for the right to DESCRIBE" in str(found.errors[refused])


async def test_sizes_of_the_wanted_partitions_are_told() -> None:
    with running_broker() as broker:
        async with Cluster(broker.bootstrap) as cluster:
            await cluster.create_topics({"orders": 2, "other": 1})
            broker.produce("orders", ["a record"], partition=0)
            nodes = list(cluster.known_metadata.nodes)
            wanted = await read_replica_sizes(cluster, nodes, {"orders": [0]})
            everything = await read_replica_sizes(cluster, nodes)
    assert list(wanted.bytes_of) == [ORDERS]
    assert wanted.size_at(ORDERS, nodes[0])
    assert {place.topic for place in everything.bytes_of} >= {"orders", "other"}
