"""What happens to groups, recorded in the data folder: see ``kohort.recording``.

An event costs its group's requests an entry in a queue. Its row is made in the recorder's thread.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Final

from ...coordinator import (
    CoordinatorEvent,
    GenerationAbandoned,
    GroupEvent,
    GroupRemoved,
    MemberFenced,
    RebalanceCompleted,
    RebalanceStarted,
    Refusal,
)
from ...recording import EventRow, Recorder, RecordingBounds
from .log_lines import cut_text

#: Events that are kept as long as the recording goes back: how generations and groups ended.
_LASTING: Final = (RebalanceCompleted, GenerationAbandoned, GroupRemoved)

#: Time in ms during which an equal refusal of the same member is not recorded again, and most refusals that
#: are recorded in one second.
REPEAT_MS: Final = 60_000
MAX_REFUSALS: Final = 50

#: Moves of larger groups are not recorded: they take a millisecond for a hundred members to find.
MAX_MEMBERS: Final = 1_000

_MOST_REMEMBERED = 1_000


class GroupEventRecorder:
    """Records events of a broker's groups in its data folder ``data``."""

    def __init__(self, data: Path, bounds: RecordingBounds) -> None:
        self.recorder: Recorder[GroupEvent] = Recorder(data, row_of_event, bounds)
        self._refused: dict[Hashable, int] = {}
        self._second = self._refusals = 0

    def note_event(self, event: CoordinatorEvent) -> None:
        """Record an event, if it is one of a group and adds something to those before."""
        # a rebalance's end says how it began
        if not isinstance(event, GroupEvent) or isinstance(event, RebalanceStarted):
            return
        if isinstance(event, Refusal) and not self._admit_refusal(event):
            return
        self.recorder.record_event(event, lasting=isinstance(event, _LASTING))

    def _admit_refusal(self, event: Refusal) -> bool:
        """Return whether a refusal is to be recorded; one that is not is counted, if it is no repetition."""
        api = event.api if isinstance(event, MemberFenced) else ""
        key = type(event), api, cut_text(event.group), event.member, event.instance_id, event.error_code
        recorded_ms = self._refused.pop(key, None)
        if recorded_ms is not None and event.timestamp_ms - recorded_ms < REPEAT_MS:
            self._refused[key] = recorded_ms
            return False
        second = event.timestamp_ms // 1_000
        if second != self._second:
            self._second, self._refusals = second, 0
        if self._refusals >= MAX_REFUSALS:
            self.recorder.count_lost("", 1)
            return False
        self._refusals += 1
        self._refused[key] = event.timestamp_ms
        if len(self._refused) > _MOST_REMEMBERED:
            del self._refused[next(iter(self._refused))]
        return True


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
