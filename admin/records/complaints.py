"""Why a command that reads as a member of a group gets no records, on standard error."""

from __future__ import annotations

from ...consumer.events import BrokerUnavailable, Event, PartitionFailed
from ..screen import Screen


class Complaints:
    """Tells a person each reason once, until there is another."""

    def __init__(self) -> None:
        self._told = ""
        self._screen = Screen(as_json=False)

    def note_event(self, event: Event) -> None:
        """Tell what an event says, if it is a reason."""
        if isinstance(event, BrokerUnavailable | PartitionFailed) and str(event.error) != self._told:
            self._told = str(event.error)
            self._screen.remark(f"{self._told}: trying again")
