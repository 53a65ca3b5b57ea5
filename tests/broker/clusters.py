"""Clusters of brokers in one process, whose metadata are in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kohort.broker import Broker
from kohort.cluster import MetadataStore, PartitionState
from kohort.cluster.controller import NewTopic
from kohort.testing.memory_store import MemoryHome, MemoryStore
from tests.ports import free_port

SETTINGS: dict[str, Any] = {
    "replica.lag.time.max.ms": 1_500,
    "replica.fetch.wait.max.ms": 100,
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 3,
}


class Nodes:
    """Brokers by node id, and their sessions."""

    def __init__(self, home: MemoryHome, settings: dict[str, Any], data: Path | None = None) -> None:
        self.home = home
        self._data = data
        self.settings = {**SETTINGS, **settings}
        self.brokers: dict[int, Broker] = {}
        self._ports: dict[int, int] = {}
        self.stores: dict[int, MemoryStore] = {}

    async def start(self, node_id: int) -> Broker:
        async def open_store() -> MetadataStore:
            self.stores[node_id] = self.home.open()
            return self.stores[node_id]

        settings = {"broker.rack": f"rack-{node_id}", **self.settings, "node.id": node_id}
        data = None if self._data is None else self._data / str(node_id)
        # one that comes back is found where it was
        if node_id not in self._ports:
            self._ports[node_id] = free_port()
        broker = Broker(port=self._ports[node_id], settings=settings, open_store=open_store, data=data)
        await broker.start()
        self.brokers[node_id] = broker
        return broker

    async def kill(self, node_id: int) -> None:
        """As kill -9: the session ends a moment later."""
        await self.brokers.pop(node_id).kill()
        self.stores[node_id].expire()

    async def stop(self) -> None:
        for broker in list(self.brokers.values()):
            await broker.stop()
        self.brokers.clear()

    def bootstrap(self, without: Iterable[int] = ()) -> str:
        return ",".join(each.bootstrap for n, each in self.brokers.items() if n not in without)

    def any(self) -> Broker:
        return next(iter(self.brokers.values()))

    async def create(self, topic: str, partitions: int = 1, configs: dict[str, Any] | None = None) -> None:
        """Create a topic with three replicas, and wait until every broker knows it."""
        factor = min(3, len(self.brokers))
        plan = NewTopic(topic, partitions=partitions, replication_factor=factor, configs=configs or {})
        for broker in list(self.brokers.values()):
            cluster = broker.cluster
            assert cluster is not None
            if cluster.control.is_active:
                assert await broker.topics.carry_out([plan]) == {}
        await self.until(
            lambda: all(
                (found := broker.topics.get(topic)) is not None
                and all(state.leader >= 0 for state in found.partitions)
                for broker in self.brokers.values()
            )
        )

    def state(self, topic: str, partition: int = 0, *, at: int | None = None) -> PartitionState:
        """A partition's state as a broker sees it: any, or the one with the node id ``at``."""
        found = (self.any() if at is None else self.brokers[at]).topics.get(topic)
        assert found is not None
        return found.partitions[partition]

    async def until(self, is_so: Callable[[], Any], seconds: float = 30.0) -> None:
        async with asyncio.timeout(seconds):
            while not is_so():  # noqa: ASYNC110 - an image changes without an event for tests
                await asyncio.sleep(0.005)


async def in_sync(nodes: Nodes, topic: str = "orders", count: int = 3) -> None:
    """Wait until every partition of a topic has so many replicas in sync."""

    def is_so() -> bool:
        found = nodes.any().topics.get(topic)
        return found is not None and all(len(state.isr) == count for state in found.partitions)

    await nodes.until(is_so)


@asynccontextmanager
async def cluster(count: int = 3, *, data: Path | None = None, **settings: Any) -> AsyncIterator[Nodes]:
    nodes = Nodes(MemoryHome(), {name.replace("_", "."): value for name, value in settings.items()}, data)
    try:
        starts: list[Awaitable[Broker]] = [nodes.start(n) for n in range(1, count + 1)]
        await asyncio.gather(*starts)
        await nodes.until(
            lambda: all(
                len(broker.topics.image.brokers) == count and broker.topics.image.controller_id > 0
                for broker in nodes.brokers.values()
            )
        )
        yield nodes
    finally:
        await nodes.stop()
