"""The rows of ``benchmarks.spark``: kohort's source, loop and sink; goals beside Spark's source and sink."""

from __future__ import annotations

from dataclasses import dataclass

from ._rows import Metric, Part

BUILT_IN = "built-in source"
OURS = "kohort"
#: How one would do it with the fastest consumer for Python; measured once, beside the rows that say so.
CONTRAST = "through confluent-kafka"

PARTITIONS = 4
PER_BATCH = 500
#: What the topics hold, by the name of the topic's data: codec, and whether values are of 20 to 180 bytes.
DATA = {
    "none": ("none", False),
    "lz4": ("lz4", False),
    "varied": ("none", True),
    "varied_lz4": ("lz4", True),
}
#: With transactions and a ledger, which Spark's own sink does not have: beside its writing without.
LEDGER = "ledger"


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of a row is done at once."""

    #: 8-byte keys and 100-byte values (or 20 to 180), in each of the topics.
    records: int = 5_000_000
    #: The same, written by a sink.
    sink_rows: int = 1_000_000
    #: Triggers that a whole run of a stream takes.
    triggers: int = 10
    #: How long records come at ``per_second``; what comes in the first quarter is not counted.
    arrival_s: float = 20.0
    per_second: int = 1_000
    #: Batches of 100 records, of which the median counts.
    batches: int = 40
    #: Partitions with a record each, planned as one batch.
    partitions: int = 10_000


@dataclass(frozen=True, slots=True)
class Work(Part):
    """Lines of the table that are measured together, on the topic with this data.

    ``alone`` is for what only kohort does; ``jvm`` whether it needs a Spark session; ``contrast`` whether the
    same is done through confluent-kafka's consumer.
    """

    data: str = "none"
    alone: bool = False
    jvm: bool = True
    contrast: bool = False


def _rate(title: str, goal: float, *, key: str = "k_per_second", own: bool = False) -> Metric:
    return Metric(key, title, "k records/s", goal, more_is_better=True, own=own)


def _work(title: str, goal: float) -> Metric:
    return Metric("cpu_s", f"processor time of 5 M records, {title}", "s", goal, digits=1)


ROWS: tuple[Work, ...] = (
    Work("noop_none", (_rate("batch into noop", 2.5), _work("batch", 0.9)), contrast=True),
    Work("noop_lz4", (_rate("batch into noop, lz4", 2.5),), data="lz4", contrast=True),
    Work("noop_varied", (_rate("batch into noop, 20 to 180 bytes", 2.5),), data="varied"),
    Work("noop_varied_lz4", (_rate("batch into noop, 20 to 180 bytes, lz4", 2.5),), data="varied_lz4"),
    Work("count_none", (_rate("batch, count by key", 2.5),), contrast=True),
    Work("count_lz4", (_rate("batch, count by key, lz4", 2.5),), data="lz4", contrast=True),
    Work("stream", (_rate("streaming (mode B), availableNow", 1.8), _work("streaming", 1.1))),
    Work("stream_lz4", (_rate("streaming, lz4", 1.8),), data="lz4"),
    Work("stream_varied", (_rate("streaming, 20 to 180 bytes", 1.8),), data="varied"),
    Work(
        "loop",
        (
            _rate("driver loop (mode A), beside streaming", 3.0),
            _work("driver loop", 0.9),
            Metric("bookkeeping_ms", "bookkeeping of a batch, mode A", "ms", 30, own=True, digits=1),
        ),
    ),
    Work("loop_lz4", (_rate("driver loop, lz4, beside streaming", 3.0),), data="lz4"),
    Work("loop_varied", (_rate("driver loop, 20 to 180 bytes, beside streaming", 3.0),), data="varied"),
    Work("sink", (_rate("rows into a topic, without transactions", 1.5),)),
    Work("sink_" + LEDGER, (_rate("rows into a topic, with a ledger's transactions", 1.0),)),
    Work(
        "fixed",
        (Metric("fixed_s", "a batch of 100 records, p50, mode A", "s", 0.15, own=True, digits=3),),
    ),
    Work(
        "latency",
        (
            Metric("p50_ms", "1,000 records/s, produce to values in hand, p50", "ms", 0.2),
            Metric("p99_ms", "1,000 records/s, produce to values in hand, p99", "ms", 0.2),
        ),
    ),
    Work("one_task", (_rate("one task into noop", 700, own=True),), alone=True),
    Work("decode", (_rate("decoding alone, of a core's time", 2_500, own=True),), alone=True, jvm=False),
    Work(
        "poll",
        (Metric("poll_ms", "a look that finds nothing", "ms", 5, own=True, digits=2),),
        alone=True,
        jvm=False,
    ),
    Work(
        "plan",
        (
            Metric("plan_s", "planning of 10,000 partitions, with requests", "s", 0.2, own=True, digits=3),
            Metric("plan_cpu_s", "the driver's processor time of it", "s", 0.15, own=True, digits=3),
        ),
        alone=True,
        jvm=False,
    ),
)
BY_NAME = {row.name: row for row in ROWS}
