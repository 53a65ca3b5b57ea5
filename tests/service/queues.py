"""Key queues whose records run until the test lets them go."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import pytest

from kohort.protocol import TopicPartition
from kohort.service.run.queues import ONE_BY_ONE, Outcome, QueueScheduler

ORDERS, OTHERS = TopicPartition("orders", 0), TopicPartition("orders", 1)


@dataclass(frozen=True)
class Item:
    offset: int
    lane: Hashable = None
    key: bytes | None = None
    value: bytes | None = None


class Bench:
    """A scheduler whose records run until the test lets them go."""

    def __init__(self, *, concurrency: int = 8, batch: int = 1) -> None:
        self.begun: list[int] = []
        self.done: list[int] = []
        self.cancelled: list[int] = []
        self.failures: list[BaseException] = []
        self.tries: dict[int, int] = {}
        self.retries_left: dict[int, int] = defaultdict(int)
        self.poison: set[int] = set()
        self.to_split: set[int] = set()
        self.calls: list[list[int]] = []
        self.gates: dict[int, asyncio.Event] = defaultdict(asyncio.Event)
        self.free_running = False
        self.most_at_once = 0
        self._running = 0
        self.queues = scheduler(
            self._run,
            concurrency=concurrency,
            batch=batch,
            done=lambda item, _: self.done.append(item.offset),
            on_failure=self.failures.append,
        )

    async def _run(self, items: list[Item], attempt: int) -> Outcome:
        first = items[0].offset
        self.begun += [item.offset for item in items]
        self.calls.append([item.offset for item in items])
        self.tries[first] = attempt
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        try:
            if self.free_running:
                await asyncio.sleep(0)
            else:
                await self.gates[first].wait()
        except asyncio.CancelledError:
            self.cancelled.append(first)
            raise
        finally:
            self._running -= 1
        if first in self.poison:
            raise ValueError(f"record {first}")
        if first in self.to_split and len(items) > 1:
            self.gates[first].clear()
            return ONE_BY_ONE
        if self.retries_left[first]:
            self.retries_left[first] -= 1
            return 0.0
        return None

    def add(
        self, offset: int, lane: Hashable = None, partition: TopicPartition = ORDERS, session: int = 1
    ) -> None:
        self.queues.add(partition, session, [Item(offset, lane)])

    async def finish(self, *offsets: int) -> None:
        for offset in offsets:
            self.gates[offset].set()
        await settle()

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(10_000):
            if holds():
                return
            await asyncio.sleep(0.0001)
        pytest.fail(f"never happened; done: {self.done}")


def scheduler(run: Any, **options: Any) -> QueueScheduler:
    given: dict[str, Any] = {
        "key_of": lambda item: item.lane,
        "concurrency": 1,
        "batch": 1,
        "done": lambda *_: pytest.fail("done"),
        "on_failure": lambda error: pytest.fail(repr(error)),
    }
    return QueueScheduler(run, **{**given, **options})


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def backlog_bytes(queues: QueueScheduler) -> int:
    """What the records count for that are added and not finished."""
    return sum(each.bytes for each in queues._partitions.values())
