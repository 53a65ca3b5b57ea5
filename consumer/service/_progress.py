"""Is the service alive? Alive means progress: work that is there gets done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Progress:
    """Told by the poll loop, at each of its rounds, how much is finished; says when nothing moves any more.

    Looking at a running count costs nothing per record. ``stalled_after_ms`` is how long work may wait
    without any being finished, and how long the poll loop may stay away. Times are seconds of one monotonic
    clock.
    """

    stalled_after_ms: int
    finished: int = 0
    waiting: int = 0
    moved_at: float = 0.0
    observed_at: float = 0.0

    def observe(self, now: float, *, finished: int, waiting: int) -> None:
        """``finished`` records in all so far; ``waiting`` ones handed over and not finished, or unread."""
        if finished != self.finished or not self.waiting:
            self.moved_at = now
        self.finished, self.waiting, self.observed_at = finished, waiting, now

    def complaint(self, now: float) -> str | None:
        """What stands still, in words; None while all is well."""
        limit_s = self.stalled_after_ms / 1000
        if now - self.observed_at > limit_s:
            return f"the consumer has not been asked for records for {now - self.observed_at:.0f} s"
        if self.waiting and now - self.moved_at > limit_s:
            return f"{self.waiting} records wait and none has been finished for {now - self.moved_at:.0f} s"
        return None
