"""Lines about something that is amiss: when it begins, now and then while it lasts, and at its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

log = logging.getLogger("kohort.broker")

#: Least time between two lines of one trouble while it lasts, in seconds.
REPEAT_S: Final = 600.0


#: Names in a line; the others are counted.
_MOST_NAMED: Final = 3


def name_some(names: Sequence[str]) -> str:
    """The first of these names, for a line that also tells how many there are."""
    return ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")


class Trouble:
    """One thing that may be amiss. A trouble that comes and goes is told of once in ``repeat_s``, and its end
    only if its beginning was told.
    """

    def __init__(
        self,
        level: int = logging.WARNING,
        *,
        repeat_s: float = REPEAT_S,
        now: Callable[[], float] = time.monotonic,
        logger: logging.Logger = log,
    ) -> None:
        #: Whether it is there, as far as was noted.
        self.present = False
        self._level = level
        self._repeat_s = repeat_s
        self._now = now
        self._log = logger
        self._since_s = 0.0
        self._told_s = -repeat_s
        self._end_is_due = False

    def __repr__(self) -> str:
        return f"Trouble({'present' if self.present else 'absent'})"

    def on_present(self, text: str, *arguments: object) -> None:
        """It is there: log the text with its ``%`` arguments, unless that was done lately."""
        now = self._now()
        if not self.present:
            self.present, self._since_s = True, now
        if now - self._told_s >= self._repeat_s:
            self._told_s, self._end_is_due = now, True
            self._log.log(self._level, text, *arguments)

    def on_absent(self, text: str, since_s: float | None = None) -> None:
        """It is not, or no more: log the text, and for how long it was there, which began when it was noted,
        or at ``since_s``.
        """
        if not self.present:
            return
        self.present = False
        if self._end_is_due:
            self._end_is_due = False
            since_s = self._since_s if since_s is None else since_s
            self._log.log(self._level, "%s, after %.0f s", text, self._now() - since_s)
