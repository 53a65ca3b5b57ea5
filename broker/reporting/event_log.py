"""Each event of the coordinator as a record of the logger ``kohort.events``.

The message is a sentence; the attribute ``event_fields`` holds the fields, which ``LogHandler`` writes as
keys and values. The rate of lines is limited; the next line says how many were left out.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from ...coordinator import CoordinatorEvent, GroupEvent, RebalanceCompleted, Refusal
from .log_lines import cut_text
from .refusal_rate import RefusalRate

#: The logger of events.
EVENTS_LOGGER: Final = "kohort.events"

#: Most lines in a second; fewer of them are about refusals.
MAX_LINES: Final = 500

#: Longest wait of a line for others, in seconds, and most lines that are written in one turn of the loop.
WAIT_S: Final = 0.005
_AT_ONCE: Final = 25

# moves of larger groups are not computed for a line: that takes a millisecond for a hundred members
_MAX_COUNTED = 200
_SECOND_MS = 1_000
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}


class EventLogWriter:
    """Writes events to the log, and passes them to ``on_event``. ``later`` schedules a function: lines are
    written then, some at a time, because they cost more than most of what they report. ``close`` writes the
    rest.
    """

    def __init__(
        self,
        on_event: Callable[[CoordinatorEvent], None] | None = None,
        later: Callable[[Callable[[], None]], object] = lambda write: write(),
    ) -> None:
        self._on_event = on_event
        self._later = later
        self._waiting: deque[tuple[int, CoordinatorEvent, dict[str, int]]] = deque()
        self._log = logging.getLogger(EVENTS_LOGGER)
        self._second = 0
        self._lines = 0
        self._not_logged = 0
        self._refusals = RefusalRate(self._count_left_out)

    def __call__(self, event: CoordinatorEvent) -> None:
        level = _LEVELS[event.level]
        if self._log.isEnabledFor(level) and (counts := self._admit_event(event)) is not None:
            self._waiting.append((level, event, counts))
            if len(self._waiting) == 1:
                self._later(self._write_some)
        if self._on_event is not None:
            self._on_event(event)

    def close(self) -> None:
        """Write the events that wait for their second."""
        while self._waiting:
            self._write_event(*self._waiting.popleft())

    def _write_some(self) -> None:
        try:
            for _ in range(min(len(self._waiting), _AT_ONCE)):
                self._write_event(*self._waiting.popleft())
        finally:
            # a handler may fail on one of them: write the others all the same
            if self._waiting:
                self._later(self._write_some)

    def _admit_event(self, event: CoordinatorEvent) -> dict[str, int] | None:
        """Return what the event's line says about lines left out before it; None: leave this one out, too.

        This is decided before the event is queued, so that at most a second's lines are queued for each
        second.
        """
        second = event.timestamp_ms // _SECOND_MS
        if second != self._second:
            self._second, self._lines = second, 0
        repeated = self._refusals.admit(event) if isinstance(event, Refusal) else 0
        if repeated is None:
            return None
        if self._lines >= MAX_LINES:
            self._count_left_out()
            return None
        self._lines += 1
        counts = {"repeated": repeated, "not_logged": self._not_logged}
        self._not_logged = 0
        return {name: count for name, count in counts.items() if count}

    def _count_left_out(self) -> None:
        self._not_logged += 1

    def _write_event(self, level: int, event: CoordinatorEvent, counts: dict[str, int]) -> None:
        found = {**_line_fields(event), **counts}
        kind = event.name
        where = f" in group {cut_text(event.group)!r}" if event.group else ""
        what = (
            event.cause if isinstance(event, GroupEvent) else ", ".join(f"{k} {v}" for k, v in found.items())
        )
        record = self._log.makeRecord(
            EVENTS_LOGGER,
            level,
            __file__,
            0,
            "%s%s: %s",
            (kind, where, what),
            None,
            extra={"event_fields": {"event": kind, **found}},
        )
        if event.timestamp_ms:
            record.created = event.timestamp_ms / _SECOND_MS
        self._log.handle(record)


def _line_fields(event: CoordinatorEvent) -> dict[str, object]:
    """The fields of an event's line, without empty ones."""
    # not needed for a start
    from ...coordinator.groups.event_data import event_fields

    found = event_fields(event)
    if isinstance(event, RebalanceCompleted) and event.members <= _MAX_COUNTED:
        found["partitions_moved"] = event.partitions_moved
        found["partitions_total"] = event.partitions_total
    if event.group:
        found = {"group": cut_text(event.group), **found}
    if event.sequence:
        found["sequence"] = event.sequence
    return {name: value for name, value in found.items() if value is not None and value != ""}
