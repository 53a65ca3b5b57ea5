"""Requests about topics and records, drawn by chance, are answered as by the cluster of ``--bootstrap``."""

from __future__ import annotations

import time
import uuid
from random import Random
from typing import Any

import pytest

from kohort.protocol import ApiKey
from tests.clients.alike.log_steps import draw, request_of
from tests.clients.alike.side import Answer, Sent, Side, answers_of
from tests.clients.alike.views import differences, view

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
            for side in sides:
                version, fields = request_of(step, side)
                sent = Sent(number, step.client, step.kind, version)
                side.send(sent, fields)
            got = answers_of(sides, sent)
            for side, answers in zip(sides, got, strict=True):
                for answer in answers:
                    side.learn(answer)
            theirs, ours = (_views(side, answers) for side, answers in zip(sides, got, strict=True))
            told.append(f"{sent} {fields}: {ours}")
            assert list(differences(theirs, ours)) == [], "\n".join(told)
            if step.kind in CHANGES:
                time.sleep(HEARD_S)
    finally:
        for side in sides:
            side.close()


def _views(side: Side, answers: list[Answer]) -> list[Any]:
    return [{"of": each.sent[:3], "answer": view(side, each)} for each in answers]
