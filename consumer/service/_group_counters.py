"""What happened in the group, counted from the consumer's events; read when metrics are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import singledispatchmethod

from .. import events
from ..events import Event


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

    @singledispatchmethod
    def see(self, event: Event) -> None:
        """Count an event; those that are not counted are passed over."""

    @see.register
    def _(self, event: events.RebalanceCompleted) -> None:
        self.rebalances += 1
        self.rebalance_seconds += event.duration_ms / 1000
        self.last_rebalance = self.clock()

    @see.register
    def _(self, _: events.RebalanceRetried) -> None:
        self.failed_rebalances += 1

    @see.register
    def _(self, _: events.CommitSucceeded) -> None:
        self.commits += 1

    @see.register
    def _(self, _: events.CommitFailed) -> None:
        self.failed_commits += 1

    @see.register
    def _(self, event: events.PartitionsLost) -> None:
        self.lost_partitions += len(event.partitions)

    @see.register
    def _(self, event: events.OffsetReset) -> None:
        topic = event.partition.topic
        self.resets[topic] = self.resets.get(topic, 0) + 1
