"""The service's log: rate-limited lines, and lines about events, of which its consumer writes none then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from ...consumer.event_lines import Line, line_of
from ...consumer.events import Event

#: Most lines of a kind in an interval; the first has the traceback.
LINES = 5
INTERVAL_S = 10.0

log = logging.getLogger("kohort.service")


@dataclass(slots=True, eq=False)
class _Interval:
    began: float
    lines: int = 0


class ServiceLog:
    """Writes to the service's log: of each kind a few lines in an interval, and later how many were left out.

    For use on an event loop, whose clock it uses. The number of kinds is bounded by the program's text.
    """

    def __init__(self, line_of_event: Callable[[Event], Line] = line_of) -> None:
        self._line_of_event = line_of_event
        self._kinds: dict[Hashable, _Interval] = {}

    def line(
        self, kind: Hashable, level: int, text: str, *values: object, error: BaseException | None = None
    ) -> None:
        """Write a line, or count it. The traceback of ``error`` is with the first one of an interval."""
        now = asyncio.get_running_loop().time()
        interval = self._kinds.get(kind)
        left_out = 0
        if interval is None or now - interval.began >= INTERVAL_S:
            left_out = max(0, interval.lines - LINES) if interval is not None else 0
            interval = self._kinds[kind] = _Interval(now)
        interval.lines += 1
        if interval.lines > LINES:
            return
        if left_out:
            text, values = f"{text} (%d more of these were not written)", (*values, left_out)
        log.log(level, text, *values, exc_info=error if interval.lines == 1 else None)

    def event(self, group: str, event: Event) -> None:
        """Write an event's line: warnings for what may need a person, details as DEBUG."""
        level, text = self._line_of_event(event)
        self.line((type(event), level), level, "group %s: %s", group, text)
