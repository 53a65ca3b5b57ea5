"""What a driver loop tells whoever watches it, one type per thing that happens."""

from __future__ import annotations

from dataclasses import dataclass

from ._ranges import OffsetRange


@dataclass(frozen=True, slots=True)
class BatchCommitted:
    """A batch is done and its ends are the group's offsets. ``lag`` is how many offsets were left then."""

    group: str
    number: int
    ranges: tuple[OffsetRange, ...]
    replayed: bool
    lag: int
    plan_seconds: float
    sink_seconds: float
    commit_seconds: float


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
