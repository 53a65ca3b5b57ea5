"""The rows of ``benchmarks.spark``: kohort's source and driver loop, and goals beside Spark's source."""

from __future__ import annotations

from dataclasses import dataclass

from ._rows import Metric, Part

BUILT_IN = "built-in source"
OURS = "kohort"
#: How one would do it with the fastest consumer for Python; measured once, beside the rows that say so.
CONTRAST = "through confluent-kafka"

PARTITIONS = 4
PER_BATCH = 500
CODECS = ("none", "lz4")


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of a row is done at once."""

    #: 8-byte keys and 100-byte values, in each of the two topics.
    records: int = 5_000_000
    #: Triggers that a whole run of a stream takes.
    triggers: int = 10
    #: How long records come at ``per_second``; what comes in the first quarter is not counted.
    arrival_s: float = 20.0
    per_second: int = 1_000


@dataclass(frozen=True, slots=True)
class Work(Part):
    """Lines of the table that are measured together, on a topic of one codec.

    ``alone`` is for what only kohort does; ``jvm`` whether it needs a Spark session; ``contrast`` whether the
    same is done through confluent-kafka's consumer.
    """

    codec: str = "none"
    alone: bool = False
    jvm: bool = True
    contrast: bool = False


def _rate(title: str, goal: float, *, key: str = "k_per_second", own: bool = False) -> Metric:
    return Metric(key, title, "k records/s", goal, more_is_better=True, own=own)


def _work(title: str, goal: float) -> Metric:
    return Metric("cpu_s", f"processor time of 5 M records, {title}", "s", goal, digits=1)


ROWS: tuple[Work, ...] = (
    Work("noop_none", (_rate("batch into noop", 1.6), _work("batch", 0.9)), contrast=True),
    Work("noop_lz4", (_rate("batch into noop, lz4", 2.0),), codec="lz4", contrast=True),
    Work("count_none", (_rate("batch, count by key", 1.6),), contrast=True),
    Work("count_lz4", (_rate("batch, count by key, lz4", 1.6),), codec="lz4", contrast=True),
    Work("stream", (_rate("streaming (mode B), availableNow", 1.2), _work("streaming", 1.1))),
    Work(
        "loop",
        (
            _rate("driver loop (mode A), beside streaming", 1.8),
            _work("driver loop", 0.9),
            Metric("bookkeeping_ms", "bookkeeping of a batch, mode A", "ms", 30, own=True, digits=1),
        ),
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
)
BY_NAME = {row.name: row for row in ROWS}
