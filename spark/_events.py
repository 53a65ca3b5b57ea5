"""Events of a job, and two listeners for them: metrics and a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ..protocol import KohortError
from ._offsets import OffsetRange, Offsets, format_offsets

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class BatchCommitted:
    """A batch is done: its end offsets are committed to the group or, for a query, recorded in Spark's own
    log.

    ``lag_before`` and ``lag``: the number of offsets to read before and after the batch, when it was planned.
    ``rows``: None if the batch was not read completely. ``read_seconds``: the time that the slowest reader
    took to fetch and decode, which is part of ``sink_seconds``; None if it was not measured.
    ``lag_seconds``: the age of the newest record of the partition that was furthest behind, at the commit;
    None if not all records were read, or their timestamps are not known.
    """

    group: str
    number: int
    ranges: tuple[OffsetRange, ...]
    replayed: bool
    rows: int | None
    lag_before: int
    lag: int
    plan_seconds: float
    read_seconds: float | None
    sink_seconds: float
    commit_seconds: float
    lag_seconds: float | None = None

    @property
    def offsets(self) -> int:
        """Number of offsets in the ranges: an upper bound of the rows."""
        return sum(span.offsets for span in self.ranges)

    def __str__(self) -> str:
        rows = "rows not counted" if self.rows is None else f"{self.rows:,} rows"
        took = " ".join(f"{phase} {seconds * 1000:,.0f} ms" for phase, seconds in self.durations.items())
        return (
            f"group {self.group}: batch {self.number}{' (a replay)' if self.replayed else ''} of "
            f"{', '.join(map(str, self.ranges))}: {rows}, lag {self.lag_before:,} to {self.lag:,}, {took}"
        )

    @property
    def durations(self) -> dict[str, float]:
        """Seconds by phase: plan, read (where it is known), sink, commit."""
        read = {} if self.read_seconds is None else {"read": self.read_seconds}
        return {"plan": self.plan_seconds, **read, "sink": self.sink_seconds, "commit": self.commit_seconds}


@dataclass(frozen=True, slots=True)
class CommitRefused:
    """The coordinator refused a commit because the group has members. The loop retries it.

    ``number``: the batch. ``waited_seconds``: time since the first attempt.
    """

    group: str
    number: int
    reason: str
    waited_seconds: float


@dataclass(frozen=True, slots=True)
class OffsetsReset:
    """Somebody has committed other offsets for partitions of a batch while it was written.

    These offsets stay, and the next batch begins there. ``number``: the batch, whose other partitions are
    committed.
    """

    group: str
    number: int
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class OffsetsLost:
    """Offsets that were to be read are no longer in the logs. The loop continues after them."""

    group: str
    ranges: tuple[OffsetRange, ...]


Event = BatchCommitted | CommitRefused | OffsetsLost | OffsetsReset
Listener = Callable[[Event], object]


def all_of(listeners: Listener | Sequence[Listener] | None) -> Callable[[Event], None]:
    """Return a function that calls all listeners in order."""
    if listeners is None:
        listeners = ()
    each: Sequence[Listener] = (listeners,) if callable(listeners) else tuple(listeners)

    def tell(event: Event) -> None:
        for listener in each:
            listener(event)

    return tell


_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)


class MetricsUnavailableError(KohortError):
    """prometheus-client is not installed."""


class BatchMetrics:
    """Counts batches for Prometheus. Pass it as ``on_event``, to several jobs if you like: they differ by the
    label ``group``.

        metrics = BatchMetrics()
        prometheus_client.start_http_server(9404)
        GroupBatches(..., on_event=metrics)

    The metrics begin with ``kohort_spark_``: ``batches``, ``rows``, ``offsets``, ``lost_offsets`` and
    ``commit_refusals`` (counters); ``lag``, ``batch_number`` and ``last_commit_timestamp_seconds`` (gauges);
    ``batch_seconds`` with a label ``phase`` (a histogram: plan, read, sink, commit). ``registry`` defaults to
    prometheus-client's. Raises MetricsUnavailableError if prometheus-client is not installed.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        try:
            from prometheus_client import REGISTRY, Counter, Gauge, Histogram
        except ImportError:
            raise MetricsUnavailableError(
                "metrics need prometheus-client: pip install 'kohort[service]'"
            ) from None
        into = REGISTRY if registry is None else registry

        def counter(name: str, words: str) -> Counter:
            return Counter(f"kohort_spark_{name}", words, ["group"], registry=into)

        def gauge(name: str, words: str) -> Gauge:
            return Gauge(f"kohort_spark_{name}", words, ["group"], registry=into)

        self._batches = counter("batches", "Batches committed")
        self._rows = counter("rows", "Rows of batches committed, as far as they were counted")
        self._offsets = counter("offsets", "Offsets of batches committed")
        self._lost = counter("lost_offsets", "Offsets that were to be read and were no longer in the log")
        self._refusals = counter("commit_refusals", "Commits that the coordinator refused")
        self._lag = gauge("lag", "Offsets left after the last batch")
        self._number = gauge("batch_number", "Number of the last batch")
        self._at = gauge("last_commit_timestamp_seconds", "When the last batch was committed")
        self._seconds = Histogram(
            "kohort_spark_batch_seconds",
            "What the phases of a batch took; read is within sink",
            ["group", "phase"],
            buckets=_SECONDS,
            registry=into,
        )

    def __call__(self, event: Event) -> None:
        if isinstance(event, BatchCommitted):
            self._on_commit(event)
        elif isinstance(event, OffsetsLost):
            self._lost.labels(event.group).inc(sum(span.offsets for span in event.ranges))
        elif isinstance(event, CommitRefused):
            self._refusals.labels(event.group).inc()

    def _on_commit(self, event: BatchCommitted) -> None:
        group = event.group
        self._batches.labels(group).inc()
        self._rows.labels(group).inc(event.rows or 0)
        self._offsets.labels(group).inc(event.offsets)
        self._lag.labels(group).set(event.lag)
        self._number.labels(group).set(event.number)
        self._at.labels(group).set_to_current_time()
        for phase, seconds in event.durations.items():
            self._seconds.labels(group, phase).observe(seconds)


class ProgressBar:
    """Shows a job's progress after each batch. Pass it as ``on_event``. Shows nothing without a terminal.

        with ProgressBar() as bar, GroupBatches(..., on_event=bar) as batches:
            batches.run(handle, trigger="available_now")

    Lost and reset offsets and refused commits appear as lines above the bar.
    """

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("offsets  {task.fields[tail]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task("waiting for a batch", total=None, tail="")
        self._done = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, event: Event) -> None:
        if isinstance(event, BatchCommitted):
            self._advance_bar(event)
        elif isinstance(event, OffsetsLost):
            self._print_words(f"group {event.group}: lost {', '.join(map(str, event.ranges))}")
        elif isinstance(event, CommitRefused):
            waited = f"{event.waited_seconds:.0f} s"
            self._print_words(f"group {event.group}: commit refused ({event.reason}), for {waited} now")
        elif isinstance(event, OffsetsReset):
            self._print_words(f"group {event.group}: reset to {format_offsets(event.offsets)}")

    def _advance_bar(self, event: BatchCommitted) -> None:
        self._done += event.offsets
        rows = event.offsets if event.rows is None else event.rows
        seconds = sum(event.durations.values()) - (event.read_seconds or 0.0)
        self._progress.update(
            self._task,
            description=f"{event.group}: batch {event.number}",
            completed=self._done,
            total=self._done + event.lag,
            tail=f"{rows / max(seconds, 1e-9):,.0f} rows/s",
        )

    def _print_words(self, words: str) -> None:
        if self._console.is_terminal:
            self._progress.console.print(words, markup=False, highlight=False)
