"""What the end-to-end tests do with consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol

from kohort.consumer import AsyncGroupConsumer, Record
from tests.broker.wire import Wire
from tests.group_configs import change_group_configs


class Maker(Protocol):
    """The fixture ``member``."""

    def __call__(self, *topics: str, **config: object) -> Awaitable[AsyncGroupConsumer]: ...


async def read(consumer: AsyncGroupConsumer, count: int, *, timeout_s: float = 60.0) -> list[Record]:
    """Read this many records, without marking them done."""
    records: list[Record] = []
    async with asyncio.timeout(timeout_s):
        while len(records) < count:
            records += await consumer.getmany(count - len(records), 500)
    return records


def shorten_sessions(bootstrap: str, group: str, session_ms: int) -> None:
    """For members that the coordinator assigns; Apache Kafka refuses sessions this short and takes 45 s."""
    configs = {"consumer.session.timeout.ms": session_ms, "consumer.heartbeat.interval.ms": 200}
    with Wire(bootstrap, timeout_s=30) as wire:
        change_group_configs(wire, group, configs)


async def crash(consumer: AsyncGroupConsumer) -> None:
    """All connections break and nothing is said: what the group sees of a SIGKILL."""
    await consumer.parts.cluster.close()


def numbers(records: list[Record]) -> list[int]:
    """What ``produce`` wrote."""
    return [int(record.value or b"-1") for record in records]


class Worker:
    """Reads and marks done until it is stopped; ``seen`` are the numbers in the order of delivery."""

    def __init__(self, consumer: AsyncGroupConsumer, *, work_s: float = 0.0) -> None:
        self.consumer = consumer
        self.seen: list[int] = []
        self._work_s = work_s
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for record in self.consumer:
            self.seen.append(int(record.value or b"-1"))
            if self._work_s:
                await asyncio.sleep(self._work_s)
            self.consumer.done(record)

    async def stop(self) -> None:
        """Stop where no record is half done, then close the consumer."""
        await self.consumer.close(drain_timeout_ms=30_000)
        await asyncio.wait_for(self._task, 30)

    async def kill(self) -> None:
        """Stop without a word to the group."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await crash(self.consumer)
