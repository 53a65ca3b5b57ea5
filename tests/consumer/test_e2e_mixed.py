"""One group of kohort's consumers and other projects' clients, under an assignor that all of them have."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain

import pytest

from tests.consumer.conftest import QUICK, both_protocols
from tests.consumer.members import Maker, Worker
from tests.kafka_python import group_consumer
from tests.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.clients]

Name = Callable[[str], str]
Seen = list[int]


@contextmanager
def _kafka_python(bootstrap: str, topic: str, group: str) -> Iterator[Seen]:
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    seen: Seen = []
    stop = threading.Event()

    def run() -> None:
        consumer = group_consumer(
            topic,
            group,
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[RangePartitionAssignor],
            session_timeout_ms=QUICK["session_timeout_ms"],
            heartbeat_interval_ms=QUICK["heartbeat_interval_ms"],
        )
        while not stop.is_set():
            for records in consumer.poll(timeout_ms=100).values():
                seen.extend(int(record.value) for record in records)
        consumer.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


@contextmanager
def _confluent(bootstrap: str, topic: str, group: str) -> Iterator[Seen]:
    from confluent_kafka import Consumer

    seen: Seen = []
    stop = threading.Event()

    def run() -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "range",
                "session.timeout.ms": QUICK["session_timeout_ms"],
                "heartbeat.interval.ms": QUICK["heartbeat_interval_ms"],
            }
        )
        consumer.subscribe([topic])
        while not stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                seen.append(int(message.value() or b"-1"))
        consumer.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def _all_seen(numbers: range, *shares: Seen) -> bool:
    return {*numbers}.issubset(chain(*shares))


@both_protocols
@pytest.mark.parametrize("first", ["kohort", "others"])
async def test_all_members_read_their_share_whoever_leads(
    member: Maker,
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Name,
    produce: Callable[..., None],
    first: str,
) -> None:
    topic, name = new_topic("orders", partitions=6), group("billing")

    async def ours() -> Worker:
        return Worker(await member(topic, group=name, assignor="range"))

    worker = await ours() if first == "kohort" else None
    if worker is not None:
        await until(lambda: worker is not None and len(worker.consumer.assignment()) == 6)
    with _kafka_python(bootstrap, topic, name) as python, _confluent(bootstrap, topic, name) as confluent:
        if worker is None:
            await asyncio.to_thread(produce, topic, range(60), partitions=6)
            await until(lambda: set(range(60)) <= {*python, *confluent})
            worker = await ours()
        # a leader that knows nothing of the topic yet gives nobody anything until it has asked again
        await until(lambda: worker is not None and len(worker.consumer.assignment()) == 2, timeout_s=60)
        shares, sent = (python, confluent, worker.seen), 60
        async with asyncio.timeout(60):
            # once is not enough if a member of another make is thrown out of its first generation
            while not all(len({n for n in seen if n >= sent - 540}) >= 90 for seen in shares):
                await asyncio.to_thread(produce, topic, range(sent, sent + 540), partitions=6)
                sent += 540
                await until(partial(_all_seen, range(60, sent), *shares))
        await worker.stop()
        await asyncio.to_thread(produce, topic, range(sent, sent + 60), partitions=6)
        await until(partial(_all_seen, range(sent, sent + 60), python, confluent))
