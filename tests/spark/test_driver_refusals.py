"""The loop while somebody else is in its group: commits are refused, and nothing is lost by it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer

from kohort.spark import CommitRefusedError, GroupBatches
from tests.spark.conftest import Side
from tests.spark.loops import Driver, Named, NewTopic, next_of

pytestmark = pytest.mark.kafka


@contextmanager
def member_of(bootstrap: str, group: str, topic: str) -> Iterator[None]:
    """Somebody else's consumer, joined to the group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        deadline = time.monotonic() + 60
        while not consumer.assignment() and time.monotonic() < deadline:
            consumer.poll(0.1)
        assert consumer.assignment()
        yield
    finally:
        consumer.close()


def test_a_live_member_makes_commits_refused_and_that_can_be_an_error(
    bootstrap: str, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    batches = driver(etl, orders, fail_on_commit_error=True)
    batch = next_of(batches)
    with (
        member_of(bootstrap, etl, orders),
        pytest.raises(CommitRefusedError, match=f"'{etl}' has live members"),
    ):
        batch.commit()
    batch.commit()
    assert side.committed(etl, orders) == {0: 10}


def test_stop_ends_the_waiting_for_a_refused_commit(
    bootstrap: str, side: Side, driver: Driver, new_topic: NewTopic, group: Named
) -> None:
    orders, etl = new_topic("orders", partitions=1), group("etl")
    side.produce(orders, {0: 10})
    stopping: list[GroupBatches] = []
    batches = driver(etl, orders, on_event=lambda _: stopping[0].stop())
    stopping.append(batches)
    with member_of(bootstrap, etl, orders), pytest.raises(CommitRefusedError):
        batches.next_batch()
