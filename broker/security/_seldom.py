"""Log lines that strangers can cause: so many of a kind a second, then the number of those left out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

log = logging.getLogger("kohort.broker")

#: Lines of a kind in a second.
LINES = 100


class Seldom:
    """One kind of line. ``say`` writes it, or counts it for the next."""

    __slots__ = ("_left", "_left_out", "_level", "_log", "_now", "_since")

    def __init__(
        self,
        level: int = logging.WARNING,
        now: Callable[[], float] = time.monotonic,
        logger: logging.Logger = log,
    ) -> None:
        self._level = level
        self._log = logger
        self._now = now
        self._since = now()
        self._left = LINES
        self._left_out = 0

    def say(self, text: str, *arguments: object) -> None:
        now = self._now()
        if now - self._since >= 1:
            self._since, self._left = now, LINES
        if not self._left:
            self._left_out += 1
            return
        more = f" ({self._left_out} lines like this one were left out)" if self._left_out else ""
        self._left, self._left_out = self._left - 1, 0
        self._log.log(self._level, text + more, *arguments)
