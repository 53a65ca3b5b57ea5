"""Requests drawn by chance are answered as by the cluster that ``--bootstrap`` names, an Apache Kafka say.

Left out of the comparison is what kohort does otherwise on purpose (views.py), and a sequence ends where the
answer is up to the broker: which of several members leads, which of several protocols is taken.
"""

from __future__ import annotations

import uuid
from random import Random
from typing import Any

import pytest

from kohort.protocol import ApiKey
from tests.broker.wire import Wire, create_topic, part
from tests.clients.alike.side import Sent, Side, answers_of
from tests.clients.alike.step import views_of
from tests.clients.alike.steps import REQUESTS, Asking, Step, draw
from tests.clients.alike.views import differences, is_choice

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

CLIENTS, STEPS = 4, 50
TOPICS = ("orders", "payments")

Brokers = list[tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def brokers(compared: tuple[str, str]) -> Brokers:
    """The given cluster and a kohort, with the same topics."""
    names = {topic: f"{topic}-{uuid.uuid4().hex[:8]}" for topic in TOPICS}
    return [(each, _topics(each, names)) for each in compared]


def _topics(bootstrap: str, names: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with Wire(bootstrap, timeout_s=30) as wire:
        for name in names.values():
            assert create_topic(wire, name, 2).error_code == 0
        while len(found) < len(names):
            wanted = [part(ApiKey.METADATA, 9, "MetadataRequestTopic", name=name) for name in names.values()]
            answer = wire.call(ApiKey.METADATA, 12, topics=wanted, allow_auto_topic_creation=False)
            ids = {topic.name: topic.topic_id for topic in answer.topics if topic.error_code == 0}
            found = {topic: (name, ids[name]) for topic, name in names.items() if name in ids}
        while wire.call(ApiKey.FIND_COORDINATOR, 3, key="alike", key_type=0).error_code:
            pass
    return found


@pytest.mark.parametrize("seed", range(24))
def test_what_is_drawn_is_answered_alike(brokers: Brokers, seed: int) -> None:
    groups = [f"alike-{uuid.uuid4().hex[:8]}-{name}" for name in "ab"]
    sides = [Side(bootstrap, CLIENTS, groups, topics) for bootstrap, topics in brokers]
    told: list[str] = []
    try:
        for number, step in enumerate(draw(Random(seed), CLIENTS, STEPS)):
            if _is_left_out(step, sides[0]):
                continue
            sent = _send(sides, number, step)
            got = answers_of(sides, sent)
            answers = [[each for each in one if not is_choice(each, number)] for one in got]
            theirs, ours = (views_of(side, each) for side, each in zip(sides, answers, strict=True))
            told.append(f"{number} {step}: {ours}")
            if _is_up_to_the_broker(theirs, ours):
                return
            assert theirs == ours, "\n".join([*told, *differences(theirs, ours)])
            for side, side_answers in zip(sides, answers, strict=True):
                for answer in side_answers:
                    side.learn(answer)
    finally:
        for side in sides:
            side.close()


def _is_left_out(step: Step, side: Side) -> bool:
    """Apache Kafka rebalances for an id that has not joined yet and leaves, kohort does not."""
    leaving = (side.clients[step.client], side.clients[(step.client + 1) % CLIENTS])
    return step.kind == ApiKey.LEAVE_GROUP and min(client.generation for client in leaving) < 0


def _send(sides: list[Side], number: int, step: Step) -> Sent:
    for side in sides:
        asking = Asking(step, side)
        version, fields = REQUESTS[step.kind][1](asking)
        sent = Sent(number, step.client, step.kind, version)
        side.send(sent, fields)
    return sent


def _is_up_to_the_broker(one: list[Any], other: list[Any]) -> bool:
    """Whether only a leader, or a protocol that all have, differs between joins that were answered."""

    def without_choice(views: list[Any]) -> list[Any]:
        free = ("leader", "members", "protocol_name", "skip_assignment")
        return [
            each | {"answer": {key: value for key, value in each["answer"].items() if key not in free}}
            if isinstance(each["answer"], dict) and "leader" in each["answer"]
            else each
            for each in views
        ]

    return one != other and without_choice(one) == without_choice(other)
