"""Spark micro-batches beside Spark's own Kafka source and sink: kohort's source, driver loop and sink.

``python -m benchmarks.spark [--compare] [--bootstrap HOST:PORT] [--only ROW,...] [--rounds 3]``

Alone it starts a kohort and measures what kohort does on it; ``--compare`` starts an Apache Kafka, fetches
Spark's source with Maven (once), and has both read the same topics, in one Spark session of ``local[2]``.
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
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kohort.consumer import Cluster

from . import _table
from ._brokers import APACHE_KAFKA, KOHORT, ROOT, given
from ._clients import enqueue
from ._command import Begun, Command, effort_of, publish, say
from ._rows import Figures
from ._spark_rows import BUILT_IN, CONTRAST, DATA, OURS, PARTITIONS, PER_BATCH, ROWS, Effort

NAMES = [row.name for row in ROWS]
SCRIPT = ROOT / "scripts" / "spark-kafka-source"

#: By contender and row: the figures of each round.
Measured = dict[str, dict[str, list[Figures]]]


def produce(bootstrap: str, topic: str, records: int, data: str) -> None:
    """8-byte keys, 1,000 different ones, and values of 100 bytes, or of 20 to 180, in batches of 500."""
    from confluent_kafka import Producer

    codec, varied = DATA[data]
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "1",
            "linger.ms": 100,
            "compression.type": codec,
            "batch.num.messages": PER_BATCH,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for number in range(records):
        drawn = number * 0x9E3779B97F4A7C15 % 2**64
        value = b"%016x" % drawn * 6 + b"%04d" % (number % 10_000)
        if varied:
            value = (value * 2)[: 20 + drawn % 161]
        partition = number // PER_BATCH % PARTITIONS
        enqueue(producer, topic, value, key=b"%08d" % (number % 1_000), partition=partition)
        if number % 1_000 == 0:
            producer.poll(0)
    if left := producer.flush(120):
        raise RuntimeError(f"{left} records could not be written")


async def _create(bootstrap: str, topics: list[str]) -> None:
    async with Cluster(bootstrap) as cluster:
        await cluster.create_topics(dict.fromkeys(topics, PARTITIONS))


async def _delete(bootstrap: str, topics: list[str]) -> None:
    async with Cluster(bootstrap) as cluster:
        await cluster.delete_topics(topics)


def jars() -> str:
    """Spark's own source for the PySpark that is installed."""
    import pyspark

    command = [str(SCRIPT), "jars", pyspark.__version__]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def run(options: argparse.Namespace) -> tuple[Measured, list[str]]:
    """Every row, by all contenders, in each round in another order."""
    effort = effort_of(options, Effort())
    source = jars() if options.compare else ""
    broker = APACHE_KAFKA if options.compare else KOHORT
    if options.bootstrap:
        broker = given(options.bootstrap)
    prefix = f"benchmark-{uuid.uuid4().hex[:8]}"
    topics = {data: f"{prefix}-{data}" for data in DATA if any(row.data == data for row in options.rows)}
    with ExitStack() as stack:
        running = stack.enter_context(broker.start())
        asyncio.run(_create(running.bootstrap, list(topics.values())))
        stack.callback(lambda: asyncio.run(_delete(running.bootstrap, list(topics.values()))))
        for data, topic in topics.items():
            began = time.monotonic()
            produce(running.bootstrap, topic, effort.records, data)
            say(f"{effort.records:,} records written, {data}: {time.monotonic() - began:,.1f} s")
        job = {
            "bootstrap": running.bootstrap,
            "prefix": prefix,
            "jars": source,
            "rows": [row.name for row in options.rows],
            "rounds": options.rounds,
            **asdict(effort),
        }
        versions = [each for each in (running.version, *map(_version, source.split(","))) if each]
        return _measured(job), versions


def _measured(job: dict[str, Any]) -> Measured:
    measured: Measured = {name: {row: [] for row in job["rows"]} for name in (BUILT_IN, OURS, CONTRAST)}
    command = [sys.executable, "-m", "benchmarks._spark_work", json.dumps(job)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            found = json.loads(line)
            if found["round"] >= 0:
                measured[found["contender"]][found["row"]].append(found["figures"])
            turn = f"round {found['round'] + 1}" if found["round"] >= 0 else "warming"
            shown = "  ".join(f"{key} {value:,.2f}" for key, value in found["figures"].items())
            say(f"{turn}  {found['row']:15} {found['contender']:16} {shown}")
    if worker.returncode:
        raise SystemExit(f"the measuring process ended with {worker.returncode}: see above")
    return measured


def _version(jar: str) -> str:
    name = Path(jar).stem
    return name if name.startswith("spark-sql-kafka") else ""


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    command = Command(
        "spark",
        __doc__,
        NAMES,
        compare="with Spark's own source; needs Maven once",
    )
    command.takes_a_broker()
    command.takes(Effort())
    options = command.parse(argv)
    options.rows = [row for row in ROWS if row.name in options.wanted]
    return options


def main() -> int:
    options = parse()
    begun = Begun()
    measured, versions = run(options)
    spark = {"Spark": _spark_version(), **contrast(measured)}
    facts = _table.environment(versions) | spark | begun.facts()
    table = _table.table(measured, options.rows, OURS, [BUILT_IN] if options.compare else [])
    publish(table, measured, facts, options, "spark")
    return 0


def contrast(measured: Measured) -> dict[str, str]:
    """The same work through another consumer, as a share of what the built-in source does."""
    told = [
        f"{row} {figures[0]['k_per_second']:,.0f} k records/s ({figures[0]['k_per_second'] / theirs:.2f})"
        for row, figures in measured[CONTRAST].items()
        if figures and (theirs := statistics.median(one["k_per_second"] for one in measured[BUILT_IN][row]))
    ]
    return {f"{CONTRAST}'s consumer, over the built-in source": ", ".join(told)} if told else {}


def _spark_version() -> str:
    import pyspark

    from kohort.spark import java_home

    return f"PySpark {pyspark.__version__}, local[2], {java_home().version}"


if __name__ == "__main__":
    sys.exit(main())
