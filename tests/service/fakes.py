"""A consumer that does what the test says, in the place of the service's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.consumer.config import consumer_config
from kohort.consumer.events import EventLog
from kohort.consumer.record import Record
from kohort.protocol import TopicPartition
from kohort.service import ConsumerService
from kohort.statemachine import MemberState

ORDERS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]


class FakeConsumer:
    """The face of AsyncGroupConsumer that the service uses."""

    made: FakeConsumer

    def __init__(self, *topics: str, **config: Any) -> None:
        FakeConsumer.made = self
        self.topics = topics
        self.revoking = config["on_partitions_revoking"]
        self.lost = config["on_partitions_lost"]
        self.waiting: asyncio.Queue[list[Record]] = asyncio.Queue()
        self.done_offsets: list[tuple[str, int, int]] = []
        self.now_paused: set[TopicPartition] = set()
        self.log: list[str] = []
        #: Until it is set the others are not ready to take over.
        self.noticed = asyncio.Event()
        self.noticed.set()
        self.member_state = MemberState.STABLE
        self.outage_s = 0.0
        self.events = EventLog()
        #: What ``start`` waits for; set: brokers answer.
        self.reachable = asyncio.Event()
        self.reachable.set()
        self.owned = ORDERS
        self.parts = SimpleNamespace(
            cluster=SimpleNamespace(last_failure=None, metadata=_no_topics),
            delivery=SimpleNamespace(halting=lambda _: None),
            positions=SimpleNamespace(policies={}),
            committer=SimpleNamespace(keeps_starts=False),
        )
        self.config = consumer_config(**{k: v for k, v in config.items() if not k.startswith("on_")})

    @classmethod
    def forget_made(cls) -> None:
        """Forget the consumer of an earlier run: it gets no records of the next one."""
        with suppress(AttributeError):
            del cls.made

    @property
    def state(self) -> SimpleNamespace:
        return SimpleNamespace(state=self.member_state)

    async def start(self) -> None:
        await self.reachable.wait()
        self.log.append("joined")

    async def announce_leave(self) -> None:
        self.log.append("told the group")
        await self.noticed.wait()

    async def close(self, *, timeout_ms: float) -> None:
        assert timeout_ms > 0
        self.log.append(f"committed {len(self.done_offsets)} and left")

    def lag(self) -> dict[TopicPartition, int]:
        return {}

    async def getmany(self, max_records: int, timeout_ms: float, max_bytes: int) -> list[Record]:
        assert min(max_records, max_bytes) > 0
        try:
            return await asyncio.wait_for(self.waiting.get(), min(timeout_ms, 10) / 1000)
        except TimeoutError:
            return []

    def done(self, record: Record) -> None:
        self.done_offsets.append((record.topic, record.partition, record.offset))

    def assignment(self) -> list[TopicPartition]:
        return self.owned

    def pause(self, *partitions: TopicPartition) -> None:
        self.now_paused.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self.now_paused.difference_update(partitions)

    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(self.now_paused)

    def give(self, *offsets: int, topic: str = "orders", partition: int = 0, value: bytes = b"{}") -> None:
        self.waiting.put_nowait([Record(topic, partition, offset, 0, None, value) for offset in offsets])


async def _no_topics(_: Any) -> SimpleNamespace:
    return SimpleNamespace(topics={})


def make_service(**options: Any) -> ConsumerService:
    FakeConsumer.forget_made()
    return ConsumerService(bootstrap="localhost:9092", group="billing", **options)


@asynccontextmanager
async def serving(service: ConsumerService) -> AsyncIterator[FakeConsumer]:
    """The service runs within the block, and is stopped at its end."""
    FakeConsumer.forget_made()
    task = asyncio.create_task(service.serve())
    await until(lambda: hasattr(FakeConsumer, "made") and "joined" in FakeConsumer.made.log)
    try:
        yield FakeConsumer.made
    finally:
        service.stop()
        await asyncio.wait_for(task, 30)


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(20_000):  # longer than a busy machine takes
        if holds():
            return
        await asyncio.sleep(0.001)
    pytest.fail("never happened")
