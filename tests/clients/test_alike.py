"""Requests drawn by chance are answered as by the cluster that ``--bootstrap`` names, an Apache Kafka say.

Left out of the comparison is what kohort does otherwise on purpose (views.py), and a sequence ends where the
answer is up to the broker: which of several members leads, which of several protocols is taken.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode
from tests.broker.wire import Wire, create_topic, part
from tests.clients.alike.side import Sent, Side, answers_of
from tests.clients.alike.step import views_of
from tests.clients.alike.steps import REQUESTS, Asking, Step, draw
from tests.clients.alike.views import differences, is_choice

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

CLIENTS, STEPS, MOST = 4, 50, 6
#: May be parked: nothing behind it on its connection is taken before it is answered.
PARKED = (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)
LOADING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
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
    compare(brokers, ([step] for step in draw(Random(seed), CLIENTS, STEPS)))


@pytest.mark.parametrize("seed", range(300, 312))
def test_what_is_drawn_without_waiting_is_answered_alike(brokers: Brokers, seed: int) -> None:
    """Requests of several members go out together, on one connection, whose requests a broker takes in turn.

    So each meets the group as the one before has just left it, in the middle of a rebalance, and says what
    its client knew before all of them.
    """
    compare(brokers, bursts(Random(seed)))


def bursts(random: Random) -> Iterator[list[Step]]:
    """Drawn steps, up to six together; what may be parked is the last, since nothing behind it is taken."""
    burst: list[Step] = []
    for step in draw(random, CLIENTS, 2 * STEPS):
        burst.append(step)
        if step.kind in PARKED or len(burst) == MOST:
            yield burst
            burst = []


def compare(brokers: Brokers, drawn: Iterable[list[Step]]) -> None:
    """Send both the same, and compare what they answer up to a broker's own choice."""
    groups = [f"alike-{uuid.uuid4().hex[:8]}-{name}" for name in "ab"]
    sides = [Side(bootstrap, CLIENTS, groups, topics) for bootstrap, topics in brokers]
    told: list[str] = []
    number = 0
    try:
        _wait_for(sides, groups)
        for steps in drawn:
            burst = [step for step in steps if not _is_left_out(step, sides[0])]
            if not burst:
                continue
            sents = _send(sides, number, burst)
            number += len(burst)
            got = answers_of(sides, *sents)
            answers = [[each for each in one if not is_choice(each, sents)] for one in got]
            theirs, ours = (views_of(side, each) for side, each in zip(sides, answers, strict=True))
            told += [*map(str, burst), f"{number}: {ours}"]
            if _is_up_to_the_broker(theirs, ours):
                return
            assert theirs == ours, "\n".join([*told, *differences(theirs, ours)])
            for side, side_answers in zip(sides, answers, strict=True):
                for answer in side_answers:
                    side.learn(answer)
    finally:
        for side in sides:
            side.close()


def _wait_for(sides: list[Side], groups: list[str]) -> None:
    """Until the coordinators of the groups have been loaded."""
    for side in sides:
        with Wire(side.bootstrap, timeout_s=30) as wire:
            while any(
                group.error_code in LOADING
                for group in wire.call(ApiKey.DESCRIBE_GROUPS, 4, groups=groups).groups
            ):
                time.sleep(0.05)


def _is_left_out(step: Step, side: Side) -> bool:
    """Apache Kafka rebalances for an id that has not joined yet and leaves, kohort does not."""
    leaving = (side.clients[step.client], side.clients[(step.client + 1) % CLIENTS])
    return step.kind == ApiKey.LEAVE_GROUP and min(client.generation for client in leaving) < 0


def _send(sides: list[Side], number: int, burst: list[Step]) -> list[Sent]:
    sents: list[Sent] = []
    for side in sides:
        connection = side.free_connection(burst[-1].client)
        sents = []
        for place, step in enumerate(burst):
            version, fields = REQUESTS[step.kind][1](Asking(step, side))
            sents.append(Sent(number + place, step.client, step.kind, version))
            connection.send(sents[-1], fields)
    return sents


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
