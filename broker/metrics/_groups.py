"""Counters of the coordinator's events; accepted commits are counted as requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ...coordinator import (
    AssignorFailed,
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


@dataclass(slots=True, eq=False)
class GroupCounters:
    """Counts the events passed to ``count_event``; then calls ``then`` with each."""

    then: Callable[[CoordinatorEvent], None] | None = None
    rebalances: Counter[str] = field(default_factory=Counter)
    share_rebalances: int = 0
    rebalance_times: Histogram = field(default_factory=Histogram)
    abandoned: int = 0
    expired_members: int = 0
    offsets_removed: int = 0
    refusals: int = 0
    assignor_failures: int = 0
    records_skipped: int = 0

    def count_event(self, event: CoordinatorEvent) -> None:
        """Count a rebalance, its cause and duration, or another event of a group."""
        if isinstance(event, RebalanceCompleted):
            self.rebalances[event.cause_kind] += 1
            self.share_rebalances += event.protocol_type == "share"
            self.rebalance_times.record(event.duration_ms / 1000)
        elif isinstance(event, Refusal):
            self.refusals += 1
            self.assignor_failures += isinstance(event, AssignorFailed)
        elif isinstance(event, GenerationAbandoned):
            self.abandoned += 1
        elif isinstance(event, MemberGone):
            self.expired_members += event.cause_kind is CauseKind.SESSION_EXPIRED
        elif isinstance(event, OffsetsRemoved):
            self.offsets_removed += event.count
        elif isinstance(event, RecordSkipped):
            self.records_skipped += 1
        if self.then is not None:
            self.then(event)
