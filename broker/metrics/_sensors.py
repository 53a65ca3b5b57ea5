"""Counters and times that are cheap to update: the current window, the one before it, and totals."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import Final

from ._snapshot import TimeFigures

#: Length of a window in seconds: figures cover one to two of them.
WINDOW_S: Final = 30.0

# Eight buckets for each power of two of microseconds: a time is exact to 12 %. The last is 19 hours.
_STEPS: Final = 8
_BUCKETS: Final = 280
_QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


class Counter:
    """``count`` is the total, which callers raise; ``rate`` covers the last windows."""

    __slots__ = ("_before", "_before_s", "_now_s", "_then", "count")

    def __init__(self, now: float) -> None:
        self.count = 0
        self._then = self._before = 0
        self._now_s = self._before_s = now

    def rotate(self, now: float) -> None:
        """End a window."""
        self._before, self._before_s = self._then, self._now_s
        self._then, self._now_s = self.count, now

    def rate(self, now: float) -> float:
        """Counts per second in the last one to two windows."""
        return (self.count - self._before) / max(now - self._before_s, 1.0)


class Histogram:
    """Durations in seconds."""

    __slots__ = ("_before", "_buckets", "_highest_before_s", "_highest_s", "count", "total_s")

    def __init__(self) -> None:
        self.count = 0
        self.total_s = 0.0
        self._buckets = [0] * _BUCKETS
        self._before: list[int] | None = None
        self._highest_s = self._highest_before_s = 0.0

    def __repr__(self) -> str:
        return f"Histogram({self.count} times, {self.total_s:g} s)"

    def record(self, seconds: float) -> None:
        """Count a duration, given in seconds."""
        micros = int(seconds * 1e6)
        if micros < _STEPS:
            index = micros if micros > 0 else 0
        else:
            shift = micros.bit_length() - 4
            index = (shift << 3) + (micros >> shift)
            if index >= _BUCKETS:
                index = _BUCKETS - 1
        self._buckets[index] += 1
        self.count += 1
        self.total_s += seconds
        if seconds > self._highest_s:
            self._highest_s = seconds

    def rotate(self) -> None:
        """End a window."""
        if self._before is not None or any(self._buckets):
            self._before, self._buckets = self._buckets, [0] * _BUCKETS
            if not any(self._before):
                self._before = None
        self._highest_before_s, self._highest_s = self._highest_s, 0.0

    def figures(self) -> TimeFigures:
        """Totals, and the figures of the windows."""
        counts = self._buckets
        if self._before is not None:
            counts = [one + other for one, other in zip(counts, self._before, strict=True)]
        recent = sum(counts)
        highest_ms = max(self._highest_s, self._highest_before_s) * 1000
        if not recent:
            return TimeFigures(self.count, self.total_s)
        mean_ms = sum(count * _middle_ms(index) for index, count in enumerate(counts) if count) / recent
        up_to = list(accumulate(counts))
        quantiles = {
            share: min(_middle_ms(bisect_left(up_to, share * recent)), highest_ms) for share in _QUANTILES
        }
        return TimeFigures(self.count, self.total_s, min(mean_ms, highest_ms), highest_ms, quantiles)


def _middle_ms(index: int) -> float:
    if index < _STEPS:
        return (index + 0.5) / 1000
    shift, rest = (index >> 3) - 1, (index & 7) + 8
    return ((rest + 0.5) * (1 << shift)) / 1000
