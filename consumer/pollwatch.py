"""Does the user still take records? ``max_poll_interval_ms`` (KIP-62). No I/O; times are milliseconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class PollWatch:
    """Whoever waits for records, or asked for some a short while ago, is alive."""

    max_interval_ms: float
    _waiting: int = 0
    _last: float = 0.0

    def polling(self, now: float) -> None:
        """A poll begins."""
        self._waiting += 1
        self._last = now

    def polled(self, now: float) -> None:
        """A poll has given what it gives."""
        self._waiting -= 1
        self._last = now

    def touch(self, now: float) -> None:
        """A poll began and ended at once; or the user does something that shows life."""
        self._last = now

    def deadline(self) -> float | None:
        """When the interval is over; None while somebody waits."""
        return None if self._waiting else self._last + self.max_interval_ms

    def age(self, now: float) -> float:
        """Time since the last sign of life."""
        return 0.0 if self._waiting else now - self._last

    def expired(self, now: float) -> bool:
        return not self._waiting and now >= self._last + self.max_interval_ms
