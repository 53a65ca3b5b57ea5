"""The consumer's events in the service's log; the consumer writes none of its own then."""

from __future__ import annotations

from ..event_lines import line_of
from ..events import Event
from ._repeated_log import RepeatedLog


class EventLines:
    """``see`` each event: warnings for what may need a person, information on rebalances, details as DEBUG.

    What repeats is written a few times in a while, and then counted.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._repeated = RepeatedLog()

    def see(self, event: Event) -> None:
        """Write its line."""
        level, text = line_of(event)
        self._repeated.line((type(event), level), level, "group %s: %s", self._group, text)
