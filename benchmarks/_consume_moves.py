"""How long a partition that moves to another member is not read: ten members, one of which comes and goes.

All members are in this process. What is counted is, for each partition that came to the tenth or went from
it, the time between the last record its old owner read and the first one its new owner read, while records
flow all the time. That an assignor moves others' partitions as well is not counted.

kohort's consumer is closed while it is being read, by another task, as a service does: it reads on until the
others are ready to take over. The others have no such way.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

from ._clients import aiokafka_consumer, confluent_consumer, kohort_settings
from ._consumer_rows import MOVING_PARTITIONS
from ._rows import Figures

Job = dict[str, Any]
MEMBERS = 10
#: How often the tenth joins and leaves again.
TIMES = 4
#: A partition gets a record this often.
PACE_S = 0.02
HEARTBEAT_MS = 1_000
_TIMEOUT_S = 60
_THREADS = ThreadPoolExecutor(MEMBERS)


class _Reads:
    """Who read which partition when."""

    def __init__(self) -> None:
        self._of: dict[int, list[tuple[float, int]]] = defaultdict(list)

    def add(self, partition: int, member: int) -> None:
        self._of[partition].append((time.perf_counter(), member))

    def owners(self) -> dict[int, int]:
        """Who read each partition last."""
        return {partition: reads[-1][1] for partition, reads in list(self._of.items())}

    def pauses_ms(self, member: int, since: float) -> list[float]:
        """Of the partitions that came to this member, or went from it, since."""
        return [
            (later - earlier) * 1000
            for reads in self._of.values()
            for (earlier, before), (later, after) in pairwise(reads)
            if before != after and member in (before, after) and later > since
        ]


class _Producer(threading.Thread):
    """A record for each partition by turns, until ``stop`` is set."""

    def __init__(self, job: Job) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self._job = job

    def run(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._job["bootstrap"], "linger.ms": 0, "acks": "1"})
        due, number = time.perf_counter(), 0
        while not self.stop.is_set():
            producer.produce(self._job["topic"], b"x" * 100, partition=number % MOVING_PARTITIONS)
            producer.poll(0)
            number += 1
            due += PACE_S / MOVING_PARTITIONS
            if (rest := due - time.perf_counter()) > 0:
                time.sleep(rest)
        producer.flush(10)


#: Reads as a member until the event is set, then leaves.
Member = Callable[[Job, int, _Reads, asyncio.Event], Coroutine[Any, Any, None]]


async def _moves(job: Job, member: Member) -> Figures:
    job = {**job, "group": f"moves-{uuid.uuid4().hex[:12]}"}
    reads, producer = _Reads(), _Producer(job)
    stops = [asyncio.Event() for _ in range(MEMBERS)]
    async with asyncio.TaskGroup() as tasks:
        for number in range(MEMBERS - 1):
            tasks.create_task(member(job, number, reads, stops[number]))
        producer.start()
        await _until(lambda: len(set(reads.owners().values())) == MEMBERS - 1)
        await asyncio.sleep(2 * HEARTBEAT_MS / 1000)
        last, share = MEMBERS - 1, MOVING_PARTITIONS // MEMBERS
        wait = random.Random(1)
        joins: list[float] = []
        leaves: list[float] = []
        for _ in range(TIMES):
            stops[last].clear()
            since = time.perf_counter()
            tasks.create_task(member(job, last, reads, stops[last]))
            await _until(lambda: list(reads.owners().values()).count(last) == share)
            await _rest(wait)
            joins += reads.pauses_ms(last, since)
            since = time.perf_counter()
            stops[last].set()
            await _until(lambda: last not in reads.owners().values())
            await _rest(wait)
            leaves += reads.pauses_ms(last, since)
        for stop in stops:
            stop.set()
    producer.stop.set()
    return {"join_ms": statistics.median(joins), "leave_ms": statistics.median(leaves)}


async def _rest(wait: random.Random) -> None:
    """Until the group is quiet, for no certain time: what follows must not be in step with heartbeats."""
    await asyncio.sleep((1.5 + wait.random()) * HEARTBEAT_MS / 1000)


async def _until(reached: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + _TIMEOUT_S
    while not reached():
        if time.perf_counter() > deadline:
            raise TimeoutError("the group did not settle")
        await asyncio.sleep(0.02)


async def confluent_moves(job: Job) -> Figures:
    return await _moves(job, _confluent)


async def aiokafka_moves(job: Job) -> Figures:
    return await _moves(job, _aiokafka)


async def kohort_moves(job: Job) -> Figures:
    return await _moves(job, _kohort)


async def kohort_classic_moves(job: Job) -> Figures:
    return await _moves(job, partial(_kohort, protocol="classic"))


async def kohort_consumer_moves(job: Job) -> Figures:
    return await _moves(job, partial(_kohort, protocol="consumer"))


async def _confluent(job: Job, number: int, reads: _Reads, stop: asyncio.Event) -> None:
    def read() -> None:
        consumer = confluent_consumer(
            job,
            **{"partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": HEARTBEAT_MS},
        )
        while not stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                reads.add(message.partition(), number)
        consumer.close()

    await asyncio.get_running_loop().run_in_executor(_THREADS, read)


async def _aiokafka(job: Job, number: int, reads: _Reads, stop: asyncio.Event) -> None:
    async with aiokafka_consumer(job, heartbeat_interval_ms=HEARTBEAT_MS) as consumer:
        while not stop.is_set():
            for partition, records in (await consumer.getmany(timeout_ms=100)).items():
                for _ in records:
                    reads.add(partition.partition, number)


async def _kohort(
    job: Job, number: int, reads: _Reads, stop: asyncio.Event, *, protocol: str | None = None
) -> None:
    """With ``protocol``, heartbeats come as often as the size of the group allows."""
    from kohort.consumer import AsyncGroupConsumer

    own = {"heartbeat_interval_ms": HEARTBEAT_MS} if protocol is None else {"protocol": protocol}
    settings = {**kohort_settings(job), **own}
    async with AsyncGroupConsumer(job["topic"], **settings) as consumer:

        async def close() -> None:
            await stop.wait()
            await consumer.close()

        closing = asyncio.create_task(close())
        # ends when the consumer is closed: what comes until then is read
        async for record in consumer:
            reads.add(record.partition, number)
            consumer.done(record)
        await closing
