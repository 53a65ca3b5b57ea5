"""Virtual time: one heap of (time, seeded tie-break, action), and the coordinator's event loop on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from math import ceil
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


class _Handle:
    """Unlike asyncio's, lets exceptions out to whoever runs the heap."""

    cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """An event loop as far as one run of the coordinator needs it; nothing runs any more once it is dead."""

    def __init__(self, heap: Heap) -> None:
        self.alive = True
        #: What went wrong in a callback that nobody waits for.
        self.errors: list[BaseException] = []
        self._heap = heap

    def call_soon(self, action: Callable[..., Any], *args: Any, context: Any = None) -> _Handle:
        return self.call_later(0, action, *args, context=context)

    def call_later(
        self, delay_s: float, action: Callable[..., Any], *args: Any, context: Any = None
    ) -> _Handle:
        del context
        handle = _Handle()
        self._heap.at(self._heap.now + ceil(delay_s * 1_000), self._run, handle, action, args)
        return handle

    def call_at(self, when_s: float, action: Callable[..., Any], *args: Any, context: Any = None) -> _Handle:
        return self.call_later(when_s - self.time(), action, *args, context=context)

    def _run(self, handle: _Handle, action: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if self.alive and not handle.cancelled:
            action(*args)

    def time(self) -> float:
        return self._heap.now / 1_000

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)  # type: ignore[arg-type]

    def create_task(self, coroutine: Coroutine[Any, Any, Any], **_: Any) -> asyncio.Task[Any]:
        return asyncio.Task(coroutine, loop=self)  # type: ignore[arg-type]

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(context.get("exception") or RuntimeError(context["message"]))

    def enter(self) -> None:
        """Be the loop that runs in this thread."""
        asyncio._set_running_loop(self)  # type: ignore[arg-type]
