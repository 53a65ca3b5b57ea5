"""Producers side by side: records a second, latency at a fixed rate, transactions a second.

``python -m benchmarks.producer [--compare | --bootstrap HOST:PORT] [--only ROW,...] [--rounds 3]``

On a kohort of its own, with ``--compare`` on an Apache Kafka. Each measurement is a process of its own,
clients in turn, so that a busy moment meets all of them. All are idempotent and wait for all replicas in
sync, with batches of 16 KiB; linger is 5 ms for throughput and 0 for the rest. confluent-kafka is compiled,
and shown for the distance; the goal is to be level with aiokafka.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import _table
from ._brokers import APACHE_KAFKA, KOHORT, given
from ._command import Begun, Command, publish, say
from ._rows import Figures, Metric, Part

CLIENTS = ("kohort", "aiokafka", "confluent-kafka")
#: Records that are sent before those that are waited for.
WINDOW = 10_000
RATE = 1_000
#: By how many bytes records of varied lengths are longer or shorter than 100.
SPREAD = 80


@dataclass(frozen=True, slots=True)
class Row(Part):
    """``job`` says what a client is to send: ``size`` bytes a record, or up to ``spread`` more or fewer;
    ``rate`` records a second, or transactions of so many ``records``, or else records as quickly as it can.
    """

    job: Mapping[str, int]


def _row(name: str, what: str, job: Mapping[str, int]) -> Row:
    each = "transaction" if "records" in job else "record"
    metrics = (
        (
            Metric("p50_ms", f"{what}, p50", "ms", 1.0, digits=2),
            Metric("p99_ms", f"{what}, p99", "ms", 1.0, digits=2),
        )
        if "rate" in job
        else (Metric("rate", what, "/s", 1.0, True),)
    )
    cpu = Metric("cpu_us", f"CPU time of the client for each {each}", "µs", 1.0, digits=1)
    return Row(name, (*metrics, cpu), job)


ROWS = (
    _row("small", "records of 100 B", {"size": 100}),
    _row("large", "records of 1 KB", {"size": 1_000}),
    _row("varied", f"records of {100 - SPREAD} to {100 + SPREAD} B", {"size": 100, "spread": SPREAD}),
    _row("latency", f"latency at {RATE:,}/s of 100 B", {"size": 100, "rate": RATE}),
    *(
        _row(
            f"of_{count}",
            f"transactions of {'a record' if count == 1 else f'{count} records'}",
            {"size": 100, "records": count},
        )
        for count in (1, 10, 100)
    ),
)


async def kohort(job: dict[str, Any]) -> dict[str, float]:
    from kohort.producer import Producer

    linger = 0 if "rate" in job or "records" in job else 5
    name = f"bench-{uuid.uuid4().hex}" if "records" in job else None
    async with Producer(bootstrap=job["bootstrap"], linger_ms=linger, transactional_id=name) as producer:
        return await _measured(job, producer, producer.send, producer.transaction, producer.flush)


async def aiokafka(job: dict[str, Any]) -> dict[str, float]:
    from aiokafka import AIOKafkaProducer

    linger = 0 if "rate" in job or "records" in job else 5
    settings: dict[str, Any] = {"bootstrap_servers": job["bootstrap"], "linger_ms": linger}
    if "records" in job:
        settings["transactional_id"] = f"bench-{uuid.uuid4().hex}"
    else:
        settings["enable_idempotence"] = True
    async with AIOKafkaProducer(**settings) as producer:
        return await _measured(job, producer, producer.send, producer.transaction, producer.flush)


async def _measured(
    job: dict[str, Any],
    producer: Any,
    send: Callable[..., Awaitable[Any]],
    transaction: Callable[[], Any],
    flush: Callable[[], Awaitable[Any]],
) -> dict[str, float]:
    topic, value, until = job["topic"], b"x" * job["size"], time.perf_counter() + job["seconds"]
    if "records" in job:
        async with transaction():
            await send(topic, value)
        began, cpu, count = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() < until:
            async with transaction():
                for _ in range(job["records"]):
                    await send(topic, value)
            count += 1
        return _result(count, began, cpu)
    await producer.send_and_wait(topic, value)
    began, cpu, count = time.perf_counter(), time.process_time(), 0
    if "rate" in job:
        return await _latency(job, producer, cpu)
    values = _values(job)
    while time.perf_counter() < until:
        futures = [await send(topic, value) for value in values]
        count += len(futures)
    await flush()
    return _result(count, began, cpu)


async def _latency(job: dict[str, Any], producer: Any, cpu: float) -> dict[str, float]:
    times: list[float] = []
    value = b"x" * job["size"]

    async def one() -> None:
        began = time.perf_counter()
        await producer.send_and_wait(job["topic"], value)
        times.append(time.perf_counter() - began)

    began = time.perf_counter()
    tasks = []
    for number in range(int(job["seconds"] * job["rate"])):
        await asyncio.sleep(max(0.0, began + number / job["rate"] - time.perf_counter()))
        tasks.append(asyncio.create_task(one()))
    await asyncio.gather(*tasks)
    return _percentiles(times, cpu)


async def confluent(job: dict[str, Any]) -> dict[str, float]:
    return await asyncio.to_thread(_confluent, job)


def _confluent(job: dict[str, Any]) -> dict[str, float]:
    from confluent_kafka import Producer

    settings: dict[str, Any] = {
        "bootstrap.servers": job["bootstrap"],
        "enable.idempotence": True,
        "linger.ms": 0 if "rate" in job or "records" in job else 5,
        "batch.size": 16_384,
    }
    if "records" in job:
        settings["transactional.id"] = f"bench-{uuid.uuid4().hex}"
    producer = Producer(settings)
    topic, value, until = job["topic"], b"x" * job["size"], time.perf_counter() + job["seconds"]
    if "records" in job:
        producer.init_transactions(30)
        began, cpu, count = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() < until:
            producer.begin_transaction()
            for _ in range(job["records"]):
                producer.produce(topic, value)
            producer.commit_transaction(30)
            count += 1
        return _result(count, began, cpu)
    producer.produce(topic, value)
    producer.flush()
    times: list[float] = []
    began, cpu, count = time.perf_counter(), time.process_time(), 0
    if "rate" in job:
        for number in range(int(job["seconds"] * job["rate"])):
            while (left := began + number / job["rate"] - time.perf_counter()) > 0:
                producer.poll(left)
            sent = time.perf_counter()
            producer.produce(
                topic, value, on_delivery=lambda *_, at=sent: times.append(time.perf_counter() - at)
            )
        producer.flush()
        return _percentiles(times, cpu)
    values = _values(job)
    while time.perf_counter() < until:
        for value in values:
            while True:
                try:
                    producer.produce(topic, value)
                    break
                except BufferError:
                    producer.poll(0.01)
        producer.poll(0)
        count += WINDOW
    producer.flush()
    return _result(count, began, cpu)


def _values(job: dict[str, Any]) -> list[bytes]:
    """The values of a window, whose lengths come to the same whether they vary or not."""
    size, spread = job["size"], job.get("spread", 0)
    # each length as often as the one that is as much the other way
    lengths = [size + (-1) ** number * (number // 2 * 37 % (spread + 1)) for number in range(WINDOW)]
    return [b"x" * length for length in lengths]


def _result(count: int, began: float, cpu: float) -> dict[str, float]:
    took = time.perf_counter() - began
    return {"rate": count / took, "cpu_us": (time.process_time() - cpu) / count * 1e6}


def _percentiles(times: list[float], cpu: float) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    cpu_us = (time.process_time() - cpu) / len(times) * 1e6
    return {"p50_ms": cuts[49] * 1e3, "p99_ms": cuts[98] * 1e3, "cpu_us": cpu_us}


def _run(client: str, job: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.producer", "--job", json.dumps({"client": client, **job})]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{client}: {done.stderr[-2_000:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


async def _make_topic(bootstrap: str) -> str:
    from kohort.client import Cluster

    name = f"bench-producer-{uuid.uuid4().hex[:8]}"
    async with Cluster(bootstrap) as cluster:
        await cluster.create_topics({name: 4}, configs={"retention.bytes": str(256 << 20)})
    return name


def measure(bootstrap: str, rows: Iterable[Row], options: argparse.Namespace) -> _table.Measured:
    """The figures of each round, by client."""
    measured: dict[str, dict[str, list[Figures]]] = {
        client: {row.name: [] for row in rows} for client in CLIENTS
    }
    for row in rows:
        topic = asyncio.run(_make_topic(bootstrap))
        for _ in range(options.rounds):
            for client in CLIENTS:
                given = {"bootstrap": bootstrap, "topic": topic, "seconds": options.seconds, **row.job}
                figures = _run(client, given)
                measured[client][row.name].append(figures)
                shown = "  ".join(f"{key} {value:,.2f}" for key, value in figures.items())
                say(f"{row.name:8} {client:16} {shown}")
    return measured


def main(argv: list[str] | None = None) -> int:
    names = [row.name for row in ROWS]
    command = Command("producer", __doc__, names, compare="on an Apache Kafka; needs Java, Maven once")
    command.takes_a_broker()
    command.add_argument("--seconds", type=float, default=4.0, help="of each round (default: 4)")
    command.add_argument("--job", help=argparse.SUPPRESS)
    options = command.parse(argv)
    if options.job:
        job = json.loads(options.job)
        client = {"kohort": kohort, "aiokafka": aiokafka, "confluent-kafka": confluent}[job.pop("client")]
        print(json.dumps(asyncio.run(client(job))))
        return 0
    begun = Begun()
    where = APACHE_KAFKA if options.compare else KOHORT
    if options.bootstrap:
        where = given(options.bootstrap, "")
    rows = [row for row in ROWS if row.name in options.wanted]
    with where.start() as running:
        measured = measure(running.bootstrap, rows, options)
        facts = _table.environment([running.version or options.bootstrap]) | begun.facts()
    peers = [client for client in CLIENTS if client != "kohort"]
    publish(_table.table(measured, rows, "kohort", peers), measured, facts, options, "producer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
