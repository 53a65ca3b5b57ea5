"""Share consumers' works, each run by ``benchmarks._consume`` in a process of its own.

What is counted: from the first record to the last one, all of them accepted; joining is not. Each client has
its defaults, but for explicit acknowledgements where each record is accepted by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._consume import Clock
from ._consume_more import ArrivalTimes
from ._rows import Figures

if TYPE_CHECKING:
    from kohort.consumer import ShareConsumer
    from kohort.consumer.share.records import ShareRecord
    from kohort.protocol import KohortError

Job = dict[str, Any]


def _confluent_consumer(job: Job, **settings: Any) -> Any:
    from confluent_kafka import ShareConsumer

    servers, group = job["bootstrap"], job["group"]
    consumer = ShareConsumer({"bootstrap.servers": servers, "group.id": group, "log_level": 3, **settings})
    consumer.subscribe([job["topic"]])
    return consumer


def _consumer(job: Job) -> ShareConsumer:
    from kohort.consumer import ShareConsumer

    return ShareConsumer(job["topic"], bootstrap=job["bootstrap"], group=job["group"])


def _check_answers(answers: dict[ShareRecord, KohortError | None]) -> None:
    if wrong := [error for error in answers.values() if error is not None]:
        raise RuntimeError(f"{len(wrong)} acknowledgements do not count: {wrong[0]}")


# As quickly as can be, whatever is the client's way


def confluent_drain(job: Job) -> Figures:
    consumer, clock, more = _confluent_consumer(job), Clock(job["records"]), True
    while more:
        if batch := consumer.poll(1.0):
            more = clock.add(len(batch), sum([len(message.value()) for message in batch]))
    consumer.commit_sync()
    consumer.close()
    return clock.figures()


async def kohort_drain(job: Job) -> Figures:
    async with _consumer(job) as consumer:
        clock = Clock(job["records"])
        async for batch in consumer.batches():
            consumer.accept(batch)
            if not clock.add(len(batch), sum([len(record.value or b"") for record in batch])):
                break
        _check_answers(await consumer.flush())
        return clock.figures()


# Record by record, each accepted by itself


def confluent_one(job: Job) -> Figures:
    consumer = _confluent_consumer(job, **{"share.acknowledgement.mode": "explicit"})
    clock, acknowledge, more = Clock(job["records"]), consumer.acknowledge, True
    while more:
        count = size = 0
        for message in consumer.poll(1.0):
            size += len(message.value())
            acknowledge(message)
            count += 1
        if count:
            more = clock.add(count, size)
    if wrong := [error for error in consumer.commit_sync().values() if error is not None]:
        raise RuntimeError(f"acknowledgements do not count: {wrong[0]}")
    consumer.close()
    return clock.figures()


async def kohort_one(job: Job) -> Figures:
    async with _consumer(job) as consumer:
        clock, left, size = Clock(job["records"]), job["records"] - 1, 0
        first = await anext(consumer)
        first.accept()
        clock.add(1, len(first.value or b""))
        async for record in consumer:
            size += len(record.value or b"")
            record.accept()
            left -= 1
            if not left:
                break
        clock.add(job["records"] - 1, size)
        _check_answers(await consumer.flush())
        return clock.figures()


def kohort_blocking_one(job: Job) -> Figures:
    from kohort.consumer import BlockingShareConsumer

    with BlockingShareConsumer(job["topic"], bootstrap=job["bootstrap"], group=job["group"]) as consumer:
        clock, left, size = Clock(job["records"]), job["records"] - 1, 0
        records = iter(consumer)
        first = next(records)
        first.accept()
        clock.add(1, len(first.value or b""))
        for record in records:
            size += len(record.value or b"")
            record.accept()
            left -= 1
            if not left:
                break
        clock.add(job["records"] - 1, size)
        _check_answers(consumer.flush())
        return clock.figures()


# Records that come one by one: another process produces


def confluent_latency(job: Job) -> Figures:
    consumer = _confluent_consumer(job, **{"share.acknowledgement.mode": "explicit"})
    arrivals, more = ArrivalTimes(job), True
    while more:
        for message in consumer.poll(1.0):
            more = arrivals.add(message.value())
            consumer.acknowledge(message)
    consumer.commit_sync()
    consumer.close()
    return arrivals.figures()


async def kohort_latency(job: Job) -> Figures:
    arrivals = ArrivalTimes(job)
    async with _consumer(job) as consumer:
        async for record in consumer:
            more = arrivals.add(record.value or b"")
            record.accept()
            if not more:
                break
        _check_answers(await consumer.flush())
    return arrivals.figures()
