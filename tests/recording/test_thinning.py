"""A recording stays within its bounds, and says what went."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kohort.recording import END_OF_TIME, EventRow, GroupRecording, LagSample, RecordingBounds, read_group
from kohort.recording.file import open_writable
from kohort.recording.store import Store
from kohort.recording.thinning import SAMPLE_STEPS, thin_by_age, thin_by_size, used_bytes

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW_MS = 400 * DAY_MS


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(open_writable(tmp_path), NOW_MS)


def rebalance(at_ms: int, group: str = "g", generation: int = 0, extras: str = '{"moves":[1]}') -> EventRow:
    cause = f"member m-{generation} joined"
    return EventRow(
        group, at_ms, "RebalanceCompleted", generation, cause, lasting=True, details="{}", extras=extras
    )


def refusal(at_ms: int, group: str = "g") -> EventRow:
    return EventRow(group, at_ms, "MemberFenced", cause="m is not a member")


def read(folder: Path, group: str = "g") -> GroupRecording:
    return read_group(folder, group, 0, END_OF_TIME, limit=1_000_000)


def test_details_of_old_events_go_and_causes_stay(store: Store, tmp_path: Path) -> None:
    old, new = NOW_MS - 2 * DAY_MS, NOW_MS - HOUR_MS
    store.write([rebalance(old), refusal(old), rebalance(new), refusal(new)], [], [], NOW_MS)
    thin_by_age(store.connection, RecordingBounds(), NOW_MS)
    found = read(tmp_path)
    assert [(kept.event.timestamp_ms, kept.event.kind, kept.event.extras) for kept in found.rows] == [
        (old, "RebalanceCompleted", ""),
        (new, "RebalanceCompleted", '{"moves":[1]}'),
        (new, "MemberFenced", ""),
    ]
    assert found.rows[0].event.cause == "member m-0 joined"
    assert found.details_from_ms == NOW_MS - DAY_MS
    assert found.events_from_ms == 0


def test_nothing_is_older_than_the_bound(store: Store, tmp_path: Path) -> None:
    times = [NOW_MS - 30 * DAY_MS, NOW_MS - 8 * DAY_MS, NOW_MS - 6 * DAY_MS]
    store.write([rebalance(at) for at in times], [LagSample("g", at, 1) for at in times], [], NOW_MS)
    store.write([rebalance(times[0], "gone")], [], [], NOW_MS)
    thin_by_age(store.connection, RecordingBounds(), NOW_MS)
    found = read(tmp_path)
    assert [kept.event.timestamp_ms for kept in found.rows] == times[2:]
    assert [sample.timestamp_ms for sample in found.samples] == times[2:]
    assert found.events_from_ms == found.samples_from_ms == NOW_MS - 7 * DAY_MS
    assert store.connection.execute("SELECT name FROM groups").fetchall() == [("g",)]


def test_a_clock_far_behind_drops_nothing(store: Store, tmp_path: Path) -> None:
    store.write([rebalance(NOW_MS)], [LagSample("g", NOW_MS, 1)], [], NOW_MS)
    thin_by_age(store.connection, RecordingBounds(), HOUR_MS)
    assert len(read(tmp_path).rows) == len(read(tmp_path).samples) == 1


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.integers(0, 6 * 24 * 60), st.none() | st.integers(0, 1_000), max_size=80),
    st.lists(st.integers(1, 600), min_size=1, max_size=4),
)
def test_samples_are_thinned_to_the_highest_of_each_step_however_often(
    tmp_path_factory: pytest.TempPathFactory, lags: dict[int, int | None], minutes: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("r")
    store = Store(open_writable(folder), NOW_MS)
    samples = [LagSample("g", NOW_MS - minute * 60_000, lag) for minute, lag in lags.items()]
    store.write([], samples, [], NOW_MS)
    now_ms = NOW_MS
    for minute in minutes:
        now_ms += minute * 60_000
        thin_by_age(store.connection, RecordingBounds(keep_ms=30 * DAY_MS), now_ms)
    kept = read(folder).samples
    store.connection.close()
    assert set(kept) <= set(samples)
    for sample in samples:
        step_ms = max(
            (step * 1_000 for age, step in SAMPLE_STEPS if now_ms - sample.timestamp_ms > age), default=1
        )
        begin = sample.timestamp_ms // step_ms * step_ms
        same = [each for each in kept if begin <= each.timestamp_ms < begin + step_ms]
        # what is as high or higher is there
        assert any((each.records or 0) >= (sample.records or 0) for each in same)
    oldest = [each.timestamp_ms // HOUR_MS for each in kept if now_ms - each.timestamp_ms > 5 * DAY_MS]
    assert len(oldest) == len(set(oldest))


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 3_000), min_size=1, max_size=4), st.integers(0, 6_000))
def test_the_file_stays_within_its_size(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], samples: int
) -> None:
    folder = tmp_path_factory.mktemp("r")
    store = Store(open_writable(folder), NOW_MS)
    bounds = RecordingBounds(max_bytes=400_000)
    at_ms = NOW_MS
    for index, count in enumerate(counts):
        rows = [rebalance(at_ms + number, f"g{index}", number) for number in range(count)]
        store.write(rows, [LagSample(f"g{index}", at_ms + 1_000 * n, n) for n in range(samples)], [], at_ms)
        at_ms += 10_000_000
        thin_by_size(store.connection, bounds)
        store.forget_ids()
        assert used_bytes(store.connection) <= bounds.max_bytes
    store.connection.close()


def test_the_group_that_takes_the_most_loses_first_and_says_so(store: Store, tmp_path: Path) -> None:
    extras = json.dumps({"moves": [[f"topic-{number % 7}", number, "a", "b"] for number in range(300)]})
    store.write([rebalance(NOW_MS + at, "quiet", at, extras) for at in range(20)], [], [], NOW_MS)
    store.write([rebalance(NOW_MS + at, "loud", at, extras) for at in range(3_000)], [], [], NOW_MS)
    before = used_bytes(store.connection)
    thin_by_size(store.connection, RecordingBounds(max_bytes=before // 2))
    quiet, loud = read(tmp_path, "quiet"), read(tmp_path, "loud")
    assert all(kept.event.extras for kept in quiet.rows)
    assert quiet.details_from_ms == quiet.events_from_ms == 0
    # every cause is still there, and the newest with its details
    assert len(loud.rows) == 3_000
    assert loud.events_from_ms == 0
    assert loud.details_from_ms > NOW_MS
    assert loud.rows[-1].event.extras
    assert not loud.rows[0].event.extras
    thin_by_size(store.connection, RecordingBounds(max_bytes=250_000))
    loud = read(tmp_path, "loud")
    assert loud.events_from_ms > NOW_MS
    assert all(kept.event.timestamp_ms >= loud.events_from_ms for kept in loud.rows)


def test_fifty_rebalances_a_minute_for_a_night_keep_every_cause(store: Store, tmp_path: Path) -> None:
    bounds, night = RecordingBounds(max_bytes=16 << 20), 12 * 60 * 50
    for batch in range(0, night, 1_000):
        numbers = range(batch, min(batch + 1_000, night))
        store.write(
            [rebalance(NOW_MS + 1_200 * n, "busy", n) for n in numbers], [], [], NOW_MS + 1_200 * batch
        )
        thin_by_size(store.connection, bounds)
    thin_by_age(store.connection, bounds, NOW_MS + 1_200 * night)
    found = read(tmp_path, "busy")
    assert [kept.event.cause for kept in found.rows] == [f"member m-{n} joined" for n in range(night)]
