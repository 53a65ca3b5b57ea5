"""Of the lag of groups one look a minute is recorded: the highest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kohort.broker.reporting.lag_recording import LagRecorder
from kohort.lag import GroupLag, PartitionLag
from kohort.recording import LagSample


class Samples:
    """In place of a recorder."""

    def __init__(self) -> None:
        self.recorded: list[LagSample] = []

    def record_samples(self, samples: Iterable[LagSample]) -> None:
        self.recorded += samples


def at(time_s: int, records: int | None, group: str = "g") -> GroupLag:
    row = PartitionLag("t", 0, 0, records, records, records)
    return GroupLag(group, "classic", "Stable", time_s * 1_000, (row,), 2)


def test_of_each_minute_the_look_at_which_a_group_was_furthest_behind_is_recorded() -> None:
    samples: Any = Samples()
    recorder = LagRecorder(samples)
    for time_s, records in ((60, 5), (70, 50), (80, 7), (119, 49)):
        recorder.note_look([at(time_s, records), at(time_s, None, "h")])
        assert samples.recorded == []
    recorder.note_look([at(120, 1)])
    assert samples.recorded == [LagSample("g", 70_000, 50, 50, 2), LagSample("h", 60_000, None, None, 2)]
    recorder.flush()
    assert samples.recorded[2:] == [LagSample("g", 120_000, 1, 1, 2)]
    recorder.flush()
    assert len(samples.recorded) == 3
