"""ZooKeeper servers that the tests of a worker share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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
