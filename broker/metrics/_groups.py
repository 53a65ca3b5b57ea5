"""Counters of the coordinator's events; accepted commits are counted as requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ...coordinator import (
    CauseKind,
    CoordinatorEvent,
    GenerationAbandoned,
    MemberGone,
    OffsetsRemoved,
    RebalanceCompleted,
    RecordSkipped,
    Refusal,
)
from ._sensors import Histogram


class GroupCounters:
    """Counts of the events that ``see`` is given; ``then`` is given each of them too."""

    __slots__ = (
        "_then",
        "abandoned",
        "expired_members",
        "offsets_removed",
        "rebalance_times",
        "rebalances",
        "records_skipped",
        "refusals",
    )

    def __init__(self, then: Callable[[CoordinatorEvent], None] | None = None) -> None:
        self._then = then
        self.rebalances: Counter[str] = Counter()
        self.rebalance_times = Histogram()
        self.abandoned = 0
        self.expired_members = 0
        self.offsets_removed = 0
        self.refusals = 0
        self.records_skipped = 0

    def see(self, event: CoordinatorEvent) -> None:
        """Count an event and hand it on."""
        if isinstance(event, RebalanceCompleted):
            self.rebalances[event.cause_kind] += 1
            self.rebalance_times.record(event.duration_ms / 1000)
        elif isinstance(event, Refusal):
            self.refusals += 1
        elif isinstance(event, GenerationAbandoned):
            self.abandoned += 1
        elif isinstance(event, MemberGone):
            self.expired_members += event.cause_kind is CauseKind.SESSION_EXPIRED
        elif isinstance(event, OffsetsRemoved):
            self.offsets_removed += event.count
        elif isinstance(event, RecordSkipped):
            self.records_skipped += 1
        if self._then is not None:
            self._then(event)
