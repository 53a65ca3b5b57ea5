"""Requests that change a cluster: whichever broker is asked, the controller carries them out, for their sender.

Covers: broker/_control.py, broker/apis/envelope.py, broker/apis/alter_partition.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kohort.protocol import ApiKey, ErrorCode, encode_request
from kohort.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kohort.testing import RunningCluster, running_cluster
from tests.broker.wire import Wire, create_topic, topic_names


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster(3, racks=["a", "b", "c"]) as running:
        yield running


@pytest.fixture
def others(cluster: RunningCluster) -> list[str]:
    """The addresses of the brokers that are not controller."""
    controller = cluster.controller
    return [broker.bootstrap for number, broker in cluster.brokers.items() if number != controller]


def create(wire: Wire, *topics: CreatableTopic, **fields: Any) -> dict[str, Any]:
    answer = wire.call(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=1_000, **fields)
    return {topic.name: topic for topic in answer.topics}


def test_a_topic_is_there_for_who_asked_another_broker_than_the_controller(others: list[str]) -> None:
    with Wire(others[0]) as wire:
        for number in range(20):
            made = create_topic(wire, f"mine-{number}")
            assert made.error_code == 0
            assert f"mine-{number}" in topic_names(wire)
