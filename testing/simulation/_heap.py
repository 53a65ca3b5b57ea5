"""Virtual time: one heap of (time, seeded tie-break, action)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any, Protocol


class Watch(Protocol):
    """Looks at what happened where ``touched`` is set."""

    touched: bool

    def look(self) -> None: ...


class Heap:
    """Actions that are still to come. Times are whole ms; actions due together run in a drawn order."""

    __slots__ = ("_heap", "_tie", "events", "now")

    def __init__(self, rng: Random) -> None:
        self.now = 0
        self.events = 0
        self._heap: list[tuple[int, float, Callable[..., None], tuple[Any, ...]]] = []
        self._tie = rng.random

    def __len__(self) -> int:
        return len(self._heap)

    def clear(self) -> None:
        self._heap.clear()

    def at(self, time: int, action: Callable[..., None], *args: Any) -> None:
        """``action(*args)`` at a time that is not over."""
        heappush(self._heap, (time, self._tie(), action, args))

    def run(self, end: int, watch: Watch) -> None:
        """Let happen what is due by ``end``, and call ``look`` after what touched; then it is ``end``."""
        heap = self._heap
        while heap and heap[0][0] <= end:
            self.now, _, action, args = heappop(heap)
            self.events += 1
            action(*args)
            if watch.touched:
                watch.look()
        self.now = max(self.now, end)
