"""Prometheus metrics, collected at each scrape: a record costs only a few additions.

Names are Kafka's own (KIP-714, without ``org.apache``, with Prometheus' underscores) where Kafka measures the
same thing, and begin with ``kohort_`` otherwise. prometheus-client comes with the extra "service"; without it
/metrics says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ...consumer import events
from ...consumer.events import Event
from ..handlers.handler import Handler

if TYPE_CHECKING:
    from ...protocol import TopicPartition

#: (values of the labels besides the group, value) of each sample
Samples = Sequence[tuple[list[str], float]]
#: Prefix of Kafka's metrics of a member.
_COORDINATOR = "kafka_consumer_coordinator_"
#: Name, help, whether it is a counter, labels besides the group, samples
_Family = tuple[str, str, bool, tuple[str, ...], Samples]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: str
    content_type: str = "text/plain; charset=utf-8"


@dataclass(slots=True, eq=False)
class ServiceCounters:
    """Give its ``count_event`` to the events. Times are seconds of ``clock``."""

    clock: Callable[[], float] = time.monotonic
    rebalances: int = 0
    failed_rebalances: int = 0
    rebalance_seconds: float = 0.0
    last_rebalance: float | None = None
    commits: int = 0
    failed_commits: int = 0
    lost_partitions: int = 0
    blocked_seconds: float = 0.0
    resets: dict[str, int] = field(default_factory=dict)

    def count_event(self, event: Event) -> None:
        """Count an event; other events are ignored."""
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
            case events.LoopBlocked(late_ms):
                self.blocked_seconds += late_ms / 1000
            case events.OffsetReset(partition):
                self.resets[partition.topic] = self.resets.get(partition.topic, 0) + 1


class HandlerNumbers(NamedTuple):
    """A handler's records that wait or are in flight, those in flight, the age of its oldest call, and how
    many have run for longer than ``stalled_after_ms``.
    """

    handler: Handler
    backlog: int
    in_flight: int
    oldest_call_s: float
    long_calls: int


class LockNumbers(NamedTuple):
    """Of a share group: records locked for this member, locks that ended too early, records that came again,
    and how often the group delivers one.
    """

    held: int
    lost: int
    redelivered: int
    limit: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    group: str
    state: str
    assigned: int
    live: bool
    handlers: list[HandlerNumbers]
    counters: ServiceCounters
    consumed: Mapping[str, int]
    lag: Mapping[TopicPartition, int]
    locks: LockNumbers | None = None
    outage_s: float = 0.0
    #: When the client's own certificate ends, in seconds since 1970.
    certificate_end_s: float | None = None


def metric_families(now: Snapshot) -> Iterator[_Family]:
    """The metrics of a service."""
    handlers = now.handlers
    yield from (
        (f"{_COORDINATOR}assigned_partitions", "Partitions assigned", False, (), [([], now.assigned)]),
        ("kohort_service_live", "1 while the service makes progress", False, (), [([], int(now.live))]),
        (
            "kohort_client_outage_seconds",
            "Seconds without success at a broker",
            False,
            (),
            [([], now.outage_s)],
        ),
        (
            "kohort_consumer_loop_blocked_seconds",
            "Seconds in which the event loop was blocked",
            True,
            (),
            [([], now.counters.blocked_seconds)],
        ),
        ("kohort_consumer_state", "1 for the state of the member", False, ("state",), [([now.state], 1)]),
    )
    end: Samples = [] if now.certificate_end_s is None else [([], now.certificate_end_s)]
    yield "kohort_certificate_expiry_timestamp_seconds", "When the client's certificate ends", False, (), end
    yield from _of_consumer_group(now.counters) if now.locks is None else _of_share_group(now.locks)
    kafka = "kafka_consumer_fetch_manager_"
    consumed = [([topic], count) for topic, count in now.consumed.items()]
    lag = [([p.topic, str(p.partition)], behind) for p, behind in now.lag.items()]
    most = max(now.lag.values(), default=0)
    yield from (
        (f"{kafka}records_consumed", "Records handed to handlers", True, ("topic",), consumed),
        (f"{kafka}records_lag", "Records behind the end", False, ("topic", "partition"), lag),
        (f"{kafka}records_lag_max", "Most records behind the end", False, (), [([], most)]),
    )
    for name, text, read in _COUNTERS:
        yield name, text, True, ("handler",), [([each.handler.name], read(each.handler)) for each in handlers]
    for name, text, show in _GAUGES:
        yield name, text, False, ("handler",), [([each.handler.name], show(each)) for each in handlers]


def _of_consumer_group(seen: ServiceCounters) -> Iterator[_Family]:
    kafka = _COORDINATOR
    last: Samples = [] if seen.last_rebalance is None else [([], seen.clock() - seen.last_rebalance)]
    resets = [([topic], count) for topic, count in seen.resets.items()]
    yield from (
        (f"{kafka}rebalance", "Rebalances completed", True, (), [([], seen.rebalances)]),
        (f"{kafka}failed_rebalance", "Joins and syncs refused", True, (), [([], seen.failed_rebalances)]),
        (f"{kafka}rebalance_latency", "Seconds in rebalances", True, (), [([], seen.rebalance_seconds)]),
        (f"{kafka}commit", "Commits acknowledged", True, (), [([], seen.commits)]),
        (f"{kafka}last_rebalance_seconds_ago", "Seconds since the last rebalance", False, (), last),
        ("kohort_consumer_failed_commits", "Commits that failed", True, (), [([], seen.failed_commits)]),
        ("kohort_consumer_lost_partitions", "Partitions lost", True, (), [([], seen.lost_partitions)]),
        ("kohort_consumer_offset_resets", "Positions that were reset", True, ("topic",), resets),
    )


def _of_share_group(locks: LockNumbers) -> Iterator[_Family]:
    yield from (
        ("kohort_share_locks_held", "Records locked for this member", False, (), [([], locks.held)]),
        ("kohort_share_locks_lost", "Locks that ended too early", True, (), [([], locks.lost)]),
        ("kohort_share_redeliveries", "Records that came again", True, (), [([], locks.redelivered)]),
        ("kohort_share_delivery_limit", "Deliveries of a record", False, (), [([], locks.limit)]),
    )


_COUNTERS: list[tuple[str, str, Callable[[Handler], float]]] = [
    ("kohort_handler_records", "Records handled", lambda h: h.counters.handled),
    ("kohort_handler_failures", "Tries that raised", lambda h: h.counters.failed),
    ("kohort_handler_retries", "Tries that were repeated", lambda h: h.counters.retried),
    ("kohort_handler_released", "Records given back to the share group", lambda h: h.counters.released),
    ("kohort_handler_archived", "Records that had no dead-letter topic", lambda h: h.counters.archived),
    ("kohort_handler_postponed", "Records moved to a retry topic", lambda h: h.counters.postponed),
    ("kohort_handler_invalid_records", "Records that did not fit the model", lambda h: h.counters.invalid),
    ("kohort_handler_dead_letters", "Records set aside", lambda h: h.counters.dead_letters),
]

_GAUGES: list[tuple[str, str, Callable[[HandlerNumbers], float]]] = [
    ("kohort_handler_backlog", "Records handed over and not finished", lambda n: n.backlog),
    ("kohort_handler_paused", "1 while it is paused", lambda n: int(n.handler.held)),
    (
        "kohort_handler_in_flight",
        "Records being handled or waiting for their next try",
        lambda n: n.in_flight,
    ),
    ("kohort_handler_oldest_call_seconds", "Seconds that its oldest call runs", lambda n: n.oldest_call_s),
    ("kohort_handler_long_calls", "Calls that run for longer than stalled_after_ms", lambda n: n.long_calls),
]


def metrics_route(snapshots: Callable[[], Sequence[Snapshot]]) -> Callable[[], Answer]:
    """Return what answers /metrics; without prometheus-client, a text that says what to install."""
    try:
        import prometheus_client as prometheus
    except ImportError:
        missing = "metrics need prometheus-client: pip install 'kohort[service]'\n"
        return lambda: Answer(503, missing)

    registry = prometheus.CollectorRegistry()
    registry.register(_ServiceCollector(snapshots))
    for collector in (prometheus.ProcessCollector, prometheus.PlatformCollector, prometheus.GCCollector):
        collector(registry=registry)

    def answer() -> Answer:
        return Answer(200, prometheus.generate_latest(registry).decode(), prometheus.CONTENT_TYPE_LATEST)

    return answer


class _ServiceCollector:
    """Gives the families of snapshots to prometheus-client, which calls ``collect`` at each scrape."""

    def __init__(self, snapshots: Callable[[], Sequence[Snapshot]]) -> None:
        self._snapshots = snapshots

    def describe(self) -> Iterable[object]:
        """Return nothing: the families are only known when they are collected."""
        return ()

    def collect(self) -> Iterable[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        found: dict[str, Any] = {}
        for now in self._snapshots():
            for name, text, counter, labels, samples in metric_families(now):
                if name not in found and (samples or labels):
                    kind = CounterMetricFamily if counter else GaugeMetricFamily
                    found[name] = kind(name, text, labels=("group", *labels))
                for values, value in samples:
                    found[name].add_metric([now.group, *values], value)
        return found.values()
