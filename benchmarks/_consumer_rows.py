"""The rows of ``benchmarks.consumer``: which clients do what, and kohort's goal beside the best of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kohort.consumer import Cluster

from ._brokers import ROOT
from ._clients import produce
from ._rows import Figures

READ_PARTITIONS, MANY_PARTITIONS, MOVING_PARTITIONS = 4, 100, 40
#: By how many bytes records of varied lengths are longer or shorter than 100.
SPREAD = 80
VARIED = "read-varied"
#: Keys of the records that are worked on by key, and the share of the time one after the other that Parallel
#: Consumer's authors publish: 2.24, 2.18 and 2.06 s of 22.2 s.
PARALLEL = {20: 2.24 / 22.2, 100: 2.18 / 22.2, 1_000: 2.06 / 22.2}
KEYS = tuple(PARALLEL)
#: What a consumer may hold of what it has fetched, by default.
PREFETCH_MIB = 64.0
#: What a set of 5,000,000 offsets took, and a commit that walked it, when the consumer kept one.
AS_A_SET = {"hung_mib": 281.0, "commit_ms": 2_010.0}
_TIMEOUT_S = 300
#: Records of half a megabyte before a service, in so many partitions, and what it may take for them: its two
#: limits are 64 MiB each, and a Fetch answer or two are under way.
LARGE_PARTITIONS, LARGE_TIMES, LARGE_MIB = 4, 5_000, 256.0
#: Rows that read what is written meanwhile: a topic for each measurement, of so many partitions.
_OF_ITS_OWN = {
    "latency": 1,
    "rebalance": MOVING_PARTITIONS,
    "rebalance_protocols": MOVING_PARTITIONS,
    "memory_window": 2,
}


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of a row is done at once."""

    #: In the topics that are read as quickly as can be.
    records: int = 1_000_000
    #: Of which kafka-python, the slowest by far, reads so many, unless their lengths vary.
    few_records: int = 200_000
    #: Before a consumer whose memory is looked at.
    waiting: int = 1_200_000
    #: At 1,000 a second; the first 500 are not counted.
    arrivals: int = 5_000
    #: Through handlers that do nothing.
    handled: int = 20_000
    #: Through handlers that take 0 to 5 ms.
    worked: int = 10_000
    #: Done behind a record that hangs.
    behind: int = 5_000_000
    #: Of 500,000 bytes, before a service whose handlers hang.
    large: int = 1_000
    #: What a consumer is left alone for before its memory is read.
    rest_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Row:
    """``works`` by client, kohort's last: a function, or module and function. ``metrics``: titles by figure.

    ``goal`` bounds kohort's figure over the best of the others, or over that of ``beside`` where it is set,
    or over what is ``published``, by figure. ``rounds`` is how often it is measured at most.
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
    published: Mapping[str, float] = field(default_factory=dict)
    rounds: int = 100

    def met(self, ratio: float) -> bool:
        return ratio >= self.goal if self.more_is_better else ratio <= self.goal


def _reading(records: str, names: tuple[str, ...]) -> tuple[Row, ...]:
    """The rows with these names that read records compressed with a codec, or of varied lengths."""
    topic = f"read-{records}"
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
        ("batches", "batches of 500", many, "kohort_batches", 1.3),
        ("arrow", "Arrow batches, beside batches of 500", many, "kohort_arrow", 3.0),
    )
    return tuple(
        Row(
            f"{name}_{records}",
            f"{title}, {records}",
            "records/s",
            {**others, "kohort": ours},
            rate,
            goal,
            more_is_better=True,
            topic=topic,
        )
        for name, title, others, ours, goal in rows
        if name in names
    )


def _hung(name: str, figure: str, unit: str, what: str) -> Row:
    return Row(
        name,
        f"one record hangs, all behind it are done, {what}",
        unit,
        {"kohort": "_consume_more.kohort_hung"},
        {figure: f" (as a set of offsets: {AS_A_SET[figure]:,.0f})"},
        0.01,
        more_is_better=False,
        topic="none",
        digits=2,
        records="behind",
        published={figure: AS_A_SET[figure]},
        rounds=1,
    )


ROWS: tuple[Row, ...] = (
    *_reading("none", ("one", "one_blocking", "batches", "arrow")),
    *_reading("lz4", ("one", "one_blocking", "batches", "arrow")),
    *_reading("varied", ("one", "one_blocking", "batches", "arrow")),
    Row(
        "latency",
        "produce to handler at 1,000 records/s",
        "ms",
        {
            "confluent-kafka": "_consume_more.confluent_latency",
            "aiokafka": "_consume_more.aiokafka_latency",
            "kohort": "_consume_more.kohort_latency",
        },
        {"p50_ms": ", p50", "p99_ms": ", p99"},
        1.0,
        more_is_better=False,
        topic="arrivals",
        digits=2,
        beside="aiokafka",
        records="arrivals",
    ),
    Row(
        "service",
        'ConsumerService, a handler that does nothing, `lanes="key"`',
        "records/s",
        {"FastStream": "_consume_service.faststream_service", "kohort": "_consume_service.kohort_service"},
        {"per_second": ""},
        2.0,
        more_is_better=True,
        topic="keyed",
        records="handled",
    ),
    Row(
        "work_by_key",
        "records of 0-5 ms by key, share of one after the other",
        "ratio",
        {"kohort": "_consume_service.kohort_work_by_key"},
        {f"of_{keys}": f", {keys:,} keys (published: {PARALLEL[keys]:.3f})" for keys in KEYS},
        1.0,
        more_is_better=False,
        topic="keys",
        digits=3,
        records="worked",
        published={f"of_{keys}": PARALLEL[keys] for keys in KEYS},
        rounds=1,
    ),
    Row(
        "rebalance",
        "a partition that moves is not read, 10 members",
        "ms",
        {
            "confluent-kafka": "_consume_moves.confluent_moves",
            "aiokafka": "_consume_moves.aiokafka_moves",
            "kohort": "_consume_moves.kohort_moves",
        },
        {"join_ms": ", the tenth joins", "leave_ms": ", it leaves"},
        0.5,
        more_is_better=False,
        topic="moves",
        rounds=1,
    ),
    Row(
        "rebalance_protocols",
        "a partition that moves is not read, 10 members, by protocol",
        "ms",
        {
            "kohort-classic": "_consume_moves.kohort_classic_moves",
            "kohort": "_consume_moves.kohort_consumer_moves",
        },
        {
            "join_ms": ", in one process, the tenth joins",
            "leave_ms": ", in one process, it leaves",
            "process_join_ms": ", a process each, the tenth joins",
            "process_leave_ms": ", a process each, it leaves",
        },
        0.5,
        more_is_better=False,
        topic="moves",
        digits=1,
        rounds=1,
    ),
    Row(
        "memory",
        "memory at 100 partitions, prefetch full",
        "MiB",
        {"confluent-kafka": "_consume_more.confluent_memory", "kohort": "_consume_more.kohort_memory"},
        {"mib": ""},
        1.0,
        more_is_better=False,
        topic="many",
        digits=1,
    ),
    Row(
        "memory_window",
        "memory more after 20 s, a partition's window full beside a busy one",
        "MiB",
        {"kohort": "_consume_more.kohort_window"},
        {"mib": ""},
        1.0,
        more_is_better=False,
        topic="window",
        digits=1,
        published={"mib": PREFETCH_MIB},
        rounds=1,
    ),
    _hung("hung_memory", "hung_mib", "MiB", "memory"),
    _hung("hung_commit", "commit_ms", "ms", "time of a commit"),
    Row(
        "service_memory",
        f"memory of a ConsumerService whose handlers hang, 1,000 records of 0.5 MB (bound: {LARGE_MIB:.0f})",
        "MiB",
        {"kohort": "_consume_service.kohort_service_memory"},
        {"mib": ""},
        1.0,
        more_is_better=False,
        topic="large",
        digits=1,
        records="large",
        published={"mib": LARGE_MIB},
    ),
)


def prepare(bootstrap: str, effort: Effort, rows: Iterable[Row]) -> None:
    """The topics of these rows, with what is read of them."""
    wanted = {row.topic for row in rows}
    kept = {f"read-{codec}": READ_PARTITIONS for codec in ("none", "lz4", "varied")}
    kept |= {"many": MANY_PARTITIONS, "keyed": READ_PARTITIONS}
    topics = {name: partitions for name, partitions in kept.items() if name in wanted}
    large = {"large": LARGE_PARTITIONS} if "large" in wanted else {}
    by_key = {f"keys-{keys}": keys for keys in KEYS} if "keys" in wanted else {}

    async def create() -> None:
        async with Cluster(bootstrap) as cluster:
            await cluster.create_topics(topics | large | dict.fromkeys(by_key, 1))

    asyncio.run(create())
    records = {"many": effort.waiting, "keyed": effort.handled}
    for topic, partitions in topics.items():
        codec = "lz4" if topic == "read-lz4" else "none"
        keys = 1_000 if topic == "keyed" else 0
        spread = SPREAD if topic == VARIED else 0
        produce(bootstrap, topic, records.get(topic, effort.records), codec, partitions, keys, spread=spread)
    if "large" in wanted:
        produce(bootstrap, "large", effort.large, "none", LARGE_PARTITIONS, times=LARGE_TIMES)
    for topic, keys in by_key.items():
        produce(bootstrap, topic, effort.worked, "none", 1, keys)


def measure(row: Row, client: str, bootstrap: str, effort: Effort, number: int) -> Figures:
    """One client's figures, from a process of its own."""
    topic = row.topic
    if row.name in _OF_ITS_OWN:
        topic = f"{topic}-{client}-{number}"
        asyncio.run(_create(bootstrap, topic, _OF_ITS_OWN[row.name]))
    records = getattr(effort, row.records)
    # of records of varied lengths only all together have the size that each client has to find
    if client == "kafka-python" and topic != VARIED:
        records = min(records, effort.few_records)
    module, _, work = row.works[client].rpartition(".")
    job = {
        "module": module or "_consume",
        "work": work,
        "bootstrap": bootstrap,
        "topic": topic,
        "records": records,
        "rest_s": effort.rest_s,
    }
    command = [sys.executable, "-m", "benchmarks._consume", json.dumps(job)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{client} did not do {row.name}:\n{done.stderr}")
    figures: Figures = json.loads(done.stdout)
    return figures


async def _create(bootstrap: str, topic: str, partitions: int) -> None:
    async with Cluster(bootstrap) as cluster:
        await cluster.create_topics({topic: partitions})
