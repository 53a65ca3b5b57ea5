"""Handlers that take long, with a real broker in virtual time: they keep their seat, or are told by name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kohort.broker import Broker
from kohort.consumer import AsyncGroupConsumer, Cluster, Record
from kohort.consumer.events import Event, PartitionsLost, PollIntervalExceeded, RebalanceCompleted
from kohort.protocol import ApiKey, TopicPartition, build_batch
from tests.consumer.conftest import both_protocols
from tests.consumer.virtual_time import run_in_virtual_time
from tests.messages import request_of

pytestmark = pytest.mark.slow(3)

TWENTY_MINUTES_S = 20 * 60
#: The first generation, or epoch, of a group in which there is something to read.
FIRST = {"classic": 1, "consumer": 2}
ORDERS = TopicPartition("orders", 0)
#: Each virtual timer costs a real millisecond or two: have few of them.
_RARELY: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 15_000,
    "auto_commit_interval_ms": 60_000,
    "fetch_max_wait_ms": 60_000,
    "request_timeout_ms": 90_000,
    "metadata_max_age_ms": 3_600_000,
}


@pytest.fixture
def virtual_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator's clock is the loop's."""

    def clock() -> Callable[[], int]:
        loop = asyncio.get_running_loop()
        return lambda: 1_800_000_000_000 + int(loop.time() * 1000)

    monkeypatch.setattr("kohort.coordinator.groups.group_coordinator.steady_clock_ms", clock)


async def _handle_for_20_minutes(_: Record) -> None:
    await asyncio.sleep(TWENTY_MINUTES_S)


async def _produce(cluster: Cluster, count: int) -> None:
    make = request_of(ApiKey.PRODUCE)
    topic = make.TopicProduceData
    known = await cluster.metadata(["orders"])
    # of this time: the broker keeps nothing that is older than retention.ms
    rows = [(None, b"x", ())] * count
    records = bytes(build_batch(rows, timestamp_ms=time.time_ns() // 1_000_000))
    data = topic.PartitionProduceData(index=0, records=records)
    body = make(
        acks=-1,
        timeout_ms=1_000,
        topic_data=[topic(name="orders", topic_id=None, partition_data=[data])],
    )
    node = known.leader(ORDERS)
    assert node is not None
    await cluster.request(node, ApiKey.PRODUCE, body, max_version=9)


async def _life(folder: Path, **settings: Any) -> tuple[list[Event], int, int]:
    """Two records are handled for 20 minutes each: events, committed offset, generation at the end."""
    async with Broker(port=0, data=folder, settings={"group_initial_rebalance_delay_ms": 0}) as broker:
        bootstrap = f"127.0.0.1:{broker.port}"
        async with Cluster(bootstrap) as cluster:
            await cluster.create_topics({"orders": 1})
            await _produce(cluster, 2)
        async with AsyncGroupConsumer(
            "orders", bootstrap=bootstrap, group="billing", **{**_RARELY, **settings}
        ) as consumer:
            for _ in range(2):
                record = await anext(consumer)
                await _handle_for_20_minutes(record)
                if record.session_id in consumer.parts.tracker.sessions:
                    consumer.done(record)
            await consumer.getmany(1, 90_000)
            committed = (await consumer.committed(ORDERS)).get(ORDERS)
            offset = committed.offset if committed is not None else 0
            return consumer.events.recent, offset, consumer.state.generation


@pytest.mark.usefixtures("virtual_coordinator")
@both_protocols
def test_a_handler_of_20_minutes_keeps_its_membership_while_heartbeats_go_on(
    tmp_path: Path, protocol: str
) -> None:
    life = _life(tmp_path, max_poll_interval_ms=3_600_000, protocol=protocol)
    events, committed, generation = run_in_virtual_time(life)
    assert (committed, generation) == (2, FIRST[protocol])
    assert len([e for e in events if isinstance(e, RebalanceCompleted)]) == 1
    assert not [e for e in events if isinstance(e, PartitionsLost | PollIntervalExceeded)]


@pytest.mark.usefixtures("virtual_coordinator")
@both_protocols
def test_a_handler_that_outlasts_max_poll_interval_is_named_and_its_partitions_are_given_up(
    tmp_path: Path, protocol: str
) -> None:
    life = _life(tmp_path, max_poll_interval_ms=300_000, protocol=protocol)
    events, committed, generation = run_in_virtual_time(life)
    breaches = [e for e in events if isinstance(e, PollIntervalExceeded)]
    assert [e.partitions for e in breaches] == [(ORDERS,)] * 2
    assert all(300_000 <= e.age_ms < 301_000 for e in breaches)
    assert all(", in _handle_for_20_minutes (test_long_handlers.py:" in e.busy_with for e in breaches)
    assert [e.partitions for e in events if isinstance(e, PartitionsLost)] == [(ORDERS,)] * 2
    assert committed == 0, "nothing of it counts as done"
    assert generation > FIRST[protocol], "the next poll joins again"
