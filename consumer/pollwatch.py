"""Does the user still take records? ``max_poll_interval_ms`` (KIP-62). No I/O; times are milliseconds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .whereabouts import of_task, of_thread

#: Takers of single records are looked at this often, as a share of the interval: so late a breach is told.
LOOK_SHARE = 1 / 32


@dataclass(slots=True)
class PollWatch:
    """Whoever waits for records, or asked for some a short while ago, is alive."""

    max_interval_ms: float
    #: Who polled last: a task, or the number of a thread.
    poller: asyncio.Task[Any] | int | None = None
    #: How many records were taken one by one without a word; it is asked now and then.
    taken: Callable[[], int] = lambda: 0
    _seen: int = 0
    _taken_before: int = 0
    _waiting: int = 0
    _last: float = 0.0
    _look_at: float = 0.0

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

    def read_by_another(self, who: asyncio.Task[Any] | int | None) -> bool:
        """Whether another task, or another thread, than this one was the last that polled, and may go on."""
        if isinstance(self.poller, int):
            return self.poller != who and any(t.ident == self.poller for t in threading.enumerate())
        return self.poller is not None and self.poller is not who and not self.poller.done()

    def idle(self, now: float, limit_ms: float) -> bool:
        """Whether nobody waits for records, and nobody has taken any for so long."""
        if (taken := self.taken()) != self._taken_before:
            self._taken_before = taken
            self._last = max(self._last, now)
        return not self._waiting and now >= self._last + limit_ms

    def busy_with(self) -> str:
        """What the last one that polled is doing instead of polling; empty when that cannot be told."""
        if isinstance(self.poller, int):
            return of_thread(self.poller)
        if self.poller is not None:
            return "nothing: its task has ended" if self.poller.done() else of_task(self.poller)
        return ""

    def deadline(self) -> float | None:
        """When to ask ``expired``; None while somebody waits."""
        if self._waiting:
            return None
        over = self._last + self.max_interval_ms
        return over if self.taken() == self._seen else min(over, self._look_at)

    def age(self, now: float) -> float:
        """Time since the last sign of life."""
        return 0.0 if self._waiting else now - self._last

    def expired(self, now: float) -> bool:
        if now >= self._look_at and (taken := self.taken()) != self._seen:
            # some were taken since the last look: when is not known better
            self._seen = taken
            self._last = max(self._last, now)
            self._look_at = now + self.max_interval_ms * LOOK_SHARE
        return not self._waiting and now >= self._last + self.max_interval_ms
