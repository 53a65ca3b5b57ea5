"""How long a partition that moves to another member is not read: ten members, one of which comes and goes.

All members are in this process, or each of kohort's in one of its own, as services run. What is counted is,
for each partition that came to the tenth or went from it, the time between the last record its old owner read
and the first one its new owner read, while records flow all the time. That an assignor moves others'
partitions as well is not counted.

Between clients that takes a record of each partition every 20 ms, and so the time is some 10 ms too long:
more records would measure how quickly the members read. Between kohort's two protocols few records flow. A
partition gets one more at the moment when its old owner has stopped to read it, which is there before anybody
can ask for it, and the time begins at that moment.

kohort's consumer is closed while it is being read, by another task, as a service does: it reads on until the
others are ready to take over. The others have no such way. Where members have processes of their own, the
tenth is a new process each time that it joins.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import threading
import time
import uuid
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from . import _moving_member
from ._brokers import ROOT
from ._clients import aiokafka_consumer, confluent_consumer
from ._consumer_rows import MOVING_PARTITIONS
from ._rows import Figures

Job = dict[str, Any]
MEMBERS = 10
#: How often the tenth joins and leaves again.
TIMES, PROTOCOL_TIMES = 4, 8
#: A partition gets a record this often.
PACE_S, PROTOCOL_PACE_S = 0.02, 0.2
HEARTBEAT_MS = 1_000
_TIMEOUT_S = 60
_THREADS = ThreadPoolExecutor(MEMBERS)


class Reads:
    """Who read which partition when. ``stopped`` is called with a partition whose owner reads it no more."""

    def __init__(self, stopped: Callable[[int], None]) -> None:
        self._of: dict[int, list[tuple[float, int]]] = defaultdict(list)
        self._stopped = stopped

    def add(self, partition: int, member: int, at_s: float | None = None) -> None:
        """At that time of the monotonic clock, or now."""
        insort(self._of[partition], (time.monotonic() if at_s is None else at_s, member))

    def stop(self, partition: int, member: int) -> None:
        self.add(partition, member)
        self._stopped(partition)

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
        from confluent_kafka import Producer

        super().__init__(daemon=True)
        self.stop = threading.Event()
        self._topic, self._pace_s = job["topic"], job["pace_s"]
        self._producer = Producer({"bootstrap.servers": job["bootstrap"], "linger.ms": 0, "acks": "1"})

    def send(self, partition: int) -> None:
        self._producer.produce(self._topic, b"x" * 100, partition=partition)

    def run(self) -> None:
        due, number = time.monotonic(), 0
        while not self.stop.is_set():
            self.send(number % MOVING_PARTITIONS)
            self._producer.poll(0)
            number += 1
            due += self._pace_s / MOVING_PARTITIONS
            if (rest := due - time.monotonic()) > 0:
                time.sleep(rest)
        self._producer.flush(10)


#: Reads as a member until the event is set, then leaves.
Member = Callable[[Job, int, Reads, asyncio.Event], Coroutine[Any, Any, None]]


async def _moves(job: Job, member: Member, *, times: int = TIMES) -> Figures:
    job = {"pace_s": PACE_S, "heartbeat_ms": HEARTBEAT_MS, **job, "group": f"moves-{uuid.uuid4().hex[:12]}"}
    producer = _Producer(job)
    reads = Reads(producer.send)
    stops = [asyncio.Event() for _ in range(MEMBERS)]
    async with asyncio.TaskGroup() as tasks:
        for number in range(MEMBERS - 1):
            tasks.create_task(member(job, number, reads, stops[number]))
        producer.start()
        await until(lambda: len(set(reads.owners().values())) == MEMBERS - 1)
        await asyncio.sleep(2 * HEARTBEAT_MS / 1000)
        last, share = MEMBERS - 1, MOVING_PARTITIONS // MEMBERS
        wait = random.Random(1)
        joins: list[float] = []
        leaves: list[float] = []
        for _ in range(times):
            stops[last].clear()
            since = time.monotonic()
            tasks.create_task(member(job, last, reads, stops[last]))
            await until(lambda: list(reads.owners().values()).count(last) == share)
            await _rest(wait)
            joins += reads.pauses_ms(last, since)
            since = time.monotonic()
            stops[last].set()
            await until(lambda: last not in reads.owners().values())
            await _rest(wait)
            leaves += reads.pauses_ms(last, since)
        for stop in stops:
            stop.set()
    producer.stop.set()
    return {"join_ms": statistics.median(joins), "leave_ms": statistics.median(leaves)}


async def _rest(wait: random.Random) -> None:
    """Until the group is quiet, for no certain time: what follows must not be in step with heartbeats."""
    await asyncio.sleep((1.5 + wait.random()) * HEARTBEAT_MS / 1000)


async def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError("the group did not settle")
        await asyncio.sleep(0.02)


async def confluent_moves(job: Job) -> Figures:
    return await _moves(job, _confluent)


async def aiokafka_moves(job: Job) -> Figures:
    return await _moves(job, _aiokafka)


async def kohort_moves(job: Job) -> Figures:
    return await _moves(job, kohort_member)


async def kohort_classic_moves(job: Job) -> Figures:
    return await _protocol_moves(job, "classic")


async def kohort_consumer_moves(job: Job) -> Figures:
    return await _protocol_moves(job, "consumer")


async def _protocol_moves(job: Job, protocol: str) -> Figures:
    """Of members in this process, and of those in processes of their own."""
    job = {**job, "pace_s": PROTOCOL_PACE_S, "protocol": protocol}
    figures = await _moves(job, kohort_member, times=PROTOCOL_TIMES)
    apart = await _moves(job, member_process, times=PROTOCOL_TIMES)
    return figures | {f"process_{name}": figure for name, figure in apart.items()}


async def _confluent(job: Job, number: int, reads: Reads, stop: asyncio.Event) -> None:
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


async def _aiokafka(job: Job, number: int, reads: Reads, stop: asyncio.Event) -> None:
    async with aiokafka_consumer(job, heartbeat_interval_ms=HEARTBEAT_MS) as consumer:
        while not stop.is_set():
            for partition, records in (await consumer.getmany(timeout_ms=100)).items():
                for _ in records:
                    reads.add(partition.partition, number)


async def kohort_member(job: Job, number: int, reads: Reads, stop: asyncio.Event) -> None:
    await _moving_member.run(
        job,
        stop,
        lambda partition: reads.add(partition, number),
        lambda partition: reads.stop(partition, number),
    )


async def member_process(job: Job, number: int, reads: Reads, stop: asyncio.Event) -> None:
    """kohort's consumer in a process of its own, which produces what begins a measurement by itself."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", "benchmarks._moving_member", json.dumps(job)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=pipe, stdout=pipe)
    told, lines = process.stdin, process.stdout
    assert told is not None
    assert lines is not None
    stopping = asyncio.create_task(stop.wait())
    stopping.add_done_callback(lambda _: told.close())
    try:
        async for line in lines:
            partition, at_s = line.split()
            reads.add(int(partition), number, float(at_s))
        if await process.wait() or not stop.is_set():
            raise RuntimeError(f"member {number} ended by itself, with status {process.returncode}")
    finally:
        # one that still runs ends with its input
        stopping.cancel()
