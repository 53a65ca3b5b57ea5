"""Measurements of one client beyond reading as quickly as it can: latency and memory."""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from ._clients import aiokafka_consumer, confluent_consumer, kohort_settings, resident_mib
from ._load import percentile
from ._rows import Figures

Job = dict[str, Any]
_STAMP = struct.Struct(">d")
#: Records that are there before what is counted: joining and warming up.
_WARM = 500


class _Arrivals:
    """Milliseconds from produce to handler of each record."""

    def __init__(self, job: Job) -> None:
        self._left = job["records"]
        self._took: list[float] = []

    def add(self, value: bytes) -> bool:
        self._took.append((time.perf_counter() - _STAMP.unpack_from(value)[0]) * 1000)
        self._left -= 1
        return self._left > 0

    def figures(self) -> Figures:
        counted = sorted(self._took[_WARM:])
        return {"p50_ms": percentile(counted, 0.5), "p99_ms": percentile(counted, 0.99)}


def _produce_steadily(job: Job, ready: Callable[[], bool]) -> None:
    """1,000 records a second, each with the time it was made, once the consumer is ready."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": job["bootstrap"], "linger.ms": 0, "acks": "1"})
    while not ready():
        time.sleep(0.05)
    due = time.perf_counter()
    for _ in range(job["records"]):
        due += 0.001
        if (rest := due - time.perf_counter()) > 0:
            time.sleep(rest)
        producer.produce(job["topic"], _STAMP.pack(time.perf_counter()) + b"x" * 92, partition=0)
        producer.poll(0)
    producer.flush(10)


def _producing(job: Job, ready: Callable[[], bool]) -> None:
    threading.Thread(target=_produce_steadily, args=(job, ready), daemon=True).start()


def confluent_latency(job: Job) -> Figures:
    consumer, arrivals = confluent_consumer(job), _Arrivals(job)
    while not consumer.assignment():
        consumer.poll(0.1)
    _producing(job, lambda: True)
    more = True
    while more:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            more = arrivals.add(message.value())
    consumer.close()
    return arrivals.figures()


async def aiokafka_latency(job: Job) -> Figures:
    arrivals = _Arrivals(job)
    async with aiokafka_consumer(job) as consumer:
        _producing(job, lambda: bool(consumer.assignment()))
        async for record in consumer:
            if not arrivals.add(record.value):
                break
    return arrivals.figures()


async def kohort_latency(job: Job) -> Figures:
    from kohort.consumer import AsyncGroupConsumer

    arrivals = _Arrivals(job)
    async with AsyncGroupConsumer(job["topic"], **kohort_settings(job)) as consumer:
        _producing(job, lambda: bool(consumer.assignment()))
        async for record in consumer:
            more = arrivals.add(record.value or b"")
            consumer.done(record)
            if not more:
                break
    return arrivals.figures()


# memory: a consumer that was given 100 partitions and takes nothing more


def confluent_memory(job: Job) -> Figures:
    import confluent_kafka  # noqa: F401 - what the library itself takes is not what is asked

    before = resident_mib()
    # its default of what may wait: 64 MiB
    consumer = confluent_consumer(job)
    while consumer.poll(1.0) is None:
        pass
    time.sleep(job["rest_s"])
    grown = resident_mib() - before
    consumer.close()
    return {"mib": grown}


async def kohort_memory(job: Job) -> Figures:
    from kohort.consumer import AsyncGroupConsumer
    from kohort.consumer.decode import prepare

    prepare()  # as above
    consumer = AsyncGroupConsumer(job["topic"], **kohort_settings(job))
    before = resident_mib()
    async with consumer:
        await anext(consumer)
        await asyncio.sleep(job["rest_s"])
        return {"mib": resident_mib() - before}
