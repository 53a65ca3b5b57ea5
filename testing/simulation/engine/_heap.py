"""Virtual time: one heap of (time, seeded tie-break, action)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Protocol


class Watch(Protocol):
    """Is called after each action that sets ``touched``."""

    touched: bool

    def look(self) -> None: ...


class Heap:
    """Pending actions. Times are whole ms; actions due at the same time run in a random order."""

    __slots__ = ("_heap", "_tie", "events", "now")

    def __init__(self, rng: Random) -> None:
        self.now = 0
        self.events = 0
        self._heap: list[tuple[int, float, Callable[..., None], tuple[object, ...]]] = []
        self._tie = rng.random

    def __len__(self) -> int:
        return len(self._heap)

    def clear(self) -> None:
        self._heap.clear()

    def at(self, time: int, action: Callable[..., None], *args: object) -> None:
        """Schedule ``action(*args)`` at a time that is not in the past."""
        heappush(self._heap, (time, self._tie(), action, args))

    def run(self, end: int, watch: Watch) -> None:
        """Run all actions due by ``end``, call ``look`` after those that set ``touched``, and set the time to
        ``end``.
        """
        heap = self._heap
        while heap and heap[0][0] <= end:
            self.now, _, action, args = heappop(heap)
            self.events += 1
            action(*args)
            if watch.touched:
                watch.look()
        self.now = max(self.now, end)
