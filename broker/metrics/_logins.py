"""Logins that were refused, by listener."""

from __future__ import annotations

from ._sensors import Counter
from ._snapshot import RateFigures


class FailedLogins:
    """Counts by listener. One that was added shows 0 until it refuses somebody: what appears with its first
    count has no increase for Prometheus.
    """

    def __init__(self, now: float) -> None:
        self._now = now
        self._by_listener: dict[str, Counter] = {}

    def __repr__(self) -> str:
        return f"FailedLogins({ {name: each.count for name, each in self._by_listener.items()} })"

    def add(self, listener: str) -> None:
        """Begin to count for a listener."""
        self._by_listener[listener] = Counter(self._now)

    def count(self, listener: str) -> None:
        """Count one that a listener refused."""
        self._by_listener[listener].count += 1

    def rotate(self, now: float) -> None:
        """End a window."""
        self._now = now
        for each in self._by_listener.values():
            each.rotate(now)

    def figures(self, now: float) -> dict[str, RateFigures]:
        """Totals and rates of each listener."""
        return {name: RateFigures(each.count, each.rate(now)) for name, each in self._by_listener.items()}
