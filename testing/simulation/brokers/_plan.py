"""What the plans of all schedules of brokers have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Self

from ..engine._plan import Incident, SchedulePlan

Values = dict[str, Any]


def rack_of(broker: int) -> str:
    """The rack of a broker: each has its own."""
    return f"rack-{broker}"


@dataclass(slots=True)
class BrokerPlan(SchedulePlan):
    """``settings`` are the brokers', ``configs`` the topics'; ``features`` are in force. ``producer`` and
    ``consumer`` are settings of clients, ``timeout_ms`` is the longest time of a transaction.

    ``victim`` is the broker whose disk may lose data: if another one is in sync, no acknowledged record is
    lost by that. ``lost_writes`` is the probability that the response to a write of metadata is lost,
    ``late`` that a request between brokers is given up by its sender, and arrives later.
    """

    brokers: int = 1
    settings: Values = field(default_factory=dict)
    configs: Values = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    producer: Values = field(default_factory=dict)
    consumer: Values = field(default_factory=dict)
    timeout_ms: int = 1_000
    victim: int = 1
    lost_writes: float = 0.0
    late: float = 0.0

    def leave_out(self, names: Collection[str]) -> Self:
        SchedulePlan.leave_out(self, names)
        if "lost-writes" in names:
            self.lost_writes = 0.0
        if "late-requests" in names:
            self.late = 0.0
        return self

    def names(self) -> list[str]:
        lost, late = self.lost_writes > 0, self.late > 0
        return [
            *SchedulePlan.names(self),
            *(["lost-writes"] if lost else []),
            *(["late-requests"] if late else []),
        ]


def draw_incidents(
    rng: Random,
    kinds: Mapping[str, tuple[str, int]],
    on: Collection[str],
    faults_ms: int,
    *,
    longest_ms: int,
    letter: str = "i",
) -> list[Incident]:
    """Incidents of the kinds that are ``on``, each at most as often as its kind says."""
    incidents: list[Incident] = []
    for kind, (_, most) in kinds.items():
        for _ in range(rng.randint(1, most) if kind in on else 0):
            at_ms = rng.randint(100, faults_ms - 100)
            length_ms = rng.randint(1, min(faults_ms - at_ms, longest_ms))
            name, who, draw = f"{letter}{len(incidents)}", rng.getrandbits(16), rng.random()
            incidents.append(Incident(name, at_ms, kind, who, draw, length_ms))
    return incidents


def draw_producer(rng: Random) -> Values:
    """Settings of producers."""
    return {
        "linger_ms": rng.choice((0, 5)),
        "max_in_flight_requests": rng.choice((1, 5)),
        "request_timeout_ms": rng.choice((300, 1_000)),
        "delivery_timeout_ms": rng.choice((1_500, 100_000)),
        "retry_backoff_ms": 20,
        "retry_backoff_max_ms": 100,
    }
