"""Each client library in turn, and Apache Kafka's tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.drivers import DRIVERS, Driver
from tests.clients.java import ToolServer


@pytest.fixture(params=list(DRIVERS))
def driver(request: pytest.FixtureRequest) -> Driver:
    """Each client library in turn."""
    return DRIVERS[request.param]


@pytest.fixture(scope="session")
def run_tool(bootstrap: str) -> Iterator[ToolServer]:
    """``run_tool(TOPIC_COMMAND, "--list")``: what it printed; AssertionError when it failed."""
    server = ToolServer(bootstrap)
    try:
        yield server
    finally:
        server.close()
