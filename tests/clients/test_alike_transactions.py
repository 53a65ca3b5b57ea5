"""Requests of transactions, drawn by chance, are answered as by the cluster of ``--bootstrap``."""

from __future__ import annotations

import time
import uuid
from random import Random

import pytest

from kohort.protocol import ApiKey
from tests.broker.wire import create_topic
from tests.clients.alike.transactions import REQUESTS, Asking, Side, learn

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

STEPS = 120
#: Apache Kafka's broker hears of its controller's changes a moment after the client has.
HEARD_S = 0.5
ENDING = {ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID}


def begin(side: Side) -> None:
    """Make the topics, and find the coordinator: the first who asks has its topic made."""
    for topic in side.topics:
        assert create_topic(side.wire, topic, 2).error_code == 0
    deadline = time.monotonic() + 20
    while side.wire.call(ApiKey.FIND_COORDINATOR, 3, key=side.producers[0].name, key_type=1).error_code:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    while side.wire.call(ApiKey.FIND_COORDINATOR, 3, key=side.group, key_type=0).error_code:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(HEARD_S)
    offset = {"partition_index": 0, "committed_offset": 1}
    committed = side.wire.call(
        ApiKey.OFFSET_COMMIT,
        8,
        group_id=side.group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[{"name": side.topics[0], "partitions": [offset]}],
    )
    # a group that only transactions have committed for is forgotten sooner by one than by the other
    assert committed.topics[0].partitions[0].error_code == 0


@pytest.mark.parametrize("seed", range(16))
def test_what_is_drawn_is_answered_alike(compared: tuple[str, str], seed: int) -> None:
    prefix = f"alike-{uuid.uuid4().hex[:8]}"
    sides = [Side(bootstrap, prefix, [f"{prefix}-a", f"{prefix}-b"]) for bootstrap in compared]
    random = Random(seed)
    told: list[str] = []
    try:
        for side in sides:
            begin(side)
        kinds = random.choices(list(REQUESTS), [row[0] for row in REQUESTS.values()], k=STEPS)
        kinds[:2] = [ApiKey.INIT_PRODUCER_ID] * 2
        for number, key in enumerate(kinds):
            take(sides, number, key, random.randrange(1 << 30), told)
    finally:
        for side in sides:
            side.wire.close()


def take(sides: list[Side], number: int, key: ApiKey, seed: int, told: list[str]) -> None:
    """One step on both: the same request, and answers that must be alike."""
    _, low, high, fields_of = REQUESTS[key]
    version = Random(seed).randint(low, high)
    answers = []
    for side in sides:
        asking = Asking(seed, side, version)
        fields = fields_of(asking)
        body = side.ask(key, version, fields)
        learn(asking, key, fields, body)
        answers.append(side.told(body))
    theirs, ours = answers
    told.append(f"{number}. {key.name} v{version} {fields}: {ours}")
    assert ours == theirs, "\n".join([*told[-25:], f"ours:   {ours}", f"theirs: {theirs}"])
    if key in ENDING:
        for side in sides:
            side.settle()
