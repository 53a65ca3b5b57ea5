"""A job's batches as Prometheus metrics, whose names begin with ``kohort_spark_``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import KohortError
from ._events import BatchCommitted, CommitRefused, Event, OffsetsLost

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)


class MetricsUnavailableError(KohortError):
    """prometheus-client is not installed."""


class BatchMetrics:
    """Counts batches; give it to ``on_event``, of several jobs if you like: all have a label ``group``.

        metrics = BatchMetrics()
        prometheus_client.start_http_server(9404)
        GroupBatches(..., on_event=metrics)

    Metrics: ``batches``, ``rows``, ``offsets``, ``lost_offsets`` and ``commit_refusals`` (counters), ``lag``,
    ``batch_number`` and ``last_commit_timestamp_seconds`` (gauges), ``batch_seconds`` with a label ``phase``
    (a histogram: plan, read, sink, commit). ``registry`` is prometheus-client's own unless given. Raises
    MetricsUnavailableError.
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
            self._committed(event)
        elif isinstance(event, OffsetsLost):
            self._lost.labels(event.group).inc(sum(span.offsets for span in event.ranges))
        elif isinstance(event, CommitRefused):
            self._refusals.labels(event.group).inc()

    def _committed(self, event: BatchCommitted) -> None:
        group = event.group
        self._batches.labels(group).inc()
        self._rows.labels(group).inc(event.rows or 0)
        self._offsets.labels(group).inc(event.offsets)
        self._lag.labels(group).set(event.lag)
        self._number.labels(group).set(event.number)
        self._at.labels(group).set_to_current_time()
        for phase, seconds in event.durations.items():
            self._seconds.labels(group, phase).observe(seconds)
