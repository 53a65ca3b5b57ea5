"""Three brokers in one process: what they tell of each other.

Covers: broker/metadata/cluster_node.py, broker/metadata/topics.py.
Covers: broker/metadata/controller_client.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from kohort.client.cluster import Cluster
from tests.broker.clusters import cluster


def test_every_broker_tells_of_all_brokers_and_leaders_are_spread() -> None:
    async def run() -> None:
        async with cluster() as nodes:
            await nodes.create("orders", 6)
            for broker in nodes.brokers.values():
                async with Cluster(broker.bootstrap) as client:
                    known = await client.metadata(["orders"])
                addresses = {node_id: str(node.address) for node_id, node in known.nodes.items()}
                assert addresses == {n: each.bootstrap for n, each in nodes.brokers.items()}
                partitions = known.topics["orders"].partitions.values()
                assert Counter(each.leader for each in partitions) == {1: 2, 2: 2, 3: 2}
                assert all(sorted(each.replicas) == [1, 2, 3] for each in partitions)
                assert broker.cluster_id == nodes.any().cluster_id

    asyncio.run(run())


def test_a_broker_that_stops_leads_nothing_afterwards() -> None:
    async def run() -> None:
        async with cluster() as nodes:
            await nodes.create("orders", 6)
            await nodes.brokers.pop(2).stop()
            await nodes.until(
                lambda: all(
                    nodes.state("orders", n).leader in (1, 3) and 2 not in nodes.state("orders", n).isr
                    for n in range(6)
                )
            )

    asyncio.run(run())
