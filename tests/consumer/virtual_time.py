"""An event loop whose clock jumps to the next timer whenever nothing else is left to do."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

#: Real seconds that sockets and threads get before the clock jumps.
_GRACE_S = 0.001


class _Selector(selectors.DefaultSelector):
    """Waits for no timer: tells the loop to move its clock instead."""

    loop: VirtualTimeLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(_GRACE_S)
        if not ready:
            self.loop.skipped_s += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Real sockets, virtual timers: minutes pass in milliseconds."""

    def __init__(self) -> None:
        selector = _Selector()
        selector.loop = self
        self.skipped_s = 0.0
        super().__init__(selector)

    def time(self) -> float:
        return super().time() + self.skipped_s


def run_in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on a loop of its own."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)
