"""Waiting for the next change of something, by any number of waiters."""

from __future__ import annotations

import asyncio


class Signal:
    """``fire`` wakes everyone who waits at that moment; nothing is remembered for later."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        # in the order in which they came
        self.waiters: dict[asyncio.Future[None], None] = {}

    def fire(self) -> None:
        waiters, self.waiters = self.waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, timeout_ms: float | None = None) -> bool:
        """Whether it fired before the time was up (None: no limit)."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiters[waiter] = None
        try:
            async with asyncio.timeout(None if timeout_ms is None else max(timeout_ms, 0.0) / 1000):
                await waiter
        except TimeoutError:
            return False
        finally:
            self.waiters.pop(waiter, None)
        return True
