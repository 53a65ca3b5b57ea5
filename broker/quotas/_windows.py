"""Gauges of a quota: a rate over windows, and a bucket of tokens.

Two differences from Apache Kafka keep a client that always wants more at its quota, instead of 10 to 13 %
above it: the windows lie on a grid that begins with the first use, and a new client has the credit of one
window (in Kafka: of all but one); later it may save up as much as the windows hold, as in Kafka.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

_NEVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class QuotaWindows:
    """``num`` windows of ``size_s`` seconds."""

    num: int = 11
    size_s: float = 1.0


class Gauge:
    """A rate over the newest windows, and its quota; clients that share the quota share the gauge.

    The time over which the rate is computed begins one window before the first use; later it covers the kept
    full windows and the current one.
    """

    __slots__ = (
        "_begun_s",
        "_first_s",
        "_floor_s",
        "_num",
        "_number",
        "_rolls_s",
        "_size_s",
        "_totals",
        "limit",
        "throttled_s",
        "total",
        "used_s",
    )

    def __init__(self, windows: QuotaWindows, limit: float = 0.0) -> None:
        self._num, self._size_s = windows.num, windows.size_s
        assert self._num >= 1, "there is at least one window"
        assert self._size_s > 0, "a window has a length"
        self.limit = limit
        #: Time of the last use, and the sum of the delays it caused, in seconds.
        self.used_s = self.throttled_s = 0.0
        #: Sum of the windows, as of the last call.
        self.total = 0.0
        self._totals = [0.0] * self._num
        self._first_s = self._begun_s = self._rolls_s = _NEVER
        self._number = 0
        # the least time over which the rate is computed during this window
        self._floor_s = self._size_s

    def __repr__(self) -> str:
        return f"Gauge({self.total:g} in {self._num} windows of {self._size_s:g} s)"

    def record(self, value: float, now: float) -> float:
        """Count a use; return the seconds until the rate falls to the limit, 0.0 if it is within."""
        self.used_s = now
        if now >= self._rolls_s:
            self._roll_window(now)
        self.total += value
        if self.total <= self.limit * self._floor_s:
            return 0.0
        return max(0.0, self.total / self.limit - self._span_s(now))

    def take_back(self, value: float) -> None:
        """Take back the last use: it did not happen after all."""
        self.total -= value

    def used(self, now: float) -> float:
        """Use of the quota per second, in its unit; 0.0 if it was never used."""
        if self._first_s == _NEVER:
            return 0.0
        if now >= self._rolls_s:
            self._roll_window(now)
        return max(0.0, self.total) / self._span_s(now)

    def is_blank(self, now: float) -> bool:
        """Return whether dropping the gauge loses nothing."""
        return now - self.used_s > self._num * self._size_s

    def _span_s(self, now: float) -> float:
        return max(self._floor_s, now - self._begun_s)

    def _roll_window(self, now: float) -> None:
        """Begin the window that contains ``now``."""
        if self._first_s == _NEVER:
            # rounding must not put the first use into the window before it
            self._first_s = math.nextafter(now - self._size_s, _NEVER)
        totals, num, before = self._totals, self._num, self._number
        totals[before % num] += self.total - sum(totals)
        number = self._number = int((now - self._first_s) / self._size_s)
        for index in range(max(before + 1, number - num + 1), number + 1):
            totals[index % num] = 0.0
        self.total = sum(totals)
        self._begun_s = self._first_s + max(0, number - num + 1) * self._size_s
        self._rolls_s = max(self._first_s + (number + 1) * self._size_s, now)
        self._floor_s = max(1, min(number, num - 1)) * self._size_s


class MutationGauge:
    """A token bucket for partitions created and deleted; clients that share the quota share the bucket.

    Tokens come at ``limit`` per second, up to the windows' worth; the bucket is full at first. As in Apache
    Kafka the last use may leave it in debt: a use larger than the bucket is possible, and paid afterwards.
    """

    __slots__ = ("_at_s", "_burst_s", "_debt", "limit", "throttled_s")

    def __init__(self, windows: QuotaWindows, limit: float = 0.0) -> None:
        self._burst_s = windows.num * windows.size_s
        self._debt: float | None = None
        self._at_s = 0.0
        self.limit = limit
        self.throttled_s = 0.0

    def record(self, value: float, now: float) -> None:
        """Count a use, whatever is in the bucket."""
        self._debt = self._lacking_tokens(now) + value

    def delay_s(self, now: float) -> float:
        """Seconds until there is no debt; 0.0 if there is none."""
        return max(0.0, -self.used(now) / self.limit)

    def used(self, now: float) -> float:
        """Tokens left in the bucket, as Apache Kafka shows them; below 0 is debt."""
        return self.limit * self._burst_s - self._lacking_tokens(now)

    def is_blank(self, now: float) -> bool:
        """Return whether dropping the bucket loses nothing: it is full."""
        return self._lacking_tokens(now) == 0

    def _lacking_tokens(self, now: float) -> float:
        """Tokens missing from a full bucket now."""
        if self._debt is not None:
            self._debt = max(0.0, self._debt - self.limit * max(0.0, now - self._at_s))
        self._at_s = now
        return self._debt or 0.0
