"""Waiting: back-off before a retry, and a signal that wakes waiting tasks."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field


def now_ms() -> float:
    """The running event loop's clock, in milliseconds."""
    return asyncio.get_running_loop().time() * 1000


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """The loop's clock, in seconds, without the call in between where it is asyncio's own."""
    own = getattr(type(loop), "time", None) is asyncio.BaseEventLoop.time
    return time.monotonic if own else loop.time


@dataclass(slots=True)
class Backoff:
    """Exponential back-off with jitter (Kafka's ``retry.backoff.ms`` and ``retry.backoff.max.ms``).

    The jitter, a fraction of the delay, spreads clients that failed at the same moment. Pass ``rng`` for
    reproducible runs.
    """

    initial_ms: float = 100.0
    max_ms: float = 1000.0
    jitter: float = 0.2
    rng: random.Random = field(default_factory=random.Random)

    def delay_ms(self, attempt: int) -> float:
        """Milliseconds to wait before retry ``attempt`` (0 is the first retry)."""
        base = min(self.initial_ms * 2.0 ** min(attempt, 30), self.max_ms)
        return base * (1 + self.jitter * (2 * self.rng.random() - 1))


class Signal:
    """``fire`` wakes all tasks that wait now. Tasks that wait later wait for the next ``fire``."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        # a dict, because it keeps the order of arrival
        self.waiters: dict[asyncio.Future[None], None] = {}

    def fire(self) -> None:
        """Wake everybody who waits now."""
        if not self.waiters:
            return
        waiters, self.waiters = self.waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, timeout_ms: float | None = None) -> bool:
        """Wait for ``fire``. Return True, or False if ``timeout_ms`` passed first (None: no limit)."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiters[waiter] = None
        try:
            if timeout_ms is None:
                await waiter
                return True
            async with asyncio.timeout(max(timeout_ms, 0.0) / 1000):
                await waiter
        except TimeoutError:
            return False
        finally:
            self.waiters.pop(waiter, None)
        return True
