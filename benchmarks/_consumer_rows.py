"""The rows of ``benchmarks.consumer``: which clients do what, and kohort's goal beside the best of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from kohort.consumer import Cluster

from ._brokers import ROOT
from ._clients import produce
from ._rows import Figures

READ_PARTITIONS, MANY_PARTITIONS = 4, 100
_TIMEOUT_S = 180


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of a row is done at once."""

    records: int = 300_000
    #: At 1,000 a second; the first 500 are not counted.
    arrivals: int = 5_000
    #: What a consumer is left alone for before its memory is read.
    rest_s: float = 5.0

    def items(self) -> list[tuple[str, float]]:
        """Every bound by its name."""
        return list(asdict(self).items())


@dataclass(frozen=True, slots=True)
class Row:
    """``works`` by client, kohort's last; ``metrics`` are the figures' names and their titles.

    ``goal`` bounds kohort's figure over the best of the others, or over that of ``beside`` where it is set.
    """

    name: str
    title: str
    unit: str
    works: Mapping[str, str]
    metrics: Mapping[str, str]
    goal: float
    more_is_better: bool
    topic: str
    digits: int = 0
    beside: str = ""
    records: str = "records"

    def met(self, ratio: float) -> bool:
        return ratio >= self.goal if self.more_is_better else ratio <= self.goal


def _reading(codec: str) -> tuple[Row, ...]:
    topic = f"read-{codec}"
    rate = {"per_second": ""}
    one = {
        "kafka-python": "kafka_python_one",
        "confluent-kafka": "confluent_one",
        "aiokafka": "aiokafka_one",
    }
    many = {"confluent-kafka": "confluent_batches", "aiokafka": "aiokafka_batches"}
    rows = (
        ("one", "record by record, `async for`", one, "kohort_one", 1.5),
        ("one_blocking", "record by record, `for`", one, "kohort_blocking_one", 1.5),
        ("batches", "batches of 500", many, "kohort_batches", 1.0),
        ("arrow", "Arrow batches, beside batches of 500", many, "kohort_arrow", 3.0),
    )
    return tuple(
        Row(
            f"{name}_{codec}",
            f"{title}, {codec}",
            "records/s",
            {**others, "kohort": ours},
            rate,
            goal,
            more_is_better=True,
            topic=topic,
        )
        for name, title, others, ours, goal in rows
    )


ROWS: tuple[Row, ...] = (
    *_reading("none"),
    *_reading("lz4"),
    Row(
        "latency",
        "produce to handler at 1,000 records/s",
        "ms",
        {"confluent-kafka": "confluent_latency", "aiokafka": "aiokafka_latency", "kohort": "kohort_latency"},
        {"p50_ms": ", p50", "p99_ms": ", p99"},
        1.0,
        more_is_better=False,
        topic="arrivals",
        digits=2,
        beside="aiokafka",
        records="arrivals",
    ),
    Row(
        "memory",
        "memory at 100 partitions, prefetch full",
        "MiB",
        {"confluent-kafka": "confluent_memory", "kohort": "kohort_memory"},
        {"mib": ""},
        1.0,
        more_is_better=False,
        topic="many",
        digits=1,
    ),
)


def prepare(bootstrap: str, effort: Effort) -> None:
    """The topics of all rows, with what is read of them."""

    async def create() -> None:
        async with Cluster(bootstrap) as cluster:
            await cluster.create_topics(
                {"read-none": READ_PARTITIONS, "read-lz4": READ_PARTITIONS, "many": MANY_PARTITIONS}
            )

    asyncio.run(create())
    for codec in ("none", "lz4"):
        produce(bootstrap, f"read-{codec}", effort.records, codec, READ_PARTITIONS)
    produce(bootstrap, "many", 4 * effort.records, "none", MANY_PARTITIONS)


def measure(row: Row, client: str, bootstrap: str, effort: Effort, number: int) -> Figures:
    """One client's figures, from a process of its own."""
    topic = row.topic
    if row.name == "latency":
        topic = f"{topic}-{client}-{number}"
        asyncio.run(_create(bootstrap, topic))
    job = {
        "work": row.works[client],
        "bootstrap": bootstrap,
        "topic": topic,
        "records": getattr(effort, row.records),
        "rest_s": effort.rest_s,
    }
    command = [sys.executable, "-m", "benchmarks._consume", json.dumps(job)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{client} did not do {row.name}:\n{done.stderr}")
    figures: Figures = json.loads(done.stdout)
    return figures


async def _create(bootstrap: str, topic: str) -> None:
    async with Cluster(bootstrap) as cluster:
        await cluster.create_topics({topic: 1})
