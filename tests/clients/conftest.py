"""Each client library in turn."""

from __future__ import annotations

import pytest

from tests.clients.drivers import DRIVERS, Driver


@pytest.fixture(params=list(DRIVERS))
def driver(request: pytest.FixtureRequest) -> Driver:
    """Each client library in turn."""
    return DRIVERS[request.param]
