"""Gauges of a quota: a rate over windows, and a bucket of tokens.

Two differences from Apache Kafka keep a client that always asks for more at its quota, and not 10 to 13 %
above it: the windows lie on a grid that begins with the first use, and a new client has the credit of one
window (Kafka: of all but one); later it may save up as much as the windows hold, as with Kafka.
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
    """A rate over the newest windows with its quota, shared by all who have it in common.

    The time that it is a rate over begins one window before the first use; later it is that of the full
    windows that are kept and of the one that is under way.
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
        #: Time of the last use, and all the delays it has caused, in seconds.
        self.used_s = self.throttled_s = 0.0
        #: Sum of the windows, as of the last call.
        self.total = 0.0
        self._totals = [0.0] * self._num
        self._first_s = self._begun_s = self._rolls_s = _NEVER
        self._number = 0
        # the least time that is a rate over while this window is under way
        self._floor_s = self._size_s

    def __repr__(self) -> str:
        return f"Gauge({self.total:g} in {self._num} windows of {self._size_s:g} s)"

    def record(self, value: float, now: float) -> float:
        """Count something that is done; seconds until the rate is down at the limit, 0.0 if it is there."""
        self.used_s = now
        if now >= self._rolls_s:
            self._roll(now)
        self.total += value
        if self.total <= self.limit * self._floor_s:
            return 0.0
        return max(0.0, self.total / self.limit - self._span_s(now))

    def take_back(self, value: float) -> None:
        """Take back the last record: it is not done after all."""
        self.total -= value

    def used(self, now: float) -> float:
        """Use of the quota by the second, in its unit; 0.0 for what was never used."""
        if self._first_s == _NEVER:
            return 0.0
        if now >= self._rolls_s:
            self._roll(now)
        return max(0.0, self.total) / self._span_s(now)

    def is_blank(self, now: float) -> bool:
        """Return whether nothing is lost when it is forgotten."""
        return now - self.used_s > self._num * self._size_s

    def _span_s(self, now: float) -> float:
        return max(self._floor_s, now - self._begun_s)

    def _roll(self, now: float) -> None:
        """Let the window that ``now`` is in begin."""
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
    """A bucket of tokens with its quota: partitions made or deleted, shared by all who have it in common.

    Tokens come at ``limit`` a second, up to the windows' worth; the bucket is full at first. As in Apache
    Kafka the last that is taken may leave it in debt: something greater than the bucket is done too, and
    paid for afterwards.
    """

    __slots__ = ("_at_s", "_burst_s", "_debt", "limit", "throttled_s")

    def __init__(self, windows: QuotaWindows, limit: float = 0.0) -> None:
        self._burst_s = windows.num * windows.size_s
        self._debt: float | None = None
        self._at_s = 0.0
        self.limit = limit
        self.throttled_s = 0.0

    def record(self, value: float, now: float) -> None:
        """Count something that is done, whatever is in the bucket."""
        self._debt = self._lacking(now) + value

    def delay_s(self, now: float) -> float:
        """Seconds until there is no debt; 0.0 if there is none."""
        return max(0.0, -self.used(now) / self.limit)

    def used(self, now: float) -> float:
        """Tokens left in the bucket, as Apache Kafka shows them; below 0 is debt."""
        return self.limit * self._burst_s - self._lacking(now)

    def is_blank(self, now: float) -> bool:
        """Return whether nothing is lost when it is forgotten: it is full."""
        return self._lacking(now) == 0

    def _lacking(self, now: float) -> float:
        """Tokens missing for a full bucket, now."""
        if self._debt is not None:
            self._debt = max(0.0, self._debt - self.limit * max(0.0, now - self._at_s))
        self._at_s = now
        return self._debt or 0.0
