"""One member of the run, in a process of its own.

SIGTERM: leave gracefully, exit code 0. SIGUSR1: block the main thread for ``pause_s``. Every member handles
record by record, writes each into its journal, and commits nothing that is not there.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.churn.journal import Journal

#: Members of other makes commit so often; ours do it by themselves.
COMMIT_INTERVAL_S = 0.5
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Task:
    """What a member is to do."""

    bootstrap: str
    group: str
    topic: str
    assignor: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    pause_s: float
    journal: str
    protocol: str = "classic"
    instance_id: str | None = None

    def python_settings(self) -> dict[str, Any]:
        """As kohort, kafka-python and aiokafka call them."""
        return {
            "auto_offset_reset": "earliest",
            "session_timeout_ms": self.session_timeout_ms,
            "heartbeat_interval_ms": self.heartbeat_interval_ms,
            "group_instance_id": self.instance_id,
        }


class Stop:
    """Set by SIGTERM."""

    def __init__(self, pause_s: float) -> None:
        self.asked = False
        self.on_ask: Callable[[], object] | None = None
        signal.signal(signal.SIGTERM, lambda *_: self._ask())
        signal.signal(signal.SIGUSR1, lambda *_: time.sleep(pause_s))

    def _ask(self) -> None:
        self.asked = True
        if self.on_ask is not None:
            self.on_ask()


def _ours(task: Task) -> dict[str, Any]:
    return {
        "bootstrap": task.bootstrap,
        "group": task.group,
        "assignor": task.assignor,
        "protocol": task.protocol,
        "auto_commit_interval_ms": 1_000,
        # a killed broker is back sooner or later: on a starved machine it takes its time
        "default_api_timeout_ms": 600_000,
        **task.python_settings(),
    }


async def kohort_async(task: Task, stop: Stop, journal: Journal) -> None:
    """AsyncGroupConsumer, record by record."""
    from kohort.consumer import AsyncGroupConsumer, StaleRecordError

    loop = asyncio.get_running_loop()
    consumer = AsyncGroupConsumer(task.topic, **_ours(task))
    consumer.events.listen(lambda event: print(f"{time.monotonic():.3f} {event}", file=sys.stderr))
    stopping = asyncio.Event()
    stop.on_ask = lambda: loop.call_soon_threadsafe(stopping.set)
    if stop.asked:
        stopping.set()

    async def close_at_the_end() -> None:
        await stopping.wait()
        await consumer.close(drain_timeout_ms=5_000)

    async with consumer:
        journal.begin()
        closing = asyncio.create_task(close_at_the_end())
        async for record in consumer:
            journal.handled(record.partition, record.offset, record.value)
            try:
                consumer.done(record)
            except StaleRecordError as error:
                print(f"{time.monotonic():.3f} {error}", file=sys.stderr)
        await closing


async def kohort_service(task: Task, stop: Stop, journal: Journal) -> None:
    """ConsumerService with an async handler that yields to others."""
    from kohort.consumer import Record
    from kohort.service import ConsumerService

    service = ConsumerService(**_ours(task))

    @service.handler(task.topic, concurrency=12)
    async def handle(record: Record) -> None:
        await asyncio.sleep(0)
        journal.handled(record.partition, record.offset, record.value)

    @service.lifespan
    async def begin() -> AsyncIterator[None]:
        journal.begin()
        yield

    stop.on_ask = lambda: service.stop("SIGTERM")
    if not stop.asked:
        await service.serve()


def kohort_blocking(task: Task, stop: Stop, journal: Journal) -> None:
    """GroupConsumer, batch by batch."""
    from kohort.consumer import GroupConsumer, StaleRecordError

    with GroupConsumer(task.topic, **_ours(task)) as consumer:
        journal.begin()
        while not stop.asked:
            for record in consumer.getmany(max_records=100, timeout_ms=POLL_S * 1000):
                journal.handled(record.partition, record.offset, record.value)
                try:
                    consumer.done(record)
                except StaleRecordError as error:
                    print(f"{time.monotonic():.3f} {error}", file=sys.stderr)


def kafka_python(task: Task, stop: Stop, journal: Journal) -> None:
    """kafka-python, committing what is in the journal at intervals and when partitions are revoked."""
    import kafka
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaError

    assignors = {"range": RangePartitionAssignor, "cooperative-sticky": CooperativeStickyAssignor}
    handled: dict[Any, int] = {}
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=task.bootstrap,
        group_id=task.group,
        enable_auto_commit=False,
        partition_assignment_strategy=[assignors[task.assignor]],
        **task.python_settings(),
    )

    def take() -> dict[Any, Any]:
        offsets = {tp: kafka.OffsetAndMetadata(offset, "", -1) for tp, offset in handled.items()}
        handled.clear()
        return offsets

    def commit() -> None:
        if offsets := take():
            try:
                consumer.commit(offsets)
            except KafkaError as error:
                print(f"{time.monotonic():.3f} {error!r}", file=sys.stderr)

    class Listener(kafka.AsyncConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None:  # noqa: ARG002 - their name
            if offsets := take():
                try:
                    await consumer.commit_async(offsets)
                except KafkaError as error:
                    print(f"{time.monotonic():.3f} {error!r}", file=sys.stderr)

        async def on_partitions_assigned(self, assigned: Any) -> None:
            pass

    # it can lead its group before it knows the topic's partitions and then assigns nothing
    consumer.partitions_for_topic(task.topic)
    consumer.subscribe([task.topic], listener=Listener())
    journal.begin()
    next_commit = time.monotonic()
    while not stop.asked:
        for partition, records in consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=100).items():
            for record in records:
                journal.handled(record.partition, record.offset, record.value)
                handled[partition] = record.offset + 1
        if time.monotonic() > next_commit:
            commit()
            next_commit = time.monotonic() + COMMIT_INTERVAL_S
    commit()
    consumer.close()


async def aiokafka_(task: Task, stop: Stop, journal: Journal) -> None:
    """aiokafka, committing what is in the journal at intervals and when partitions are revoked."""
    import aiokafka
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.errors import KafkaError

    assert task.assignor == "range", "aiokafka has no cooperative assignor"
    handled: dict[Any, int] = {}
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=task.bootstrap,
        group_id=task.group,
        enable_auto_commit=False,
        partition_assignment_strategy=[RangePartitionAssignor],
        **task.python_settings(),
    )

    async def commit() -> None:
        if handled:
            offsets = dict(handled)
            handled.clear()
            try:
                await asyncio.wait_for(consumer.commit(offsets), 5)
            except (KafkaError, TimeoutError) as error:
                print(f"{time.monotonic():.3f} {error!r}", file=sys.stderr)

    class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, revoked: Any) -> None:  # noqa: ARG002 - their name
            await commit()

        async def on_partitions_assigned(self, assigned: Any) -> None:
            pass

    consumer.subscribe([task.topic], listener=Listener())
    await consumer.start()
    journal.begin()
    next_commit = time.monotonic()
    while not stop.asked:
        batches = await consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=100)
        for partition, records in batches.items():
            for record in records:
                journal.handled(record.partition, record.offset, record.value)
                handled[partition] = record.offset + 1
        if time.monotonic() > next_commit:
            await commit()
            next_commit = time.monotonic() + COMMIT_INTERVAL_S
    await commit()
    await consumer.stop()


def confluent(task: Task, stop: Stop, journal: Journal) -> None:
    """confluent-kafka, committing what is in the journal at intervals and when partitions are revoked."""
    import confluent_kafka

    cooperative = task.assignor == "cooperative-sticky" or task.protocol == "consumer"
    handled: dict[int, int] = {}
    settings: dict[str, Any] = {
        "bootstrap.servers": task.bootstrap,
        "group.id": task.group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if task.protocol == "classic":
        settings["partition.assignment.strategy"] = task.assignor
        settings["session.timeout.ms"] = task.session_timeout_ms
        settings["heartbeat.interval.ms"] = task.heartbeat_interval_ms
    else:
        settings |= {"group.protocol": "consumer", "group.remote.assignor": task.assignor}
    consumer = confluent_kafka.Consumer(settings)

    def commit() -> None:
        if handled:
            offsets = [confluent_kafka.TopicPartition(task.topic, p, o) for p, o in handled.items()]
            handled.clear()
            try:
                consumer.commit(offsets=offsets, asynchronous=False)
            except confluent_kafka.KafkaException as error:
                print(f"{time.monotonic():.3f} {error!r}", file=sys.stderr)

    def revoked(_: Any, partitions: Any) -> None:
        commit()
        if cooperative:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    consumer.subscribe([task.topic], on_revoke=revoked)
    journal.begin()
    next_commit = time.monotonic()
    while not stop.asked:
        message = consumer.poll(POLL_S)
        if message is not None and message.error() is None:
            partition, offset = message.partition(), message.offset()
            assert partition is not None, "a message has one"
            assert offset is not None, "a message has one"
            journal.handled(partition, offset, message.value())
            handled[partition] = offset + 1
        if time.monotonic() > next_commit:
            commit()
            next_commit = time.monotonic() + COMMIT_INTERVAL_S
    commit()
    consumer.close()


def work(kind: str, task: Task) -> None:
    stop, journal = Stop(task.pause_s), Journal(Path(task.journal))
    if kind in _ASYNC:
        asyncio.run(_ASYNC[kind](task, stop, journal))
    else:
        _BLOCKING[kind](task, stop, journal)


_ASYNC = {"kohort": kohort_async, "kohort-service": kohort_service, "aiokafka": aiokafka_}
_BLOCKING = {"kohort-blocking": kohort_blocking, "kafka-python": kafka_python, "confluent": confluent}
OURS = ("kohort", "kohort-service", "kohort-blocking")
OTHERS = ("kafka-python", "aiokafka", "confluent")
