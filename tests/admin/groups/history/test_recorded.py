"""The past of a group from recordings, with what nobody knows of it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from kohort.admin import Generation, GroupAdmin, GroupHistory, HistoryEntry
from kohort.admin.groups.history.generations import cut_to, from_events, with_records
from kohort.admin.groups.history.recorded import (
    RecordedPast,
    cut_entries,
    hidden_stretches,
    merge_entries,
    merge_pasts,
    read_folder,
    with_what_is_missing,
)
from kohort.admin.groups.results import LagPoint, TimeStretch
from kohort.client import ConfigError
from kohort.consumer import AsyncGroupConsumer, Cluster
from kohort.recording import EventRow, LagSample, Recorder
from kohort.testing import running_broker
from tests.admin.conftest import Ran, ran, stable

ALL = TimeStretch()


def ended(at_ms: int, generation: int, cause: str = "why") -> HistoryEntry:
    details = {"members": 1, "members_before": 1, "duration_ms": 0}
    return HistoryEntry(-1, at_ms, "RebalanceCompleted", generation, cause, "m", "c", "/h", details)


def told(*entries: HistoryEntry) -> GroupHistory:
    return from_events("g", entries, 100)


async def rebalance(bootstrap: str, times: int) -> None:
    async with GroupAdmin(bootstrap) as admin:
        for _ in range(times):
            async with AsyncGroupConsumer("orders", bootstrap=bootstrap, group="billing"):
                await stable(admin, "billing", 1)


async def test_every_cause_is_told_after_a_restart_however_few_events_are_in_memory(tmp_path: Path) -> None:
    with running_broker(data=tmp_path, kohort_group_history_size=4) as broker:
        async with Cluster(broker.bootstrap) as cluster:
            await cluster.create_topics({"orders": 1})
        await rebalance(broker.bootstrap, 5)
    with running_broker(data=tmp_path, kohort_group_history_size=4) as broker:
        await rebalance(broker.bootstrap, 1)
        async with GroupAdmin(broker.bootstrap) as admin:
            history = await admin.history("billing", 100)
            # a member that comes before the last one has left makes one rebalance of the two
            last = history.generations[-1].generation
            assert last >= 6
            assert [row.generation for row in history.generations] == list(range(1, last + 1))
            assert all(row.cause and row.duration_ms is not None for row in history.generations)
            assert all(row.moves is not None for row in history.generations)
            # nothing can have happened in between: the numbers follow each other
            assert history.gaps == ()
            between = TimeStretch(history.generations[2].timestamp_ms, history.generations[5].timestamp_ms)
            part = await admin.history("billing", 100, stretch=between, every_event=True)
            assert [row.generation for row in part.generations] == [3, 4, 5, 6]
            assert {entry.kind for entry in part.entries} > {"RebalanceCompleted"}
            assert await admin.delete_groups(["billing"])
            numbers: list[int] = []
            # the last events are written a moment later
            async with asyncio.timeout(60):
                while numbers[:last] != list(range(1, last + 1)):
                    gone = await admin.history("billing", 100, stretch=TimeStretch())
                    numbers = [row.generation for row in gone.generations]


def test_entries_of_several_sources_are_told_once_in_order() -> None:
    first, second, third = ended(1, 1), ended(2, 2), ended(3, 3)
    assert merge_entries([first, third], [second, third]) == (first, second, third)
    assert cut_entries([first, second, third], TimeStretch(2, 2)) == (second,)
    assert cut_entries([first, second, third], TimeStretch(2)) == (second, third)


def test_recordings_of_several_brokers_are_put_together() -> None:
    one = RecordedPast(
        (ended(5, 2),), (TimeStretch(4, 6),), ((TimeStretch(5, 5), 2),), (LagPoint(5, 1),), 3, 1
    )
    two = RecordedPast((ended(1, 1),), (TimeStretch(0, 2),), (), (LagPoint(1, 7),), 2, 0)
    both = merge_pasts([one, two])
    assert [entry.generation for entry in both.entries] == [1, 2]
    assert both.watched == (TimeStretch(0, 2), TimeStretch(4, 6))
    assert both.samples == (LagPoint(1, 7), LagPoint(5, 1))
    assert (both.details_from_ms, both.events_from_ms) == (3, 1)
    assert not merge_pasts([]).is_recording


def test_a_gap_hides_something_unless_the_generations_around_it_follow_each_other() -> None:
    gap = TimeStretch(10, 20)
    assert hidden_stretches([gap], [(5, 1), (25, 2)]) == ()
    assert hidden_stretches([gap], [(5, 1), (25, 3)]) == (gap,)
    assert hidden_stretches([gap], [(5, 1)]) == (gap,)
    assert hidden_stretches([gap], [(5, 1), (15, 2), (25, 3)]) == (gap,)


def test_what_is_not_known_is_said() -> None:
    past = RecordedPast(
        (ended(100_000, 3),),
        (TimeStretch(50_000, 120_000), TimeStretch(200_000, 900_000)),
        ((TimeStretch(60_000, 70_000), 12),),
        events_from_ms=80_000,
        details_from_ms=110_000,
        silent=(2,),
    )
    found = with_what_is_missing(told(*past.entries), past, TimeStretch(40_000), 905_000)
    assert found.gaps == (TimeStretch(40_000, 50_000), TimeStretch(120_000, 200_000))
    minute = "1970-01-01 00:01:"
    assert list(found.unknown) == [
        "nobody recorded this group from 1970-01-01 00:00:40.000 to 1970-01-01 00:00:50.000",
        "nobody recorded this group from 1970-01-01 00:02:00.000 to 1970-01-01 00:03:20.000",
        f"12 events could not be recorded, of this group or of others, from {minute}00.000 to {minute}10.000",
        "what was recorded before 1970-01-01 00:01:20.000 has made way for newer events",
        "of what was before 1970-01-01 00:01:50.000 causes are kept, but not what moved",
        "no recording was told by node 2: it did not answer, or keeps none",
    ]
    many = RecordedPast((), tuple(TimeStretch(at, at + 1) for at in range(0, 200, 10)))
    words = with_what_is_missing(told(), many, TimeStretch(0, 191), 10**9).unknown
    assert len(words) == 6
    assert words[-1] == "nor in 14 earlier stretches"


def test_a_recording_that_goes_on_has_no_gap_at_its_end() -> None:
    past = RecordedPast((), (TimeStretch(0, 100_000),))
    assert past.gaps(0, 110_000) == ()
    assert past.gaps(0, 200_000) == (TimeStretch(100_000, 200_000),)


def test_records_fill_what_nobody_recorded() -> None:
    known = GroupHistory(
        "g",
        "coordinator",
        (),
        (Generation(2, 2_000, "Stable", "why"), Generation(5, 500_000, "Stable", "why")),
        gaps=(TimeStretch(3_000, 400_000),),
    )
    rows = tuple(
        Generation(number, at, "Stable") for number, at in ((1, 900), (2, 1_990), (3, 5_000), (5, 499_990))
    )
    filled = with_records(known, GroupHistory("g", "offsets topic", (), rows), 10, 1_500)
    assert [row.generation for row in filled.generations] == [1, 2, 3, 5]
    assert [words.partition(":")[0] for words in filled.unknown] == [
        "1 of these generations ended before the broker began to keep this group's history",
        "1 of these generations ended while nobody recorded this group",
    ]
    cut = cut_to(filled, TimeStretch(1_000, 10_000), 1)
    assert [row.generation for row in cut.generations] == [3]


def test_what_a_broker_remembers_of_a_time_without_a_recording_is_told_once() -> None:
    known = GroupHistory(
        "g",
        "coordinator",
        (),
        (Generation(1, 100_000, "Stable", "why", duration_ms=30_000), Generation(2, 200_000, "Empty", "why")),
        gaps=(TimeStretch(0, 300_000),),
    )
    # of a group of the same name before, and as they were written
    rows = [Generation(*row, "Stable") for row in ((1, 5_000), (2, 6_000), (1, 60_000), (2, 200_008))]
    filled = with_records(known, GroupHistory("g", "offsets topic", (), tuple(rows)), 10, 50_000)
    told = [(row.generation, row.timestamp_ms, row.cause) for row in filled.generations]
    assert told == [(1, 5_000, None), (2, 6_000, None), (1, 100_000, "why"), (2, 200_000, "why")]


def test_a_folder_is_read_without_a_broker(tmp_path: Path) -> None:
    def row_of(generation: int) -> EventRow:
        details = '{"members":1,"members_before":0,"duration_ms":7}'
        extras = '{"joined":["m"],"left":[],"moves":[["t",0,null,"m"]]}'
        at_ms = 1_000 + generation
        return EventRow(
            "g", at_ms, "RebalanceCompleted", generation, "why", "m", "c", "/h", True, details, extras
        )

    made = Recorder(tmp_path, row_of, now_ms=lambda: 5_000)
    made.start()
    made.watch("any")
    for generation in range(3):
        made.record_event(generation, lasting=True)
    made.record_samples([LagSample("g", 2_000, 9, 8, 1)])
    assert made.flush()
    made.close()
    past = read_folder(str(tmp_path), "g", ALL, 2, only_lasting=True)
    assert [(entry.generation, entry.details["members"]) for entry in past.entries] == [(1, 1), (2, 1)]
    assert past.entries[0].details["moves"] == [["t", 0, None, "m"]]
    assert past.samples == (LagPoint(2_000, 9, 8, 1),)
    assert past.watched == (TimeStretch(5_000, 5_000),)
    with pytest.raises(ConfigError, match="knows no group 'h'"):
        read_folder(str(tmp_path), "h", ALL, 2, only_lasting=True)
    with pytest.raises(ConfigError, match="there is no recording in"):
        read_folder(str(tmp_path / "elsewhere"), "g", ALL, 2, only_lasting=True)
    (tmp_path / "recording.db").write_bytes(b"no database" * 500)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_folder(str(tmp_path), "g", ALL, 2, only_lasting=True)


def test_the_command_shows_a_stretch_of_time_of_a_recording_of_today(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now_ms = time.time_ns() // 1_000_000

    def row_of(hours: int) -> EventRow:
        details = '{"members":1,"members_before":0,"duration_ms":7}'
        at_ms = now_ms - hours * 3_600_000
        cause = f"cause {hours}"
        return EventRow("g", at_ms, "RebalanceCompleted", 10 - hours, cause, lasting=True, details=details)

    made = Recorder(tmp_path, row_of)
    made.start()
    made.watch()
    for hours in (3, 2, 1):
        made.record_event(hours, lasting=True)
    assert made.flush()

    def timeline(*words: str) -> Ran:
        return ran(capsys, ["groups", "timeline", "g", "--record", str(tmp_path), *words])

    whole = timeline()
    assert whole.code == 0
    assert [row[2] for row in whole.rows()[1:]] == ["7", "8", "9"]
    assert "nobody recorded this group from" in whole.err
    assert [row[2] for row in timeline("--since", "150m").rows()[1:]] == ["8", "9"]
    assert [row[2] for row in timeline("--from", "150m", "--to", "90m").rows()[1:]] == ["8"]
    assert [row[2] for row in timeline("--limit", "1").rows()[1:]] == ["9"]
    document = timeline("--json", "--events").document
    assert document["source"] == "recording"
    assert [entry["cause"] for entry in document["entries"]] == ["cause 3", "cause 2", "cause 1"]
    page = tmp_path / "page.html"
    assert timeline("--html", str(page)).code == 0
    assert "cause 2" in page.read_text()
    assert "Not known." in page.read_text()
    assert "node -1" not in page.read_text()
    assert ran(capsys, ["groups", "timeline", "g", "--record", str(tmp_path / "no")]).code == 2
    assert timeline("--since", "soon").code == 2
    made.close()
