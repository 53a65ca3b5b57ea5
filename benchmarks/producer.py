"""Producers side by side: records a second, latency at a fixed rate, transactions a second.

``python -m benchmarks.producer [--bootstrap NAME=HOST:PORT ...] [--seconds 4] [--runs 3] [--only ROW ...]``

Without ``--bootstrap`` on a kohort of its own. Each measurement is a process of its own, clients in turn,
so that a busy moment meets all of them; the median of the runs is shown, behind it the CPU time of the
client for each record or transaction. All are idempotent and wait for all replicas in sync, with batches
of 16 KiB; linger is 5 ms for throughput and 0 for the rest. confluent-kafka is compiled, and shown for
the distance; the goal is to be level with aiokafka.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

CLIENTS = ("kohort", "aiokafka", "confluent")
#: Records that are sent before those that are waited for.
WINDOW = 10_000
RATE = 1_000
ROWS: dict[str, dict[str, int]] = {
    "records/s of 100 B": {"size": 100},
    "records/s of 1 KB": {"size": 1_000},
    "latency at 1,000/s of 100 B": {"size": 100, "rate": RATE},
    "transactions/s of 1 record": {"size": 100, "records": 1},
    "transactions/s of 10 records": {"size": 100, "records": 10},
    "transactions/s of 100 records": {"size": 100, "records": 100},
}


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
    while time.perf_counter() < until:
        futures = [await send(topic, value) for _ in range(WINDOW)]
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
    while time.perf_counter() < until:
        for _ in range(WINDOW):
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


def _measure(name: str, bootstrap: str, options: argparse.Namespace) -> None:
    print(f"\n{name}, {bootstrap}\n\n| | {' | '.join(CLIENTS)} | kohort / aiokafka |")
    print("| --- |" + " --- |" * (len(CLIENTS) + 1))
    for row, job in ROWS.items():
        if options.only and not any(word in row for word in options.only):
            continue
        topic = asyncio.run(_make_topic(bootstrap))
        runs: dict[str, list[dict[str, float]]] = {client: [] for client in CLIENTS}
        for _ in range(options.runs):
            for client in CLIENTS:
                given = {"bootstrap": bootstrap, "topic": topic, "seconds": options.seconds, **job}
                runs[client].append(_run(client, given))
        found = {
            client: {key: statistics.median(one[key] for one in some) for key in some[0]}
            for client, some in runs.items()
        }
        ours, theirs = found["kohort"], found["aiokafka"]
        key = "rate" if "rate" in ours else "p50_ms"
        ratio = ours[key] / theirs[key] if key == "rate" else theirs[key] / ours[key]
        print(
            f"| {row} | {' | '.join(_shown(found[client]) for client in CLIENTS)} | {ratio:.2f} |", flush=True
        )


def _shown(found: dict[str, float]) -> str:
    if "rate" in found:
        return f"{found['rate']:,.0f} ({found['cpu_us']:,.1f} us)"
    return f"p50 {found['p50_ms']:.2f} ms, p99 {found['p99_ms']:.2f} ms ({found['cpu_us']:,.0f} us)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bootstrap", metavar="NAME=HOST:PORT", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", metavar="ROW", action="append", default=[], help="rows of such names")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        job = json.loads(options.job)
        client = {"kohort": kohort, "aiokafka": aiokafka, "confluent": confluent}[job.pop("client")]
        print(json.dumps(asyncio.run(client(job))))
        return
    if not options.bootstrap:
        with tempfile.TemporaryDirectory() as folder:
            data = str(Path(folder) / "data")
            command = [sys.executable, "-m", "kohort", "broker", "--port", "0", "--data", data]
            quiet = subprocess.DEVNULL
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, text=True) as broker:
                assert broker.stdout is not None
                try:
                    _measure("kohort", broker.stdout.readline().split()[-1], options)
                finally:
                    broker.terminate()
    for each in options.bootstrap:
        name, _, bootstrap = each.partition("=")
        _measure(name, bootstrap, options)


if __name__ == "__main__":
    main()
