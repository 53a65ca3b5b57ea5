"""Followers that have to catch up are held back by throttles of their leaders, and their own (KIP-73)."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.partitions.partition import Partition
from kohort.protocol import build_batch
from tests.broker.clusters import Nodes, cluster, in_sync


def replica(nodes: Nodes, node_id: int) -> Partition:
    return nodes.brokers[node_id].topics.logs.partition("orders", 0)


@pytest.mark.parametrize("side", ["leader", "follower"])
async def test_a_replica_that_is_added_gets_no_more_than_the_rate_until_that_is_raised(side: str) -> None:
    settings: dict[str, Any] = {
        f"{side}.replication.throttled.rate": 1_000,
        "replica.fetch.max.bytes": 10_000,
        "replica.fetch.wait.max.ms": 10,
    }
    async with cluster(3, **settings) as nodes:
        await nodes.create("orders", 1, {f"{side}_replication_throttled_replicas": "*"})
        leader, follower, other = nodes.state("orders").replicas
        await nodes.kill(follower)
        await in_sync(nodes, count=2)
        records = bytes(build_batch([(None, b"x" * 9_000, ())], timestamp_ms=0))
        for _ in range(5):
            replica(nodes, leader).append(records, now_ms=0)
        # one that is in sync is not held back, but what it takes counts
        await nodes.until(lambda: replica(nodes, other).log_end_offset == 5)
        replicas = (await nodes.start(follower))._require_running()._replicas
        assert replicas is not None
        await nodes.until(lambda: leader in replicas._fetchers)
        # more often than it would have to, to have all
        await nodes.until(lambda: replicas._fetchers[leader]._turn > 10)
        assert replica(nodes, follower).log_end_offset < 5
        assert len(nodes.state("orders").isr) == 2
        for broker in nodes.brokers.values():
            live = broker._require_running().node.live
            await live.set(for_all=False, values={f"{side}_replication_throttled_rate": 1 << 40})
        await in_sync(nodes)
        assert replica(nodes, follower).log_end_offset == 5
