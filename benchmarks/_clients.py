"""The clients that are compared, each made for the same work: a new group at the beginning of a topic."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

Job = dict[str, Any]


def _group(job: Job) -> str:
    return str(job.get("group") or f"benchmark-{uuid.uuid4().hex[:12]}")


def kafka_python_consumer(job: Job) -> Any:
    from kafka import KafkaConsumer

    return KafkaConsumer(
        job["topic"],
        bootstrap_servers=job["bootstrap"],
        group_id=_group(job),
        auto_offset_reset="earliest",
    )


def confluent_consumer(job: Job, **settings: Any) -> Any:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": job["bootstrap"],
            "group.id": _group(job),
            "auto.offset.reset": "earliest",
            # with its default it rests for a second whenever 100,000 records wait: that would be measured
            "queued.min.messages": 1_000_000,
            **settings,
        }
    )
    consumer.subscribe([job["topic"]])
    return consumer


def aiokafka_consumer(job: Job, **settings: Any) -> Any:
    from aiokafka import AIOKafkaConsumer

    return AIOKafkaConsumer(
        job["topic"],
        bootstrap_servers=job["bootstrap"],
        group_id=_group(job),
        auto_offset_reset="earliest",
        **settings,
    )


def kohort_settings(job: Job) -> dict[str, Any]:
    return {"bootstrap": job["bootstrap"], "group": _group(job), "auto_offset_reset": "earliest"}


def enqueue(producer: Any, *record: Any, **fields: Any) -> None:
    """Hand a record to a confluent-kafka producer, when it has room: a broker may take its time."""
    while True:
        try:
            producer.produce(*record, **fields)
            return
        except BufferError:
            producer.poll(0.1)


def produce(
    bootstrap: str,
    topic: str,
    records: int,
    codec: str,
    partitions: int,
    keys: int = 0,
    times: int = 1,
    spread: int = 0,
) -> None:
    """So many records of 100 bytes ``times`` so many, in batches of up to 1 MB; with keys by turns if any. Of
    two records one may be longer by up to ``spread`` bytes, and the other shorter by as many.
    """
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "1",
            "linger.ms": 20,
            "compression.type": codec,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for number in range(records):
        value = b"%016x" % (number * 0x9E3779B97F4A7C15 % 2**64) * 6 + b"%04d" % (number % 10_000)
        key = b"key-%d" % (number % keys) if keys else None
        if spread:
            longer = number // 2 * 37 % (spread + 1)
            value = value[longer:] if number % 2 else value + value[:longer]
        enqueue(producer, topic, value * times, key, partition=number % partitions)
        if number * times % 10_000 == 0:
            producer.flush() if times > 1 else producer.poll(0)
    if left := producer.flush(60):
        raise RuntimeError(f"{left} records could not be written")


def resident_mib() -> float:
    return int(re.findall(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())[0]) / 1024
