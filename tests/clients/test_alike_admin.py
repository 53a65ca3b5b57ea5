"""Requests about rules, configs, quotas and users, drawn by chance, are answered as by an Apache Kafka.

Two users ask for topics, records and groups meanwhile, and are let do, or not, what the drawn rules say.
"""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kohort.protocol import ApiKey
from tests.broker.security.logins import log_in_scram
from tests.broker.wire import Wire
from tests.clients.alike.admin_steps import (
    ADMIN,
    REQUESTS,
    USERS,
    draw,
    forgetting,
    request_of,
)
from tests.clients.alike.side import Side
from tests.clients.alike.step import take
from tests.secured import Secured, secured_broker

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

STEPS = 80
#: Apache Kafka's broker hears of its controller's changes a moment after the client has.
CHANGES = {ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS, *REQUESTS} - {
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.DESCRIBE_CLUSTER,
}
HEARD_S = 0.3


class SecuredSide(Side):
    """The admin comes by the listener that trusts everybody, each user logs in."""

    def __init__(self, broker: Secured, groups: list[str], topics: dict[str, Any]) -> None:
        super().__init__(broker.plain, 1 + len(USERS), groups, topics)
        self._broker = broker

    def connect(self, client: int) -> socket.socket:
        if client == ADMIN:
            return super().connect(client)
        wire = Wire(self._broker.sasl, timeout_s=20)
        assert log_in_scram(wire, USERS[client - 1]).error_code == 0
        return wire.socket


@pytest.fixture(scope="module")
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Secured]]:
    """An Apache Kafka of the test's own and a kohort, with the same listeners and users."""
    if request.config.getoption("--bootstrap") is None:
        pytest.skip("compares kohort with an Apache Kafka: --bootstrap says that there may be one")
    with (
        secured_broker(tmp_path_factory.mktemp("theirs"), apache_kafka=True) as theirs,
        secured_broker(tmp_path_factory.mktemp("ours"), apache_kafka=False) as ours,
    ):
        yield [theirs, ours]


@pytest.mark.parametrize("seed", range(16))
def test_what_is_drawn_is_answered_alike(both: list[Secured], seed: int) -> None:
    unique = uuid.uuid4().hex[:8]
    names = [(name, f"{name}-{unique}") for name in ("orders", "payments", "stock")]
    topics = {name: (real, uuid.UUID(int=number + 1)) for number, (name, real) in enumerate(names)}
    sides = [SecuredSide(broker, [f"{unique}-a", f"{unique}-b"], dict(topics)) for broker in both]
    for side in sides:
        _forget(side)
    told: list[str] = []
    try:
        for number, step in enumerate(draw(Random(seed), STEPS)):
            take(sides, number, step, request_of, told)
            if step.kind in CHANGES:
                time.sleep(HEARD_S)
    finally:
        for side in sides:
            side.close()


def _forget(side: SecuredSide) -> None:
    """The rules, settings, quotas and users of the sequence before."""
    with Wire(side.bootstrap, timeout_s=20) as wire:
        for key, version, fields in forgetting():
            wire.call(key, version, **fields)
        wanted = {"transactional_id": None, "transaction_timeout_ms": 60_000}
        while wire.call(ApiKey.INIT_PRODUCER_ID, 0, **wanted).error_code:
            time.sleep(HEARD_S)
        for group in side.groups:
            while wire.call(ApiKey.FIND_COORDINATOR, 3, key=group, key_type=0).error_code:
                time.sleep(HEARD_S)
            # who coordinates may still be loading
            while wire.call(ApiKey.DESCRIBE_GROUPS, 0, groups=[group]).groups[0].error_code:
                time.sleep(HEARD_S)
    time.sleep(HEARD_S)
