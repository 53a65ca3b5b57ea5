"""What a connection waits with: pauses of a client that is over a quota, and futures to be woken by."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Pause:
    """True while it lasts; ``over`` is called at its end."""

    __slots__ = ("_loop", "_over", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, over: Callable[[], None]) -> None:
        self._loop = loop
        self._over = over
        self._timer: asyncio.TimerHandle | None = None

    def __bool__(self) -> bool:
        return self._timer is not None

    def begin(self, seconds: float) -> None:
        """Last for so long from now on, longer if it did already."""
        if self._timer is not None:
            if self._timer.when() >= self._loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self.end)

    def end(self) -> None:
        """Be over now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._over()


def wake(waiter: asyncio.Future[None] | None) -> None:
    """Let who waits go on."""
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
