"""Covers: lag/progress.py, lag/groups.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.lag import GroupLag, LagTracker, Meter, PartitionLag, time_to_catch_up_ms
from kohort.lag.progress import WINDOW_MS


def row(position: int | None, end: int | None, *, number: int = 0, **more: int) -> PartitionLag:
    records = None if position is None or end is None or position > end else end - position
    age_ms = None if records is None else 5_000 * (records > 0)
    return PartitionLag("t", number, position, end, records, age_ms, standing_ms=more.get("standing_ms"))


def group(at_ms: int, *rows: PartitionLag, name: str = "g", error: str | None = None) -> GroupLag:
    return GroupLag(name, "classic", "Stable", at_ms, rows, error=error)


def test_two_looks_tell_rates_and_one_does_not() -> None:
    meter = Meter()
    first = meter.take(0, row(0, 100))
    assert (first.arrival_rate, first.work_rate) == (None, None)
    second = meter.take(10_000, row(50, 120))
    assert (second.arrival_rate, second.work_rate) == (2.0, 5.0)


def test_rates_are_those_of_the_last_windows() -> None:
    meter = Meter()
    for at_s in range(0, 601, 10):
        meter.take(at_s * 1_000, row(at_s * 100, at_s * 100))
    # from here on nothing arrives
    for at_s in range(610, 701, 10):
        found = meter.take(at_s * 1_000, row(60_000, 60_000))
    assert (found.arrival_rate, found.work_rate) == (0.0, 0.0)


@given(st.lists(st.integers(1, 40_000), min_size=1, max_size=60))
def test_a_steady_rate_is_seen_whatever_the_time_between_looks(pauses: list[int]) -> None:
    meter, at_ms = Meter(), 0
    meter.take(0, row(0, 0))
    for pause in pauses:
        at_ms += pause
        found = meter.take(at_ms, row(2 * at_ms, 3 * at_ms))
        assert found.arrival_rate == pytest.approx(3_000)
        assert found.work_rate == pytest.approx(2_000)


@pytest.mark.parametrize("after", [row(10, 200), row(60, 70)])
def test_a_reset_or_a_topic_that_was_made_again_begins_anew(after: PartitionLag) -> None:
    meter = Meter()
    meter.take(0, row(50, 100))
    meter.take(10_000, row(60, 100))
    found = meter.take(20_000, after)
    assert (found.arrival_rate, found.work_rate, found.standing_ms) == (None, None, 0)
    again = meter.take(30_000, row(after.committed_offset, (after.end_offset or 0) + 10))
    assert (again.arrival_rate, again.work_rate, again.standing_ms) == (1.0, 0.0, 10_000)


def test_a_partition_stands_while_its_offset_does_and_records_are_unread() -> None:
    meter = Meter()
    assert meter.take(0, row(10, 10)).standing_ms is None
    # nothing was unread until now
    assert meter.take(60_000, row(10, 15)).standing_ms == 0
    assert meter.take(90_000, row(10, 15)).standing_ms == 30_000
    assert meter.take(100_000, row(11, 16)).standing_ms == 0
    assert meter.take(110_000, row(11, 16)).standing_ms == 10_000
    assert meter.take(120_000, row(16, 16)).standing_ms is None


def test_what_is_known_at_the_first_look_counts() -> None:
    meter = Meter()
    assert meter.take(100_000, row(10, 15, standing_ms=40_000)).standing_ms == 40_000
    assert meter.take(110_000, row(10, 15, standing_ms=5_000)).standing_ms == 50_000
    assert meter.take(120_000, row(12, 15, standing_ms=40_000)).standing_ms == 0


@pytest.mark.parametrize("unknown", [row(None, 10), row(3, None), row(11, 10)])
def test_where_the_lag_is_unknown_nothing_else_is_known(unknown: PartitionLag) -> None:
    meter = Meter()
    meter.take(0, row(0, 10))
    assert meter.take(10_000, unknown) == unknown
    assert meter.take(20_000, row(5, 10)).work_rate is None


@pytest.mark.parametrize(
    ("records", "arrival", "work", "time_ms"),
    [
        (0, None, None, 0),
        (0, 5.0, 0.0, 0),
        (100, None, None, None),
        (100, 5.0, 0.0, None),
        (1_000, 5.0, 15.0, 100_000),
        (1_000, 15.0, 15.0, None),
        (1_000, 20.0, 15.0, None),
        # a second's work: it keeps up, whatever arrives
        (15, 15.0, 15.0, 1_000),
    ],
)
def test_when_a_partition_will_have_caught_up(
    records: int, arrival: float | None, work: float | None, time_ms: int | None
) -> None:
    assert time_to_catch_up_ms(records, arrival, work) == time_ms


def test_a_group_has_caught_up_when_its_last_partition_has() -> None:
    tracker = LagTracker()
    tracker.track([group(0, row(0, 1_000), row(0, 2_000, number=1))])
    [found] = tracker.track([group(10_000, row(200, 1_000), row(100, 2_000, number=1))])
    assert (found.arrival_rate, found.work_rate) == (0.0, 30.0)
    assert found.catch_up_ms == 190_000
    [found] = tracker.track([group(40_000, row(800, 1_000), row(100, 2_000, number=1))])
    # the first window is over: the second partition stands still
    [found] = tracker.track([group(80_000, row(1_000, 1_000), row(100, 2_000, number=1))])
    assert found.catch_up_ms is None
    assert found.standing_ms == 70_000
    assert [stands.partition for stands in found.standing(70_000)] == [1]
    assert found.standing(70_001) == []


def test_a_group_sums_what_is_known() -> None:
    found = group(0, row(0, 10), row(None, 5, number=1), row(5, 5, number=2))
    assert (found.records, found.age_ms, found.standing_ms) == (10, 5_000, None)
    nothing = group(0, row(None, 5))
    assert (nothing.records, nothing.age_ms, nothing.arrival_rate) == (None, None, None)


def test_groups_that_are_gone_are_forgotten_and_those_that_could_not_be_asked_are_not() -> None:
    tracker = LagTracker()
    tracker.track([group(0, row(0, 10)), group(0, row(0, 10), name="h")])
    tracker.track([group(10_000, error="not now"), group(10_000, name="h")])
    found, other = tracker.track([group(20_000, row(4, 10)), group(20_000, row(4, 10), name="h")])
    assert found.partitions[0].work_rate == 0.2
    assert other.partitions[0].work_rate is None


def test_memory_of_a_partition_is_bounded() -> None:
    meter = Meter()
    for step in range(1_000):
        meter.take(step * WINDOW_MS, row(step, step))
    assert {type(getattr(meter, name)).__name__ for name in Meter.__slots__} <= {"_Look", "NoneType"}
