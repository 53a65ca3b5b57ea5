"""One measurement of one client in a process of its own: ``python -m benchmarks._consume`` with JSON.

Prints the figures as JSON. What is counted: from the first record to the last one; joining is not.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from ._clients import aiokafka_consumer, confluent_consumer, kafka_python_consumer, kohort_settings
from ._rows import Figures

Job = dict[str, Any]
_BATCH = 500


class Clock:
    """Counts records from the first ones on; ``add`` says whether there are more to come.

    ``cpu_us`` of its figures is the processor time of a record, all threads together.
    """

    def __init__(self, records: int) -> None:
        self._left = records
        self._counted = 0
        self._began = self._began_work = 0.0

    def add(self, count: int) -> bool:
        now = time.perf_counter()
        if not self._began:
            self._began, self._began_work = now, time.process_time()
        else:
            self._counted += count
        self._left -= count
        self.took, self._worked = now - self._began, time.process_time() - self._began_work
        return self._left > 0

    def figures(self) -> Figures:
        return {"per_second": self._counted / self.took, "cpu_us": self._worked * 1e6 / self._counted}


def _one_by_one(records: Iterator[Any], job: Job, done: Callable[[Any], object] | None = None) -> Figures:
    """A loop with as little in it as there can be, for all clients."""
    clock, left = Clock(job["records"]), job["records"] - 1
    first = next(records)
    if done is not None:
        done(first)
    clock.add(1)
    for record in records:
        if done is not None:
            done(record)
        left -= 1
        if not left:
            break
    clock.add(job["records"] - 1)
    return clock.figures()


# kafka-python


def kafka_python_one(job: Job) -> Figures:
    return _one_by_one(iter(kafka_python_consumer(job)), job)


# confluent-kafka


def confluent_one(job: Job) -> Figures:
    consumer = confluent_consumer(job)
    try:
        return _one_by_one((m for m in iter(lambda: consumer.poll(1.0), 0) if m is not None), job)
    finally:
        consumer.close()


def confluent_batches(job: Job) -> Figures:
    consumer, clock = confluent_consumer(job), Clock(job["records"])
    more = True
    while more:
        batch = consumer.consume(_BATCH, 1.0)
        more = clock.add(len(batch)) if batch else more
    consumer.close()
    return clock.figures()


# aiokafka


async def aiokafka_one(job: Job) -> Figures:
    async with aiokafka_consumer(job) as consumer:
        clock, left = Clock(job["records"]), job["records"] - 1
        await anext(consumer)
        clock.add(1)
        async for _ in consumer:
            left -= 1
            if not left:
                break
        clock.add(job["records"] - 1)
        return clock.figures()


async def aiokafka_batches(job: Job) -> Figures:
    async with aiokafka_consumer(job) as consumer:
        clock, more = Clock(job["records"]), True
        while more:
            found = await consumer.getmany(timeout_ms=1_000, max_records=_BATCH)
            count = sum(map(len, found.values()))
            more = clock.add(count) if count else more
        return clock.figures()


# kohort: whatever is read is marked done


async def kohort_one(job: Job) -> Figures:
    from kohort.consumer import AsyncGroupConsumer

    async with AsyncGroupConsumer(job["topic"], **kohort_settings(job)) as consumer:
        clock, left, done = Clock(job["records"]), job["records"] - 1, consumer.done
        done(await anext(consumer))
        clock.add(1)
        async for record in consumer:
            done(record)
            left -= 1
            if not left:
                break
        clock.add(job["records"] - 1)
        return clock.figures()


def kohort_blocking_one(job: Job) -> Figures:
    from kohort.consumer import GroupConsumer

    with GroupConsumer(job["topic"], **kohort_settings(job)) as consumer:
        return _one_by_one(iter(consumer), job, consumer.done)


async def kohort_batches(job: Job) -> Figures:
    from kohort.consumer import AsyncGroupConsumer

    async with AsyncGroupConsumer(job["topic"], **kohort_settings(job)) as consumer:
        clock, more = Clock(job["records"]), True
        while more:
            batch = await consumer.getmany(_BATCH)
            consumer.done_all(batch)
            more = clock.add(len(batch)) if batch else more
        return clock.figures()


async def kohort_arrow(job: Job) -> Figures:
    from kohort.consumer import AsyncGroupConsumer

    async with AsyncGroupConsumer(job["topic"], **kohort_settings(job)) as consumer:
        clock = Clock(job["records"])
        async for batch in consumer.arrow_batches():
            consumer.done_batch(batch)
            if not clock.add(batch.num_rows):
                break
        return clock.figures()


def main() -> int:
    from . import _consume_more

    job = json.loads(sys.argv[1])
    work = globals().get(job["work"]) or getattr(_consume_more, job["work"])
    figures = asyncio.run(work(job)) if asyncio.iscoroutinefunction(work) else work(job)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
