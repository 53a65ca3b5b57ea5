"""Measures of a quota: a rate over windows, and a bucket of tokens.

Both say how long their client has to wait until it is within the quota again. Differences from Apache Kafka,
on purpose, so that a client that always asks for more ends at its quota and not 10 to 13 % above it:
the windows lie on a grid that begins with the first use, and a client that has just begun has the credit
of one window (Kafka: of all but one); later it may save up as much as the windows hold, as with Kafka.
"""

from __future__ import annotations

import math
from typing import Final

_NEVER: Final = float("-inf")


class RateWindows:
    """The rate of something over the newest ``num`` windows of ``size_s`` seconds.

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
        "_sum",
        "_totals",
    )

    def __init__(self, num: int, size_s: float) -> None:
        assert num >= 1, "there is at least one window"
        assert size_s > 0, "a window has a length"
        self._num = num
        self._size_s = size_s
        self._totals = [0.0] * num
        self._first_s = self._begun_s = self._rolls_s = _NEVER
        self._number = 0
        # what the windows hold, and the least time that is a rate over while this window is under way
        self._sum = 0.0
        self._floor_s = size_s

    def __repr__(self) -> str:
        return f"RateWindows({self._sum:g} in {self._num} windows of {self._size_s:g} s)"

    @property
    def total(self) -> float:
        """Sum of the windows, as of the last call."""
        return self._sum

    def record(self, value: float, limit: float, now: float) -> float:
        """Count ``value``; seconds until the rate is down at ``limit``, 0.0 if it is not above."""
        if now >= self._rolls_s:
            self._roll(now)
        self._sum += value
        if self._sum <= limit * self._floor_s:
            return 0.0
        return max(0.0, self._sum / limit - self._span_s(now))

    def unrecord(self, value: float) -> None:
        """Take back what was counted just now."""
        self._sum -= value

    def delay_s(self, limit: float, now: float) -> float:
        """Delay in seconds, as ``record`` of 0 returns it."""
        return self.record(0.0, limit, now)

    def rate(self, now: float) -> float:
        """By the second; 0.0 for what was never used."""
        if self._first_s == _NEVER:
            return 0.0
        if now >= self._rolls_s:
            self._roll(now)
        return max(0.0, self._sum) / self._span_s(now)

    def _span_s(self, now: float) -> float:
        return max(self._floor_s, now - self._begun_s)

    def _roll(self, now: float) -> None:
        """Let the window that ``now`` is in begin."""
        if self._first_s == _NEVER:
            # rounding must not put the first use into the window before it
            self._first_s = math.nextafter(now - self._size_s, _NEVER)
        totals, num, before = self._totals, self._num, self._number
        totals[before % num] += self._sum - sum(totals)
        number = self._number = int((now - self._first_s) / self._size_s)
        for index in range(max(before + 1, number - num + 1), number + 1):
            totals[index % num] = 0.0
        self._sum = sum(totals)
        self._begun_s = self._first_s + max(0, number - num + 1) * self._size_s
        self._rolls_s = max(self._first_s + (number + 1) * self._size_s, now)
        self._floor_s = max(1, min(number, num - 1)) * self._size_s


class TokenBucket:
    """Tokens that come at ``limit`` a second, up to ``burst_s`` seconds' worth; full at first.

    As in Apache Kafka the last that is taken may leave it in debt: something greater than the bucket is done
    too, and paid for afterwards.
    """

    __slots__ = ("_at_s", "_burst_s", "_debt")

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        self._debt: float | None = None
        self._at_s = 0.0

    def __repr__(self) -> str:
        return f"TokenBucket(lacks {self._debt or 0:g})"

    def tokens(self, limit: float, now: float) -> float:
        """Tokens in the bucket; below 0 is debt."""
        return limit * self._burst_s - self._lacking(limit, now)

    def take(self, count: float, limit: float, now: float) -> None:
        """Take ``count``, whatever is in it."""
        self._debt = self._lacking(limit, now) + count

    def delay_s(self, limit: float, now: float) -> float:
        """Seconds until there is no debt; 0.0 if there is none."""
        return max(0.0, -self.tokens(limit, now) / limit)

    def is_full(self, limit: float, now: float) -> bool:
        """Return whether as much is in it as can be."""
        return self._lacking(limit, now) == 0

    def _lacking(self, limit: float, now: float) -> float:
        """Tokens missing for a full bucket, now."""
        if self._debt is not None:
            self._debt = max(0.0, self._debt - limit * max(0.0, now - self._at_s))
        self._at_s = now
        return self._debt or 0.0
