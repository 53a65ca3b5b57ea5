"""Requests about topics and records, drawn by chance, are answered as by the cluster of ``--bootstrap``."""

from __future__ import annotations

import time
import uuid
from random import Random

import pytest

from kohort.protocol import ApiKey
from tests.clients.alike.log_steps import draw, request_of
from tests.clients.alike.side import Side
from tests.clients.alike.step import take

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

CLIENTS, STEPS = 2, 60
#: Apache Kafka's broker hears of its controller's changes a moment after the client has.
CHANGES = {ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS}
HEARD_S = 0.3


@pytest.mark.parametrize("seed", range(16))
def test_what_is_drawn_is_answered_alike(compared: tuple[str, str], seed: int) -> None:
    names = [(name, f"{name}-{uuid.uuid4().hex[:8]}") for name in ("orders", "payments", "stock")]
    unknown = {name: (real, uuid.UUID(int=number + 1)) for number, (name, real) in enumerate(names)}
    sides = [Side(bootstrap, CLIENTS, (), dict(unknown)) for bootstrap in compared]
    told: list[str] = []
    try:
        for number, step in enumerate(draw(Random(seed), CLIENTS, STEPS)):
            take(sides, number, step, request_of, told)
            if step.kind in CHANGES:
                time.sleep(HEARD_S)
    finally:
        for side in sides:
            side.close()
