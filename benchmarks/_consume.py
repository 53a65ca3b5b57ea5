"""One measurement of one client in a process of its own: ``python -m benchmarks._consume`` with JSON.

Prints the figures as JSON. What is counted: from the first record to the last one; joining is not.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from typing import Any

from ._clients import aiokafka_consumer, confluent_consumer, kafka_python_consumer, kohort_settings
from ._rows import Figures

Job = dict[str, Any]
_BATCH = 500
#: Bytes of each value, as ``produce`` writes it.
VALUE_SIZE = 100


class Clock:
    """Counts records from the first ones on; ``add`` says whether there are more to come.

    ``size`` is what their values come to: every client has to give each of them. ``cpu_us`` of the figures is
    the processor time of a record, all threads together.
    """

    def __init__(self, records: int) -> None:
        self._left = records
        self._size = records * VALUE_SIZE
        self._counted = 0
        self._began = self._began_work = 0.0

    def add(self, count: int, size: int) -> bool:
        now = time.perf_counter()
        if not self._began:
            self._began, self._began_work = now, time.process_time()
        else:
            self._counted += count
        self._left -= count
        self._size -= size
        self.took, self._worked = now - self._began, time.process_time() - self._began_work
        return self._left > 0

    def figures(self) -> Figures:
        if self._size:
            raise RuntimeError(f"the values read were {-self._size} bytes longer than those written")
        return {"per_second": self._counted / self.took, "cpu_us": self._worked * 1e6 / self._counted}


# Reading record by record: a loop with as little in it as there can be.


def kafka_python_one(job: Job) -> Figures:
    clock, left, size = Clock(job["records"]), job["records"] - 1, 0
    consumer = kafka_python_consumer(job)
    clock.add(1, len(next(consumer).value))
    for record in consumer:
        size += len(record.value)
        left -= 1
        if not left:
            break
    clock.add(job["records"] - 1, size)
    return clock.figures()


def confluent_one(job: Job) -> Figures:
    consumer = confluent_consumer(job)
    clock, left, size, poll = Clock(job["records"]), job["records"] - 1, 0, consumer.poll
    while (message := poll(1.0)) is None:
        pass
    clock.add(1, len(message.value()))
    while left:
        message = poll(1.0)
        if message is not None:
            size += len(message.value())
            left -= 1
    clock.add(job["records"] - 1, size)
    consumer.close()
    return clock.figures()


async def aiokafka_one(job: Job) -> Figures:
    async with aiokafka_consumer(job) as consumer:
        clock, left, size = Clock(job["records"]), job["records"] - 1, 0
        clock.add(1, len((await anext(consumer)).value))
        async for record in consumer:
            size += len(record.value)
            left -= 1
            if not left:
                break
        clock.add(job["records"] - 1, size)
        return clock.figures()


async def kohort_one(job: Job) -> Figures:
    """Marks each record done, as the two below do."""
    from kohort.consumer import AsyncGroupConsumer

    async with AsyncGroupConsumer(job["topic"], **kohort_settings(job)) as consumer:
        clock, left, size, done = Clock(job["records"]), job["records"] - 1, 0, consumer.done
        first = await anext(consumer)
        done(first)
        clock.add(1, len(first.value or b""))
        async for record in consumer:
            size += len(record.value or b"")
            done(record)
            left -= 1
            if not left:
                break
        clock.add(job["records"] - 1, size)
        return clock.figures()


def kohort_blocking_one(job: Job) -> Figures:
    from kohort.consumer import GroupConsumer

    with GroupConsumer(job["topic"], **kohort_settings(job)) as consumer:
        clock, left, size, done = Clock(job["records"]), job["records"] - 1, 0, consumer.done
        records = iter(consumer)
        first = next(records)
        done(first)
        clock.add(1, len(first.value or b""))
        for record in records:
            size += len(record.value or b"")
            done(record)
            left -= 1
            if not left:
                break
        clock.add(job["records"] - 1, size)
        return clock.figures()


# Batches


def confluent_batches(job: Job) -> Figures:
    consumer, clock = confluent_consumer(job), Clock(job["records"])
    more = True
    while more:
        if batch := consumer.consume(_BATCH, 1.0):
            more = clock.add(len(batch), sum([len(message.value()) for message in batch]))
    consumer.close()
    return clock.figures()


async def aiokafka_batches(job: Job) -> Figures:
    async with aiokafka_consumer(job) as consumer:
        clock, more = Clock(job["records"]), True
        while more:
            found = await consumer.getmany(timeout_ms=1_000, max_records=_BATCH)
            for batch in found.values():
                more = clock.add(len(batch), sum([len(record.value) for record in batch]))
        return clock.figures()


async def kohort_batches(job: Job) -> Figures:
    from kohort.consumer import AsyncGroupConsumer

    async with AsyncGroupConsumer(job["topic"], **kohort_settings(job)) as consumer:
        clock, more = Clock(job["records"]), True
        while more:
            if batch := await consumer.getmany(_BATCH):
                more = clock.add(len(batch), sum([len(record.value or b"") for record in batch]))
                consumer.done_all(batch)
        return clock.figures()


async def kohort_arrow(job: Job) -> Figures:
    import pyarrow.compute as pc

    from kohort.consumer import AsyncGroupConsumer

    async with AsyncGroupConsumer(job["topic"], **kohort_settings(job)) as consumer:
        clock = Clock(job["records"])
        async for batch in consumer.arrow_batches():
            size = pc.sum(pc.binary_length(batch.column("value"))).as_py()
            consumer.done_batch(batch)
            if not clock.add(batch.num_rows, size):
                break
        return clock.figures()


def main() -> int:
    job = json.loads(sys.argv[1])
    # none of them is loaded for another one's sake: what is loaded takes memory
    module = importlib.import_module(f".{job['module']}", __package__)
    work = getattr(module, job["work"])
    figures = asyncio.run(work(job)) if asyncio.iscoroutinefunction(work) else work(job)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
