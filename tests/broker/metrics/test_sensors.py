"""Counters and times: what the windows hold, and how near the percentiles are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.broker.metrics._sensors import Counter, Histogram

times = st.lists(st.floats(1e-6, 3_600.0), min_size=1, max_size=200)


@settings(max_examples=50)
@given(times)
def test_percentiles_are_within_an_eighth_of_the_truth(recorded: list[float]) -> None:
    histogram = Histogram()
    for seconds in recorded:
        histogram.record(seconds)
    figures = histogram.figures()
    in_order = sorted(recorded)
    for share, found_ms in figures.quantiles_ms.items():
        wanted_ms = in_order[max(0, -int(-share * len(in_order) // 1) - 1)] * 1000
        assert found_ms == pytest.approx(wanted_ms, rel=0.13, abs=0.001)
    assert figures.max_ms == pytest.approx(max(recorded) * 1000)
    assert figures.count == len(recorded)
    assert figures.total_s == pytest.approx(sum(recorded))


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e-9, 86_400.0 * 365])
def test_no_time_is_too_short_or_too_long(seconds: float) -> None:
    histogram = Histogram()
    histogram.record(seconds)
    assert histogram.figures().count == 1


def test_figures_are_of_the_last_two_windows_and_totals_of_all() -> None:
    histogram = Histogram()
    histogram.record(5.0)
    histogram.rotate()
    histogram.record(0.001)
    assert histogram.figures().max_ms == 5_000.0
    histogram.rotate()
    assert histogram.figures().max_ms == pytest.approx(1.0)
    histogram.rotate()
    assert histogram.figures().quantiles_ms == {}
    assert histogram.figures().count == 2


def test_a_rate_is_that_of_the_last_one_to_two_windows() -> None:
    counter = Counter(0.0)
    counter.count += 300
    assert counter.rate(30.0) == 10.0
    counter.rotate(30.0)
    assert counter.rate(60.0) == 5.0
    counter.rotate(60.0)
    assert counter.rate(90.0) == 0.0
