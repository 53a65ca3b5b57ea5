"""What happens to groups, recorded in the data folder: see ``kohort.recording``.

An event costs its group's requests an entry in a queue. Its row is made in the recorder's thread.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...coordinator import (
    CoordinatorEvent,
    GenerationAbandoned,
    GroupEvent,
    GroupRemoved,
    RebalanceCompleted,
    RebalanceStarted,
    Refusal,
)
from ...recording import EventRow, Recorder, RecordingBounds
from .refusal_rate import RefusalRate

#: Events that are kept as long as the recording goes back: how generations and groups ended.
_LASTING: Final = (RebalanceCompleted, GenerationAbandoned, GroupRemoved)

#: Moves of larger groups are not recorded: they take a millisecond for a hundred members to find.
MAX_MEMBERS: Final = 1_000


class GroupEventRecorder:
    """Records events of a broker's groups in its data folder ``data``."""

    def __init__(self, data: Path, bounds: RecordingBounds) -> None:
        self.recorder: Recorder[GroupEvent] = Recorder(data, row_of_event, bounds)
        self._refusals = RefusalRate(lambda: self.recorder.count_lost("", 1))

    def note_event(self, event: CoordinatorEvent) -> None:
        """Record an event, if it is one of a group and adds something to those before."""
        # a rebalance's end says how it began
        if not isinstance(event, GroupEvent) or isinstance(event, RebalanceStarted):
            return
        if isinstance(event, Refusal) and self._refusals.admit(event) is None:
            return
        self.recorder.record_event(event, lasting=isinstance(event, _LASTING))


def row_of_event(event: GroupEvent) -> EventRow:
    """The row of an event."""
    # not needed for a start
    from ...coordinator.groups.event_data import recorded_json

    details, extras = recorded_json(event, MAX_MEMBERS)
    return EventRow(
        event.group,
        event.timestamp_ms,
        event.name,
        event.generation,
        event.cause,
        event.member,
        event.client_id,
        event.client_host,
        isinstance(event, _LASTING),
        details,
        extras,
    )
