"""All timers of a shard in one heap: the next deadline, and the timers that are due, in a deterministic
order.

Most timers are sessions, which every heartbeat extends, so restarting one to a later time only changes a
number; its place in the heap is corrected when it reaches the top. Starting, restarting earlier and firing
are O(log n). Equal deadlines fire in the order in which they were last started.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Final, TypeAlias

#: Key of a timer: its kind, then what it concerns.
TimerKey: TypeAlias = tuple[str, ...]

#: Later than any deadline.
NEVER: Final = 2**63 - 1

# below this number of dead heap entries a sweep does not pay
_SWEEP_FLOOR: Final = 64


@dataclass(slots=True, eq=False)
class _Timer:
    key: TimerKey
    deadline_ms: int
    order: int
    queued: tuple[int, int]  # deadline and order of its one valid entry in the heap
    live: bool = True


class Timers:
    """Timers by key; times are in ms of the caller's clock."""

    __slots__ = ("_by_key", "_heap", "_order")

    def __init__(self) -> None:
        self._by_key: dict[TimerKey, _Timer] = {}
        self._heap: list[tuple[int, int, _Timer]] = []
        self._order = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._by_key

    def deadline(self, key: TimerKey) -> int | None:
        """The time at which a timer fires; None if it is not running."""
        timer = self._by_key.get(key)
        return None if timer is None else timer.deadline_ms

    def start(self, key: TimerKey, deadline_ms: int) -> None:
        """Start a timer, or move it to another deadline (ms)."""
        self._order = order = self._order + 1
        timer = self._by_key.get(key)
        if timer is None:
            timer = _Timer(key, deadline_ms, order, (deadline_ms, order))
            self._by_key[key] = timer
            heapq.heappush(self._heap, (deadline_ms, order, timer))
            return
        timer.deadline_ms = deadline_ms
        timer.order = order
        if deadline_ms < timer.queued[0]:
            self._queue_timer(timer)
            self._sweep_queue()

    def cancel(self, key: TimerKey) -> None:
        """Stop a timer. Safe to call for one that does not run."""
        timer = self._by_key.pop(key, None)
        if timer is not None:
            timer.live = False
            self._sweep_queue()

    def clear(self) -> None:
        """Stop all timers."""
        self._by_key.clear()
        self._heap.clear()

    @property
    def soonest_ms(self) -> int:
        """Lower bound of the next deadline, cheap to read, for a driver that only needs to wake up
        in time.
        """
        return self._heap[0][0] if self._heap else NEVER

    def next_deadline(self) -> int | None:
        """The time at which the next timer fires; None if none runs."""
        timer = self._first_timer()
        return None if timer is None else timer.deadline_ms

    def pop_due(self, now_ms: int) -> TimerKey | None:
        """Remove and return the first timer with ``deadline <= now``; None if none is due."""
        timer = self._first_timer()
        if timer is None or timer.deadline_ms > now_ms:
            return None
        heapq.heappop(self._heap)
        del self._by_key[timer.key]
        timer.live = False
        return timer.key

    def _first_timer(self) -> _Timer | None:
        heap = self._heap
        while heap:
            deadline_ms, order, timer = heap[0]
            if timer.live and timer.order == order:
                return timer
            heapq.heappop(heap)
            if timer.live and timer.queued == (deadline_ms, order):
                self._queue_timer(timer)
        return None

    def _queue_timer(self, timer: _Timer) -> None:
        timer.queued = (timer.deadline_ms, timer.order)
        heapq.heappush(self._heap, (timer.deadline_ms, timer.order, timer))

    def _sweep_queue(self) -> None:
        if len(self._heap) <= 2 * len(self._by_key) + _SWEEP_FLOOR:
            return
        for timer in self._by_key.values():
            timer.queued = (timer.deadline_ms, timer.order)
        self._heap = [(*timer.queued, timer) for timer in self._by_key.values()]
        heapq.heapify(self._heap)
