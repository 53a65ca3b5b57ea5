"""The lag of groups over time, recorded in the data folder: see ``kohort.recording``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...coordinator import GroupEvent
from ...lag import GroupLag
from ...recording import LagSample, Recorder

_MINUTE_MS: Final = 60_000


class LagRecorder:
    """Records of the looks of each minute the one at which a group was furthest behind."""

    #: How often somebody should look.
    every_ms: Final = _MINUTE_MS

    def __init__(self, recorder: Recorder[GroupEvent]) -> None:
        self._recorder = recorder
        self._minute = 0
        self._highest: dict[str, LagSample] = {}

    def note_look(self, groups: Iterable[GroupLag]) -> None:
        """Take in a look; what was highest is recorded when the next minute has begun, or by ``flush``."""
        for group in groups:
            minute = group.timestamp_ms // _MINUTE_MS
            if minute != self._minute:
                self.flush()
                self._minute = minute
            known = self._highest.get(group.group)
            if known is None or (group.records or 0) > (known.records or 0):
                self._highest[group.group] = LagSample(
                    group.group, group.timestamp_ms, group.records, group.age_ms, group.member_count
                )

    def flush(self) -> None:
        """Record what is known of this minute."""
        self._recorder.record_samples(self._highest.values())
        self._highest = {}
