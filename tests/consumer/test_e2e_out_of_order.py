"""Records done in any order by many handlers at a time, in a process that dies again and again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from kohort.consumer import AsyncGroupConsumer, Cluster
from kohort.consumer.group import messages as group_messages
from kohort.consumer.group.consumer_group import ConsumerMembership
from tests.consumer.conftest import QUICK, both_protocols
from tests.consumer.members import crash
from tests.waiting import until

pytestmark = [pytest.mark.kafka, both_protocols]

RECORDS = 4_000
HANDLERS = 32
KILLS = 50


class _Ledger:
    """What was handled over all lives. ``safe`` is what a commit that succeeded has told as done."""

    def __init__(self) -> None:
        self.handled = [0] * RECORDS
        self.safe: set[int] = set()
        self.redone_though_safe: list[int] = []
        #: Records that were in somebody's hands, or not yet committed as done, when their reader was killed.
        self.may_be_redone = 0


async def _live_and_die(settings: dict[str, Any], topic: str, ledger: _Ledger, rng: random.Random) -> None:
    """One life: 32 handlers with random delays, commits now and then, until it is killed."""
    in_flight: set[int] = set()
    since_commit: set[int] = set()
    consumer = AsyncGroupConsumer(topic, enable_auto_commit=False, max_poll_records=HANDLERS, **settings)
    await consumer.start()
    queue: asyncio.Queue[Any] = asyncio.Queue(HANDLERS)

    async def feed() -> None:
        async for record in consumer:
            await queue.put(record)

    async def handle() -> None:
        while True:
            record = await queue.get()
            number = int(record.value)
            if number in ledger.safe:
                ledger.redone_though_safe.append(number)
            in_flight.add(number)
            await asyncio.sleep(rng.random() * 0.005 if rng.random() < 0.9 else 0.03)
            ledger.handled[number] += 1
            since_commit.add(number)
            consumer.done(record)
            in_flight.discard(number)

    async def commit() -> None:
        while True:
            told = set(since_commit)
            await consumer.commit()
            ledger.safe |= told
            since_commit.difference_update(told)
            await asyncio.sleep(0.003)

    tasks = [asyncio.create_task(work) for work in (feed(), commit(), *(handle() for _ in range(HANDLERS)))]
    enough = sum(map(bool, ledger.handled)) + RECORDS // (KILLS + 10)
    await until(lambda: sum(map(bool, ledger.handled)) >= min(enough, RECORDS))
    ledger.may_be_redone += len(since_commit | in_flight)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await crash(consumer)
    await _free_seat(consumer)
    await consumer.close(timeout_ms=100)


async def _free_seat(dead: AsyncGroupConsumer) -> None:
    """A coordinator that assigns keeps a static member's seat until its session ends: end it."""
    membership, config = dead.parts.membership, dead.parts.driver.config
    if isinstance(membership, ConsumerMembership):
        leave = group_messages.leave_consumer_group(config, membership.member_id)
        async with Cluster(config.bootstrap) as cluster:
            await cluster.request_coordinator(config.group, leave.body)


@pytest.mark.slow(4)
async def test_32_handlers_killed_50_times_lose_nothing_and_redo_what_was_not_committed_as_done(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str], produce: Callable[..., None]
) -> None:
    topic, name = new_topic("orders", partitions=2), group("billing")
    await asyncio.to_thread(produce, topic, range(RECORDS), partitions=2)
    # a static member has its seat back without a wait for its session's end
    settings = {**QUICK, "bootstrap": bootstrap, "group": name, "group_instance_id": "only"}
    ledger, rng = _Ledger(), random.Random(7)
    for _ in range(KILLS):
        await _live_and_die(settings, topic, ledger, rng)
    async with asyncio.timeout(30):
        while not all(ledger.handled):
            await _live_and_die(settings, topic, ledger, rng)
    assert ledger.redone_though_safe == []
    assert sum(ledger.handled) - RECORDS <= ledger.may_be_redone
