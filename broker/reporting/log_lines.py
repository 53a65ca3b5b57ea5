"""Log lines that clients can cause: on one line, limited in length and rate."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

log = logging.getLogger("kohort.broker")

#: Longest text supplied by a client in a log line, in characters.
MAX_LOGGED_TEXT: Final = 200

#: Most lines of one kind in a second; further ones are counted, and the next line says how many there were.
LINES: Final = 100


def cut_text(text: str) -> str:
    """A client's text, cut to length."""
    return text if len(text) <= MAX_LOGGED_TEXT else text[:MAX_LOGGED_TEXT] + "..."


def printable_text(text: str) -> str:
    """A client's text for one log line: control characters escaped, cut to length."""
    return cut_text(text.encode("unicode_escape").decode("ascii"))


class RateLimitedLog:
    """One kind of line. ``say`` writes it, or counts it for the next; ``fail`` adds the stack trace of the
    exception that is being handled.
    """

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
        """Log a line, with ``%`` arguments, unless there were too many lately."""
        self._write_line(text, arguments, with_trace=False)

    def fail(self, text: str, *arguments: object) -> None:
        """As ``say``, with the traceback of the exception that is being handled."""
        self._write_line(text, arguments, with_trace=True)

    def _write_line(self, text: str, arguments: tuple[object, ...], *, with_trace: bool) -> None:
        now = self._now()
        if now - self._since >= 1:
            self._since, self._left = now, LINES
        if not self._left:
            self._left_out += 1
            return
        more = f" ({self._left_out} lines like this one were left out)" if self._left_out else ""
        self._left, self._left_out = self._left - 1, 0
        self._log.log(self._level, text + more, *arguments, exc_info=with_trace)
