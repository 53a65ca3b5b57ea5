"""Prometheus metrics, collected when they are asked for: a record costs a few additions and no more.

prometheus-client comes with the extra "service"; without it /metrics says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ._handlers import Handler
from ._health import Answer

#: (label values, value) of each sample of a family
Samples = Sequence[tuple[list[str], float]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the service knows of itself at one moment."""

    group: str
    state: str
    assigned: int
    live: bool
    #: (handler, records waiting or in flight, records in flight)
    handlers: list[tuple[Handler, int, int]]


def metrics_route(snapshot: Callable[[], Snapshot]) -> Callable[[], Answer]:
    """The function behind /metrics."""
    try:
        import prometheus_client as prometheus
    except ImportError:
        return _not_installed

    registry = prometheus.CollectorRegistry()
    registry.register(_Collector(snapshot))
    for collector in (prometheus.ProcessCollector, prometheus.PlatformCollector, prometheus.GCCollector):
        collector(registry=registry)

    def answer() -> Answer:
        return Answer(200, prometheus.generate_latest(registry).decode(), prometheus.CONTENT_TYPE_LATEST)

    return answer


def _not_installed() -> Answer:
    return Answer(503, "metrics need prometheus-client: pip install 'kohort[service]'\n")


class _Collector:
    """Turns a snapshot into metric families; prometheus-client calls ``collect`` at each scrape."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def describe(self) -> Iterable[Any]:
        """Nothing beforehand: the families are known when they are collected."""
        return ()

    def collect(self) -> Iterator[Any]:
        """The metric families of this moment."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        now = self._snapshot()
        group, state = [now.group], [now.group, now.state]
        for name, help_text, labels, values, value in (
            ("kohort_consumer_assigned_partitions", "Partitions assigned", ["group"], group, now.assigned),
            ("kohort_consumer_state", "1 for the state of the member", ["group", "state"], state, 1),
            ("kohort_service_live", "1 while the service makes progress", ["group"], group, int(now.live)),
        ):
            yield _family(GaugeMetricFamily, name, help_text, labels, [(values, value)])
        for name, help_text, read in _COUNTERS:
            samples = [([now.group, h.name], read(h)) for h, _, _ in now.handlers]
            yield _family(CounterMetricFamily, name, help_text, ["group", "handler"], samples)
        backlog = [([now.group, h.name], backlog) for h, backlog, _ in now.handlers]
        in_flight = [([now.group, h.name], in_flight) for h, _, in_flight in now.handlers]
        for name, help_text, numbers in (
            ("kohort_handler_backlog", "Records handed over and not finished", backlog),
            ("kohort_handler_in_flight", "Records being handled or waiting for their next try", in_flight),
        ):
            yield _family(GaugeMetricFamily, name, help_text, ["group", "handler"], numbers)


def _family(kind: Any, name: str, help_text: str, labels: list[str], samples: Samples) -> Any:
    family = kind(name, help_text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


_COUNTERS: list[tuple[str, str, Callable[[Handler], float]]] = [
    ("kohort_handler_records", "Records handled", lambda h: h.counters.handled),
    ("kohort_handler_failures", "Tries that raised", lambda h: h.counters.failed),
    ("kohort_handler_retries", "Tries that were repeated", lambda h: h.counters.retried),
    ("kohort_handler_invalid_records", "Records that did not fit the model", lambda h: h.counters.invalid),
    (
        "kohort_handler_dead_letters",
        "Records set aside",
        lambda h: h.counters.dead_letters,
    ),
]
