"""Log lines that strangers can cause: at most one of a kind a second, with the number of those left out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger("kohort.broker")

#: Least time between two lines of a kind, in seconds.
INTERVAL_S = 1.0


class Seldom:
    """One kind of line. ``say`` writes it, or counts it for the next."""

    __slots__ = ("_last", "_left_out", "_level", "_now")

    def __init__(self, level: int = logging.WARNING, now: Callable[[], float] = time.monotonic) -> None:
        self._level = level
        self._now = now
        self._last = -INTERVAL_S
        self._left_out = 0

    def say(self, text: str, *arguments: object) -> None:
        now = self._now()
        if now - self._last < INTERVAL_S:
            self._left_out += 1
            return
        more = f" ({self._left_out} lines like this one left out)" if self._left_out else ""
        self._last, self._left_out = now, 0
        log.log(self._level, text + more, *arguments)
