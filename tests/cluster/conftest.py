"""ZooKeeper servers that the tests of a worker share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from kohort.cluster import MetadataStore
from kohort.testing.memory_store import MemoryHome
from tests.cluster import servers


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[servers.ZooKeeper]:
    with servers.zookeeper() as running:
        yield running


@pytest.fixture(scope="session")
def ensemble() -> Iterator[servers.ZooKeeper]:
    with servers.zookeeper(3) as running:
        yield running


@pytest.fixture
def own_zookeeper() -> Iterator[servers.ZooKeeper]:
    """A server that a test may kill."""
    with servers.zookeeper() as running:
        yield running


@pytest.fixture(params=["memory", "threads", "zookeeper", "ensemble"])
def home(request: pytest.FixtureRequest) -> Callable[[], Awaitable[MetadataStore]]:
    """Opens one more session with a home that several brokers share."""
    memory = MemoryHome()

    async def in_memory() -> MetadataStore:
        return memory.open()

    async def in_thread() -> MetadataStore:
        return memory.open(asyncio.get_running_loop())

    if request.param == "memory":
        return in_memory
    if request.param == "threads":
        return in_thread
    running: servers.ZooKeeper = request.getfixturevalue(request.param)
    return running.home()
