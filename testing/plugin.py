"""pytest plug-in: the fixtures ``kohort_broker``, ``kohort_cluster`` and ``kohort_service``.

Loaded by pytest in every project that has kohort installed, so it imports nothing but pytest until the
fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ._running_broker import RunningBroker
    from ._running_cluster import RunningCluster
    from ._services import ServiceRun

    RunService = Callable[..., ServiceRun]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "kohort_broker(**settings): settings of the fixture's broker, Kafka's names with underscores",
    )
    config.addinivalue_line(
        "markers",
        "kohort_cluster(brokers, racks, **settings): number, racks and settings of the fixture's brokers",
    )


@pytest.fixture
def kohort_broker(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    """A broker for this test alone: connect any Kafka client to ``kohort_broker.bootstrap``.

    ``@pytest.mark.kohort_broker(num_partitions=3)`` sets its settings.
    """
    from ._running import running_broker

    marker = request.node.get_closest_marker("kohort_broker")
    with running_broker(**(marker.kwargs if marker else {})) as broker:
        yield broker


@pytest.fixture
def kohort_cluster(request: pytest.FixtureRequest) -> Iterator[RunningCluster]:
    """A cluster of three brokers for this test alone, which it can kill, cut off and pause.

    ``@pytest.mark.kohort_cluster(brokers=5, num_partitions=3)`` sets their number and their settings.
    """
    from ._running_cluster import running_cluster

    marker = request.node.get_closest_marker("kohort_cluster")
    with running_cluster(**(marker.kwargs if marker else {})) as cluster:
        yield cluster


@pytest.fixture
def kohort_service(kohort_broker: RunningBroker) -> RunService:
    """``kohort_service(service, {"orders": [...]})`` runs a ConsumerService until the records are done.

    On the broker of ``kohort_broker``; see :func:`kohort.testing.run_service`.
    """
    from functools import partial

    from ._services import run_service

    return partial(run_service, kohort_broker)
