"""A handover on a bench: what it does is written down step by step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import cast

from kohort.consumer import CommittedOffset, Record
from kohort.consumer.config import ConsumerConfig
from kohort.consumer.done.committer import Committer
from kohort.consumer.done.tracker import Tracker
from kohort.consumer.events import Event
from kohort.consumer.group.effects import Assign
from kohort.consumer.reading.delivery import Delivery
from kohort.consumer.reading.positions import Positions
from kohort.consumer.run.handover import Callbacks, Handover
from kohort.protocol import TopicPartition
from tests.waiting import until

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


class CommitterStub:
    """Notes what it is told to commit."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        #: Does it instead.
        self.act: Callable[[Iterable[TopicPartition], float], Awaitable[bool]] | None = None

    async def commit_done(
        self, partitions: Iterable[TopicPartition], timeout_ms: float, *, giving: Iterable[TopicPartition]
    ) -> bool:
        assert giving == partitions
        if self.act is not None:
            return await self.act(partitions, timeout_ms)
        self._note(f"commit {names(partitions)}")
        return True


class HandoverBench:
    """A handover whose surroundings write down what happens."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.events: list[Event] = []
        self.positions = Positions("earliest")
        self.tracker = Tracker()
        self.settings = SimpleNamespace(
            drain_ms=5_000, rebalance_ms=200, default_api_timeout_ms=200, commits=True
        )
        self.callbacks = Callbacks(
            assigned=lambda p: self.steps.append(f"assigned {names(p)}"),
            revoking=lambda p: self.steps.append(f"revoking {names(p)}"),
            revoked=lambda p: self.steps.append(f"revoked {names(p)}"),
            lost=lambda p: self.steps.append(f"lost {names(p)}"),
        )
        delivery = Delivery(
            self.positions, self.tracker, max_undone=1_000, wake=lambda: None, report=self.events.append
        )
        self.committer = CommitterStub(self.steps.append)
        self.handover = Handover(
            cast(ConsumerConfig, self.settings),
            self.callbacks,
            self.positions,
            delivery,
            self.tracker,
            cast(Committer, self.committer),
            announced=lambda: self.steps.append("announced"),
            revocation_done=lambda: self.steps.append("released"),
            report=self.events.append,
        )
        self.task = asyncio.create_task(self.handover.run())

    async def own(self, *partitions: TopicPartition, undone: int = 0) -> None:
        """Partitions that are read, with so many records delivered of each."""
        self.handover.assign(Assign(1, partitions, ()))
        await self.then("announced")
        self.steps.clear()
        for partition in partitions:
            self.positions.found_committed(partition, CommittedOffset(0))
            stay = self.tracker.begin_session(partition, 0)
            if undone:
                stay.delivered_all(list(range(undone)))

    def done(self, partition: TopicPartition, offset: int) -> None:
        stay = self.tracker.get(partition)
        assert stay is not None
        self.tracker.done(Record(*partition, offset, 0, None, None, session_id=stay.session_id))
        self.handover.record_done()

    async def then(self, step: str) -> None:
        await until(lambda: step in self.steps, timeout_s=30)

    def seen(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


def names(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(f"{p.partition}" for p in partitions)


@asynccontextmanager
async def handover_bench() -> AsyncIterator[HandoverBench]:
    """A bench whose steps end with the test."""
    bench = HandoverBench()
    yield bench
    bench.task.cancel()
    await asyncio.gather(bench.task, return_exceptions=True)
