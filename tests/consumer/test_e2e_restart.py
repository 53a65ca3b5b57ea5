"""The broker dies and comes back: consumers go on by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from kohort.consumer import AsyncGroupConsumer, Cluster
from kohort.consumer.events import PartitionsLost
from kohort.protocol import TopicPartition
from tests.broker_process import BrokerProcess
from tests.consumer.conftest import QUICK, both_protocols
from tests.consumer.members import Worker
from tests.waiting import until

pytestmark = [pytest.mark.slow(3), both_protocols]


def _produce(bootstrap: str, topic: str, numbers: Iterable[int]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in numbers:
        producer.produce(topic, str(number), partition=number % 4)
    assert producer.flush(20) == 0


def _settings(broker: BrokerProcess, **more: Any) -> dict[str, Any]:
    return {**QUICK, "bootstrap": broker.bootstrap, "group": "billing", "auto_commit_interval_ms": 50, **more}


async def test_consumers_go_on_after_the_broker_was_killed_and_started_again(
    broker_process: BrokerProcess,
) -> None:
    async with Cluster(broker_process.bootstrap) as cluster:
        await cluster.create_topics({"orders": 4})
    settings = _settings(broker_process)
    async with AsyncGroupConsumer("orders", **settings) as a, AsyncGroupConsumer("orders", **settings) as b:
        workers = [Worker(a), Worker(b)]
        await until(lambda: [len(w.consumer.assignment()) for w in workers] == [2, 2])
        await asyncio.to_thread(_produce, broker_process.bootstrap, "orders", range(400))
        await until(lambda: sum(len(w.seen) for w in workers) == 400)
        broker_process.kill()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(broker_process.start)
        await asyncio.to_thread(_produce, broker_process.bootstrap, "orders", range(400, 800))
        await until(lambda: {n for w in workers for n in w.seen} == set(range(800)))
        for worker in workers:
            await worker.stop()
    async with Cluster(broker_process.bootstrap) as cluster:
        committed = await cluster.committed("billing")
    assert {p.partition: row.offset for p, row in committed.items()} == dict.fromkeys(range(4), 200)


async def test_a_short_outage_costs_no_partition(broker_process: BrokerProcess) -> None:
    async with Cluster(broker_process.bootstrap) as cluster:
        await cluster.create_topics({"orders": 4})
    settings = _settings(broker_process, session_timeout_ms=10_000)
    async with AsyncGroupConsumer("orders", **settings) as consumer:
        worker = Worker(consumer)
        await until(lambda: len(consumer.assignment()) == 4)
        await asyncio.to_thread(_produce, broker_process.bootstrap, "orders", range(100))
        await until(lambda: len(worker.seen) == 100)
        generation = consumer.state.generation
        broker_process.kill()
        await asyncio.to_thread(broker_process.start)
        await asyncio.to_thread(_produce, broker_process.bootstrap, "orders", range(100, 200))
        await until(lambda: len(worker.seen) == 200)
        assert consumer.state.generation == generation
        assert not [e for e in consumer.events.recent if isinstance(e, PartitionsLost)]
        await consumer.commit()
        assert sum(row.offset for row in (await consumer.committed()).values()) == 200
        assert (await consumer.committed())[TopicPartition("orders", 0)].offset == 50
        await worker.stop()
