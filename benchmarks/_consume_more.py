"""Measurements of one client beyond reading as quickly as it can: latency and memory."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
import sys
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


class ArrivalTimes:
    """Milliseconds from produce to handler of each record."""

    def __init__(self, job: Job) -> None:
        self._left: int = job["records"]
        self._took: list[float] = []

    def add(self, value: bytes) -> bool:
        self._took.append((time.perf_counter() - _STAMP.unpack_from(value)[0]) * 1000)
        self._left -= 1
        return self._left > 0

    def figures(self) -> Figures:
        counted = sorted(self._took[_WARM:])
        return {"p50_ms": percentile(counted, 0.5), "p99_ms": percentile(counted, 0.99)}


def produce_steadily(job: Job, ready: Callable[[], bool]) -> None:
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
    threading.Thread(target=produce_steadily, args=(job, ready), daemon=True).start()


def confluent_latency(job: Job) -> Figures:
    consumer, arrivals = confluent_consumer(job), ArrivalTimes(job)
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
    arrivals = ArrivalTimes(job)
    async with aiokafka_consumer(job) as consumer:
        _producing(job, lambda: bool(consumer.assignment()))
        async for record in consumer:
            if not arrivals.add(record.value):
                break
    return arrivals.figures()


async def kohort_latency(job: Job) -> Figures:
    from kohort.consumer import AsyncGroupConsumer

    arrivals = ArrivalTimes(job)
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
    from kohort.consumer.reading.fetched_records import prepare_checksum

    prepare_checksum()  # as above
    consumer = AsyncGroupConsumer(job["topic"], **kohort_settings(job))
    before = resident_mib()
    async with consumer:
        await anext(consumer)
        await asyncio.sleep(job["rest_s"])
        return {"mib": resident_mib() - before}


# memory: a partition whose window is full waits, while another one of the same answers is busy

#: Records of the partition that waits: its window; and what both get in a second.
_WINDOW, _FEW_A_SECOND, _MANY_A_SECOND = 100, 50, 5_000
_VALUE = bytes(2_000)
#: Of ``rest_s``, what it is watched for.
_WATCHED = 4


def write_window(job: Job) -> Figures:
    """What both partitions get."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": job["bootstrap"], "linger.ms": 20, "acks": "1"})
    until = time.monotonic() + job["rest_s"] * (_WATCHED + 2)
    written = 0
    while time.monotonic() < until:
        began = time.monotonic()
        for number in range(_MANY_A_SECOND // 10):
            producer.produce(job["topic"], _VALUE, partition=1)
            if number % (_MANY_A_SECOND // _FEW_A_SECOND) == 0:
                producer.produce(job["topic"], b"x", partition=0)
        producer.poll(0)
        written += _MANY_A_SECOND // 10
        time.sleep(max(0.0, began + 0.1 - time.monotonic()))
    producer.flush(10)
    return {"per_second": written / (job["rest_s"] * (_WATCHED + 2))}


def _writing_window(job: Job) -> subprocess.Popen[bytes]:
    """In a process of its own: what the producer keeps in memory is not what is asked."""
    work = json.dumps({**job, "work": "write_window"})
    return subprocess.Popen([sys.executable, "-m", "benchmarks._consume", work], stdout=subprocess.DEVNULL)


async def kohort_window(job: Job) -> Figures:
    """What is resident more after a while in which nothing of partition 0 is done."""
    from kohort.consumer import AsyncGroupConsumer

    writing = _writing_window(job)
    settings = {**kohort_settings(job), "max_undone_records": _WINDOW}
    try:
        async with AsyncGroupConsumer(job["topic"], **settings) as consumer:
            waiting = busy = 0
            before, ends = 0.0, float("inf")
            while (now := time.monotonic()) < ends:
                for record in await consumer.getmany(500, 200):
                    if record.partition:
                        consumer.done(record)
                        busy += 1
                    else:
                        waiting += 1
                if waiting == _WINDOW and not before:
                    before, ends = resident_mib(), now + _WATCHED * job["rest_s"]
                    busy = 0
            if not busy:
                raise RuntimeError("the busy partition was not read")
            return {"mib": max(0.01, resident_mib() - before)}
    finally:
        writing.kill()
        writing.wait()


# a record that hangs: what the consumer keeps of all that is done behind it, and what a commit then takes


def kohort_hung(job: Job) -> Figures:
    """Without a broker: what is looked at is what is delivered and done."""
    from kohort.consumer import AsyncGroupConsumer, Record
    from kohort.protocol import TopicPartition

    partition = TopicPartition(job["topic"], 0)
    tracker = AsyncGroupConsumer(job["topic"], **kohort_settings(job)).parts.tracker
    session = tracker.begin_session(partition, 0)
    session.delivered_all([0])
    before = resident_mib()
    for first in range(1, job["records"], _WARM):
        session.delivered_all(range(first, first + _WARM))
        for offset in range(first, first + _WARM):
            tracker.done(Record(*partition, offset, 0, None, None, session_id=session.session_id))
    grown = resident_mib() - before
    began = time.perf_counter()
    assert tracker.committable()[partition].offset == 0
    return {"hung_mib": grown, "commit_ms": (time.perf_counter() - began) * 1000}
