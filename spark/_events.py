"""What a job tells whoever watches it, one type per thing that happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ._ranges import OffsetRange


@dataclass(frozen=True, slots=True)
class BatchCommitted:
    """A batch is done and its ends are the group's offsets; of a query, Spark's own log has it.

    ``lag_before`` and ``lag`` are the offsets that were left without it and after it, when it was planned.
    ``rows`` is None where the batch was not read to its end, or not once as a whole. ``read_seconds``, within
    ``sink_seconds``, are what the slowest reader took to fetch and decode; None where nobody measured it.
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

    @property
    def offsets(self) -> int:
        """How many offsets the ranges have: an upper bound of the rows."""
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
        return {
            "plan": self.plan_seconds,
            **read,
            "sink": self.sink_seconds,
            "commit": self.commit_seconds,
        }


@dataclass(frozen=True, slots=True)
class CommitRefused:
    """The coordinator refused a commit because the group has members; the loop tries again.

    ``number`` is the batch; ``waited_seconds`` counts from the first refusal.
    """

    group: str
    number: int
    reason: str
    waited_seconds: float


@dataclass(frozen=True, slots=True)
class OffsetsLost:
    """Offsets that were to be read and that the logs no longer have; the loop goes on behind them."""

    group: str
    ranges: tuple[OffsetRange, ...]


Event = BatchCommitted | CommitRefused | OffsetsLost
Listener = Callable[[Event], object]


def all_of(listeners: Listener | Sequence[Listener] | None) -> Callable[[Event], None]:
    """One function that tells each of them, in their order."""
    if listeners is None:
        listeners = ()
    each: Sequence[Listener] = (listeners,) if callable(listeners) else tuple(listeners)

    def tell(event: Event) -> None:
        for listener in each:
            listener(event)

    return tell
