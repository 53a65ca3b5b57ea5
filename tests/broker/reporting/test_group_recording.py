"""What of a broker's events is recorded, and as which rows."""

from __future__ import annotations

import json
from pathlib import Path

from kohort.broker.reporting.group_recording import (
    MAX_MEMBERS,
    GroupEventRecorder,
    row_of_event,
)
from kohort.broker.reporting.refusal_rate import MAX_REFUSALS, REPEAT_MS
from kohort.coordinator import (
    CoordinatorEvent,
    MemberFenced,
    MemberGone,
    RebalanceCompleted,
    RebalanceStarted,
)
from kohort.coordinator.groups.event_data import MAX_BYTES
from kohort.protocol import CauseKind
from kohort.recording import END_OF_TIME, GroupRecording, RecordingBounds, read_group
from kohort.recording.rows import MAX_EXTRAS


def completed(generation: int, members: int = 2, at_ms: int = 0) -> RebalanceCompleted:
    event = RebalanceCompleted(
        "g",
        generation=generation,
        cause="member b joined",
        member="b",
        members=members,
        members_before=1,
        protocol_type="consumer",
        duration_ms=30,
        join_ms=20,
        sync_ms=10,
        before={"a": {"t": [0, 1]}},
        after={"a": {"t": [0]}, "b": {"t": [1]}},
    )
    event.timestamp_ms = at_ms
    return event


def fenced(member: str, at_ms: int) -> MemberFenced:
    event = MemberFenced("g", member=member, cause="is not in the group", error_code=25, api="HEARTBEAT")
    event.timestamp_ms = at_ms
    return event


def recorded(folder: Path, *events: CoordinatorEvent) -> GroupRecording:
    made = GroupEventRecorder(folder, RecordingBounds(keep_ms=1 << 50, details_ms=1 << 50))
    made.recorder.start()
    for event in events:
        made.note_event(event)
    assert made.recorder.flush()
    made.recorder.close()
    return read_group(folder, "g", 0, END_OF_TIME)


def test_the_end_of_a_rebalance_lasts_with_its_phases_and_its_moves_go_with_age() -> None:
    row = row_of_event(completed(7, at_ms=5))
    assert row[:9] == ("g", 5, "RebalanceCompleted", 7, "member b joined", "b", "", "", True)
    details = json.loads(row.details)
    assert (details["duration_ms"], details["join_ms"], details["members"]) == (30, 20, 2)
    assert (details["partitions_moved"], details["partitions_total"]) == (1, 2)
    assert json.loads(row.extras) == {"joined": ["b"], "left": [], "moves": [["t", 1, "a", "b"]]}
    assert MAX_BYTES <= MAX_EXTRAS


def test_moves_of_a_huge_group_are_not_searched_for() -> None:
    row = row_of_event(completed(7, members=MAX_MEMBERS + 1))
    assert row.extras == ""
    assert json.loads(row.details)["partitions_moved"] is None


def test_what_does_not_last_is_a_row_too_but_the_begin_of_a_rebalance_is_in_its_end(tmp_path: Path) -> None:
    gone = MemberGone("g", member="a", cause="session expired", cause_kind=CauseKind.SESSION_EXPIRED)
    begun = RebalanceStarted("g", generation=1, cause="member a joined")
    found = recorded(tmp_path, CoordinatorEvent("g"), begun, gone, completed(2))
    assert sorted((kept.event.kind, kept.event.lasting) for kept in found.rows) == [
        ("MemberGone", False),
        ("RebalanceCompleted", True),
    ]


def test_equal_refusals_are_recorded_once_a_minute(tmp_path: Path) -> None:
    events = [fenced("a", at) for at in (0, 1, REPEAT_MS - 1, REPEAT_MS)]
    found = recorded(tmp_path, *events, fenced("b", REPEAT_MS))
    assert [(kept.event.member, kept.event.timestamp_ms) for kept in found.rows] == [
        ("a", 0),
        ("a", REPEAT_MS),
        ("b", REPEAT_MS),
    ]
    assert found.losses == ()


def test_a_flood_of_refusals_is_recorded_in_part_and_the_rest_counted(tmp_path: Path) -> None:
    found = recorded(tmp_path, *(fenced(f"m-{number}", 1_000) for number in range(MAX_REFUSALS + 30)))
    assert len(found.rows) == MAX_REFUSALS
    assert sum(loss.lost for loss in found.losses) == 30
