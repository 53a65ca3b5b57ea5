"""The broker is killed while a topic is deleted and recreated: the old one is there, none, or a new one."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from kohort.protocol import ApiKey
from tests.broker.metadata.topic_requests import EARLIEST, LATEST, commit, committed, delete_records
from tests.broker.wire import Wire, batch, create_topic, offset_at, part, produce, produce_fields
from tests.broker_process import BrokerProcess

KILLS = 4
NONE = -1
NO_TOPIC = 3


@pytest.fixture
def process(tmp_path: Path) -> BrokerProcess:
    return BrokerProcess(tmp_path, data=tmp_path / "data")


def find(wire: Wire) -> tuple[int, int, int] | None:
    """Where the topic begins and ends, and what the group has committed; None if there is none."""
    end = offset_at(wire, "orders", LATEST)
    if end.error_code == NO_TOPIC:
        return None
    assert end.error_code == 0
    return offset_at(wire, "orders", EARLIEST).offset, end.offset, committed(wire, "g", "orders")


@pytest.mark.slow(3)
def test_nothing_of_the_old_topic_is_found_in_a_new_one(process: BrokerProcess) -> None:
    random = Random(7)
    process.start()
    try:
        for _ in range(KILLS):
            with Wire(process.bootstrap) as wire:
                if find(wire) is None:
                    assert create_topic(wire, "orders").error_code == 0
                    assert find(wire) == (0, 0, NONE)
                while find(wire) != (7, 10, 5):
                    end = offset_at(wire, "orders", LATEST).offset
                    produce(wire, "orders", batch(10 - end)) if end < 10 else None
                    assert delete_records(wire, "orders", 7) == 0
                    assert commit(wire, "g", "orders", 5) == 0
                topic = part(
                    ApiKey.CREATE_TOPICS,
                    7,
                    "CreatableTopic",
                    name="orders",
                    num_partitions=1,
                    replication_factor=1,
                    assignments=[],
                    configs=[],
                )
                created = {"topics": [topic], "timeout_ms": 1_000, "validate_only": False}
                wire.send(ApiKey.DELETE_TOPICS, 5, topic_names=["orders"], timeout_ms=1_000)
                wire.send(ApiKey.CREATE_TOPICS, 7, **created)
                wire.send(ApiKey.PRODUCE, 9, **produce_fields("orders", batch(2)))
                time.sleep(random.random() * 0.02)
                process.kill()
            process.start()
            with Wire(process.bootstrap) as wire:
                assert find(wire) in (None, (7, 10, 5), (0, 0, NONE), (0, 2, NONE)), process.log
    finally:
        process.kill()
