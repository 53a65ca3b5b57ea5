"""Prometheus metrics, collected when they are asked for: a record costs a few additions and no more.

Names are Kafka's own (KIP-714, without ``org.apache``, with Prometheus' underscores) where Kafka measures the
same thing, and begin with ``kohort_`` otherwise. prometheus-client comes with the extra "service"; without it
/metrics says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import events
from ..events import Event
from ._handlers import Handler

if TYPE_CHECKING:
    from ...protocol import TopicPartition

#: (label values, value) of each sample of a family
Samples = Sequence[tuple[list[str], float]]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: str
    content_type: str = "text/plain; charset=utf-8"


@dataclass(slots=True, eq=False)
class GroupCounters:
    """Give its ``see`` to the events. Times are seconds of ``clock``."""

    clock: Callable[[], float] = time.monotonic
    rebalances: int = 0
    failed_rebalances: int = 0
    rebalance_seconds: float = 0.0
    last_rebalance: float | None = None
    commits: int = 0
    failed_commits: int = 0
    lost_partitions: int = 0
    resets: dict[str, int] = field(default_factory=dict)

    def see(self, event: Event) -> None:
        """Count an event; those that are not counted are passed over."""
        match event:
            case events.RebalanceCompleted():
                self.rebalances += 1
                self.rebalance_seconds += event.duration_ms / 1000
                self.last_rebalance = self.clock()
            case events.RebalanceRetried():
                self.failed_rebalances += 1
            case events.CommitSucceeded():
                self.commits += 1
            case events.CommitFailed():
                self.failed_commits += 1
            case events.PartitionsLost(partitions):
                self.lost_partitions += len(partitions)
            case events.OffsetReset(partition):
                self.resets[partition.topic] = self.resets.get(partition.topic, 0) + 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    group: str
    state: str
    assigned: int
    live: bool
    #: (handler, records waiting or in flight, records in flight)
    handlers: list[tuple[Handler, int, int]]
    counters: GroupCounters
    consumed: Mapping[str, int]
    lag: Mapping[TopicPartition, int]


class Family(NamedTuple):
    """One metric: ``counter`` or gauge."""

    name: str
    help: str
    counter: bool
    labels: tuple[str, ...]
    samples: Samples


def families(now: Snapshot) -> Iterator[Family]:
    yield from _group_families(now)
    yield from _topic_families(now)
    yield from _handler_families(now)


def _group_families(now: Snapshot) -> Iterator[Family]:
    counters, coordinator = now.counters, "kafka_consumer_coordinator_"
    for name, help_text, counter, value in (
        (f"{coordinator}assigned_partitions", "Partitions assigned", False, now.assigned),
        (f"{coordinator}rebalance", "Rebalances completed", True, counters.rebalances),
        (f"{coordinator}failed_rebalance", "Joins and syncs refused", True, counters.failed_rebalances),
        (f"{coordinator}rebalance_latency", "Seconds in rebalances", True, counters.rebalance_seconds),
        (f"{coordinator}commit", "Commits acknowledged", True, counters.commits),
        ("kohort_consumer_failed_commits", "Commits that failed", True, counters.failed_commits),
        ("kohort_consumer_lost_partitions", "Partitions lost", True, counters.lost_partitions),
        ("kohort_service_live", "1 while the service makes progress", False, int(now.live)),
    ):
        yield Family(name, help_text, counter, ("group",), [([now.group], value)])
    if counters.last_rebalance is not None:
        ago = counters.clock() - counters.last_rebalance
        name, text = f"{coordinator}last_rebalance_seconds_ago", "Seconds since the last rebalance"
        yield Family(name, text, False, ("group",), [([now.group], ago)])
    state: Samples = [([now.group, now.state], 1)]
    yield Family("kohort_consumer_state", "1 for the state of the member", False, ("group", "state"), state)


def _topic_families(now: Snapshot) -> Iterator[Family]:
    fetch, labels = "kafka_consumer_fetch_manager_", ("group", "topic")
    consumed = [([now.group, topic], count) for topic, count in now.consumed.items()]
    yield Family(f"{fetch}records_consumed", "Records handed to handlers", True, labels, consumed)
    lag = [([now.group, p.topic, str(p.partition)], behind) for p, behind in now.lag.items()]
    yield Family(f"{fetch}records_lag", "Records behind the end", False, (*labels, "partition"), lag)
    most: Samples = [([now.group], max(now.lag.values(), default=0))]
    yield Family(f"{fetch}records_lag_max", "Most records behind the end", False, ("group",), most)
    resets = [([now.group, topic], count) for topic, count in now.counters.resets.items()]
    yield Family("kohort_consumer_offset_resets", "Positions that were reset", True, labels, resets)


def _handler_families(now: Snapshot) -> Iterator[Family]:
    labels = ("group", "handler")
    for name, help_text, read in _COUNTERS:
        samples = [([now.group, h.name], read(h)) for h, _, _ in now.handlers]
        yield Family(name, help_text, True, labels, samples)
    backlog = [([now.group, h.name], backlog) for h, backlog, _ in now.handlers]
    in_flight = [([now.group, h.name], in_flight) for h, _, in_flight in now.handlers]
    yield Family("kohort_handler_backlog", "Records handed over and not finished", False, labels, backlog)
    text = "Records being handled or waiting for their next try"
    yield Family("kohort_handler_in_flight", text, False, labels, in_flight)


_COUNTERS: list[tuple[str, str, Callable[[Handler], float]]] = [
    ("kohort_handler_records", "Records handled", lambda h: h.counters.handled),
    ("kohort_handler_failures", "Tries that raised", lambda h: h.counters.failed),
    ("kohort_handler_retries", "Tries that were repeated", lambda h: h.counters.retried),
    ("kohort_handler_invalid_records", "Records that did not fit the model", lambda h: h.counters.invalid),
    ("kohort_handler_dead_letters", "Records set aside", lambda h: h.counters.dead_letters),
]


def metrics_route(snapshot: Callable[[], Snapshot]) -> Callable[[], Answer]:
    try:
        import prometheus_client as prometheus
    except ImportError:
        missing = "metrics need prometheus-client: pip install 'kohort[service]'\n"
        return lambda: Answer(503, missing)

    registry = prometheus.CollectorRegistry()
    registry.register(_Collector(snapshot))
    for collector in (prometheus.ProcessCollector, prometheus.PlatformCollector, prometheus.GCCollector):
        collector(registry=registry)

    def answer() -> Answer:
        return Answer(200, prometheus.generate_latest(registry).decode(), prometheus.CONTENT_TYPE_LATEST)

    return answer


class _Collector:
    """Gives a snapshot's families to prometheus-client, which calls ``collect`` at each scrape."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def describe(self) -> Iterable[Any]:
        """Nothing beforehand: the families are known when they are collected."""
        return ()

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for each in families(self._snapshot()):
            kind = CounterMetricFamily if each.counter else GaugeMetricFamily
            family = kind(each.name, each.help, labels=each.labels)
            for values, value in each.samples:
                family.add_metric(values, value)
            yield family
