"""Services on a real broker: members come and go in order, and every record is handled once."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaProducer

from kohort.consumer import Cluster, Record
from kohort.protocol import TopicPartition
from kohort.service import ConsumerService

pytestmark = pytest.mark.kafka

RECORDS = 3_000
KEYS = 50
PARTITIONS = 6


@pytest.fixture
def orders(bootstrap: str, new_topic: Callable[..., str]) -> str:
    """A topic with RECORDS records of KEYS keys, numbered by their values."""
    topic = new_topic("orders", partitions=PARTITIONS)
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5)
    for number in range(RECORDS):
        producer.send(topic, str(number).encode(), str(number % KEYS).encode())
    producer.flush()
    producer.close()
    return topic


class Handled:
    """What the members of a group have handled, in the order in which they finished."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.group = group
        self.values: list[int] = []
        self.by: dict[str, int] = defaultdict(int)
        self.tasks: dict[ConsumerService, asyncio.Task[None]] = {}

    def member(self, name: str, **options: Any) -> ConsumerService:
        service = ConsumerService(
            bootstrap=self.bootstrap,
            group=self.group,
            client_id=name,
            auto_offset_reset="earliest",
            session_timeout_ms=10_000,
            heartbeat_interval_ms=300,
            auto_commit_interval_ms=200,
        )

        @service.handler(self.topic, **options)
        async def handle(record: Record) -> None:
            await asyncio.sleep(random.uniform(0, 0.01))
            assert record.value is not None
            self.values.append(int(record.value))
            self.by[name] += 1

        self.tasks[service] = asyncio.create_task(service.serve())
        return service

    async def until(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.values) < count:  # noqa: ASYNC110 - the handlers know of no event
                await asyncio.sleep(0.01)

    async def stop(self, *services: ConsumerService) -> None:
        for service in services:
            service.stop()
        await asyncio.gather(*(self.tasks.pop(service) for service in services))

    async def committed(self) -> int:
        partitions = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        async with Cluster(self.bootstrap) as cluster:
            offsets = await cluster.committed(self.group, partitions)
        return sum(each.offset for each in offsets.values())


async def test_members_that_come_and_go_in_order_handle_every_record_once(
    bootstrap: str, orders: str, group: Callable[[str], str]
) -> None:
    handled = Handled(bootstrap, orders, group("billing"))
    first = handled.member("first", lanes="key", concurrency=16)
    await handled.until(RECORDS // 5)
    second = handled.member("second", lanes="key", concurrency=16)
    await handled.until(RECORDS // 2)
    third = handled.member("third", lanes="key", concurrency=16)
    await handled.until(RECORDS * 3 // 5)
    await handled.stop(first)
    await handled.until(RECORDS)
    await handled.stop(second, third)

    times = Counter(Counter(handled.values).values())
    assert times == {1: RECORDS}
    for key in range(KEYS):
        mine = [value for value in handled.values if value % KEYS == key]
        assert mine == sorted(mine)
    assert await handled.committed() == RECORDS
    assert handled.by["second"] > 0


async def test_a_stop_in_the_middle_loses_nothing_and_repeats_nothing(
    bootstrap: str, orders: str, group: Callable[[str], str]
) -> None:
    handled = Handled(bootstrap, orders, group("billing"))
    for share in (1, 2, 3):
        service = handled.member(f"run-{share}", lanes="none", concurrency=32)
        await handled.until(RECORDS * share // 4)
        await handled.stop(service)
        assert await handled.committed() == len(handled.values)
    last = handled.member("last", lanes="partition")
    await handled.until(RECORDS)
    await handled.stop(last)

    assert sorted(handled.values) == list(range(RECORDS))
