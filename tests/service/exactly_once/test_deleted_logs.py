"""Exactly once, on logs that are not what they were: records under offsets that were handled are new ones."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kohort.consumer import Cluster, Record
from kohort.protocol import ErrorCode, KafkaError, TopicPartition
from kohort.service import ConsumerService, DbApiSink

pytestmark = pytest.mark.kafka


class Shop:
    """A service whose effects are rows."""

    def __init__(self, bootstrap: str, group: str, topic: str, path: Path) -> None:
        self.bootstrap, self.group, self.topic = bootstrap, group, topic
        self.path = path
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE effects (number INTEGER)")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        service = ConsumerService(
            bootstrap=self.bootstrap,
            group=self.group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            metadata_max_age_ms=500,
            leave_notice_ms=0,
        )
        service.exactly_once(DbApiSink(lambda: sqlite3.connect(self.path, timeout=30)))

        @service.handler(self.topic)
        def handle(record: Record, connection: sqlite3.Connection) -> None:
            assert record.value is not None
            connection.execute("INSERT INTO effects VALUES (?)", (int(record.value),))

        running = asyncio.create_task(service.serve())
        try:
            yield
        finally:
            service.stop()
            await asyncio.wait_for(running, 60)

    def effects(self) -> list[int]:
        with sqlite3.connect(self.path) as database:
            return [row[0] for row in database.execute("SELECT number FROM effects ORDER BY number")]

    async def until(self, *numbers: int) -> None:
        for _ in range(600):
            if self.effects() == sorted(numbers):
                return
            await asyncio.sleep(0.05)
        pytest.fail(f"{self.effects()} is not {sorted(numbers)}")


@pytest.fixture
def shop(bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str], tmp_path: Path) -> Shop:
    return Shop(bootstrap, group("billing"), new_topic("orders", partitions=1), tmp_path / "results.db")


async def _make_anew(cluster: Cluster, topic: str) -> None:
    await cluster.delete_topics([topic])
    for _ in range(600):
        try:
            await cluster.create_topics({topic: 1}, if_not_exists=False)
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # deleted and not gone yet
                raise
            await asyncio.sleep(0.05)
        else:
            return
    pytest.fail("the topic cannot be recreated")


@pytest.mark.parametrize("running", [False, True], ids=["between two runs", "while it runs"])
async def test_a_topic_that_was_deleted_and_made_anew_is_handled_from_its_beginning(
    shop: Shop, produce: Callable[..., Any], running: bool
) -> None:
    await asyncio.to_thread(produce, shop.topic, range(50))
    async with Cluster(shop.bootstrap) as cluster:
        async with shop.open():
            await shop.until(*range(50))
            if running:
                await _make_anew(cluster, shop.topic)
                await asyncio.to_thread(produce, shop.topic, range(100, 130))
                await shop.until(*range(50), *range(100, 130))
        if not running:
            await _make_anew(cluster, shop.topic)
            await asyncio.to_thread(produce, shop.topic, range(100, 130))
    async with shop.open():
        await shop.until(*range(50), *range(100, 130))
    async with shop.open():
        await asyncio.sleep(0.5)
    await shop.until(*range(50), *range(100, 130))


async def test_records_after_a_cut_of_the_log_are_handled(shop: Shop, produce: Callable[..., Any]) -> None:
    """As after an election that was not clean: what the row calls done is no longer in the log."""
    await asyncio.to_thread(produce, shop.topic, range(12))
    async with shop.open():
        await shop.until(*range(12))
    with sqlite3.connect(shop.path) as database:
        database.execute("UPDATE kohort_offsets SET next_offset = 18")
    async with Cluster(shop.bootstrap) as cluster:
        await cluster.commit(shop.group, {TopicPartition(shop.topic, 0): 12})
    async with shop.open():
        await asyncio.sleep(1)  # it has found out where the epoch ends
        await asyncio.to_thread(produce, shop.topic, range(100, 106))
        await shop.until(*range(12), *range(100, 106))
