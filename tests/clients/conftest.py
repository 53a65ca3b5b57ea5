"""Each client library in turn, and Apache Kafka's tools."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from kohort.protocol import ApiKey
from tests.broker.wire import Wire
from tests.broker_process import QUICK_SETTINGS, BrokerProcess
from tests.clients.alike.consumer_groups import Side
from tests.clients.drivers import DRIVERS, Driver
from tests.kafka_python import HANGS

#: The cluster may have any: ours gets the same.
_POLICY = "group.consumer.migration.policy"


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


@pytest.fixture(scope="module")
def sides(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, Side]]:
    """The given cluster and a kohort beside it."""
    given: str | None = request.config.getoption("--bootstrap")
    if given is None:
        pytest.skip("compares kohort with the cluster of --bootstrap")
    with Wire(given, timeout_s=30) as wire:
        node = wire.call(ApiKey.METADATA, 12, topics=[], allow_auto_topic_creation=False).brokers[0].node_id
        asked = {"resource_type": 4, "resource_name": str(node), "configuration_keys": [_POLICY]}
        told = wire.call(
            ApiKey.DESCRIBE_CONFIGS, 4, resources=[asked], include_synonyms=False, include_documentation=False
        )
    policy = told.results[0].configs[0].value
    ours = BrokerProcess(
        tmp_path_factory.mktemp("compared"),
        data=None,
        settings={**QUICK_SETTINGS, _POLICY: policy},
    )
    ours.start()
    both = Side(given), Side(ours.bootstrap)
    try:
        yield both
    finally:
        for side in both:
            side.wire.close()
        ours.stop()
