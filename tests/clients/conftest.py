"""Each client library in turn, and Apache Kafka's tools."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kohort.protocol import ApiKey
from tests.broker.wire import Wire
from tests.broker_process import BrokerProcess
from tests.clients.drivers import DRIVERS, Driver
from tests.kafka_python import HANGS


@pytest.fixture(
    params=[pytest.param(name, marks=HANGS if name == "kafka-python" else ()) for name in DRIVERS]
)
def driver(request: pytest.FixtureRequest) -> Driver:
    """Each client library in turn."""
    return DRIVERS[request.param]


@pytest.fixture(scope="module")
def compared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """The cluster of ``--bootstrap`` and a kohort beside it; skips where none is given."""
    given: str | None = request.config.getoption("--bootstrap")
    if given is None:
        pytest.skip("compares kohort with the cluster of --bootstrap")
    ours = BrokerProcess(tmp_path_factory.mktemp("compared"), data=None)
    ours.start()
    try:
        with Wire(given, timeout_s=30) as wire:
            # one that was just started has no producer ids yet
            while wire.call(
                ApiKey.INIT_PRODUCER_ID, 0, transactional_id=None, transaction_timeout_ms=60_000
            ).error_code:
                time.sleep(0.1)
        yield given, ours.bootstrap
    finally:
        ours.stop()
