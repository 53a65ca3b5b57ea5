"""Does the user still take records? ``max_poll_interval_ms`` (KIP-62). No I/O; times are milliseconds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from .whereabouts import of_task, of_thread


@dataclass(slots=True)
class PollWatch:
    """Whoever waits for records, or asked for some a short while ago, is alive."""

    max_interval_ms: float
    #: Who polled last: a task, or the number of a thread.
    poller: asyncio.Task[Any] | int | None = None
    _waiting: int = 0
    _last: float = 0.0

    def polling(self, now: float) -> None:
        """A poll begins."""
        self._waiting += 1
        self._last = now

    def polled(self, now: float) -> None:
        """A poll has given what it gives."""
        self._waiting -= 1
        self._last = now

    def touch(self, now: float) -> None:
        """A poll began and ended at once; or the user does something that shows life."""
        self._last = now

    def busy_with(self) -> str:
        """What the last one that polled is doing instead of polling; empty when that cannot be told."""
        if isinstance(self.poller, int):
            return of_thread(self.poller)
        if self.poller is not None:
            return "nothing: its task has ended" if self.poller.done() else of_task(self.poller)
        return ""

    def deadline(self) -> float | None:
        """When the interval is over; None while somebody waits."""
        return None if self._waiting else self._last + self.max_interval_ms

    def age(self, now: float) -> float:
        """Time since the last sign of life."""
        return 0.0 if self._waiting else now - self._last

    def expired(self, now: float) -> bool:
        return not self._waiting and now >= self._last + self.max_interval_ms
