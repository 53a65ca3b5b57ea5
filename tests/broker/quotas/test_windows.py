"""Rates over windows and buckets of tokens: what they let through, and for how long they delay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.broker.quotas import Gauge, QuotaWindows
from kohort.broker.quotas._windows import MutationGauge

LIMIT = 1_000.0

steps = st.lists(
    st.tuples(st.floats(0.0, 3.0, allow_nan=False), st.floats(0.0, 2_500.0, allow_nan=False)),
    min_size=1,
    max_size=60,
)
shapes = st.tuples(st.integers(1, 12), st.sampled_from([0.5, 1.0, 2.0]))


def greedy(windows: Gauge, batch: float, seconds: float, speed: float = 10.0) -> float:
    """What gets through of a client that always sends at ``speed`` times its quota and obeys delays."""
    now = done = 0.0
    while now < seconds:
        now += batch / (LIMIT * speed)
        done += batch
        now += windows.record(batch, now)
    return done / seconds


@pytest.mark.parametrize("batch", [5.0, 50.0, 400.0, 1_000.0])
def test_a_client_that_always_sends_ends_close_to_its_quota(batch: float) -> None:
    assert greedy(Gauge(QuotaWindows(11, 1.0), LIMIT), batch, 30.0) == pytest.approx(LIMIT, rel=0.06)


def test_a_client_below_its_quota_is_never_delayed() -> None:
    windows = Gauge(QuotaWindows(11, 1.0), LIMIT)
    assert not any(windows.record(90.0, number / 10) for number in range(1_000))


def test_a_new_client_has_the_credit_of_one_window() -> None:
    assert Gauge(QuotaWindows(11, 1.0), LIMIT).record(1_000.0, 5.0) == 0.0
    assert Gauge(QuotaWindows(11, 1.0), LIMIT).record(1_500.0, 5.0) == pytest.approx(0.5)


def test_a_client_that_was_quiet_has_the_credit_of_all_windows_but_one() -> None:
    windows = Gauge(QuotaWindows(11, 1.0), LIMIT)
    windows.record(1.0, 0.0)
    assert windows.record(10_000.0, 100.0) == 0.0
    assert windows.record(1_000.0, 100.0) == pytest.approx(1.0)


def test_what_is_older_than_the_windows_is_forgotten() -> None:
    windows = Gauge(QuotaWindows(3, 1.0), LIMIT)
    windows.record(9_000.0, 0.0)
    assert windows.used(1.9) == pytest.approx(9_000 / 2.9)
    assert windows.used(3.1) == 0.0


def test_what_is_taken_back_was_never_there() -> None:
    windows = Gauge(QuotaWindows(11, 1.0), LIMIT)
    windows.record(700.0, 1.0)
    windows.record(9_000.0, 1.2)
    windows.take_back(9_000.0)
    assert windows.record(0.0, 1.3) == 0.0
    assert windows.total == pytest.approx(700.0)


@settings(max_examples=40)
@given(shapes, steps)
def test_there_is_a_delay_exactly_while_the_rate_is_above_the_quota(
    shape: tuple[int, float], made: list[tuple[float, float]]
) -> None:
    windows = Gauge(QuotaWindows(*shape), LIMIT)
    now = 0.0
    for pause, value in made:
        now += pause
        delay = windows.record(value, now)
        assert (delay > 1e-9) <= (windows.used(now) > LIMIT)
        assert (windows.used(now) > LIMIT * (1 + 1e-9)) <= (delay > 0)
    num, size = shape
    assert windows.record(0.0, now + num * size + 1e-3) == 0.0


@settings(max_examples=40)
@given(shapes, steps)
def test_the_windows_hold_what_was_recorded_in_their_time(
    shape: tuple[int, float], made: list[tuple[float, float]]
) -> None:
    num, size = shape
    windows = Gauge(QuotaWindows(num, size), LIMIT)
    now, all_made = 0.0, list[tuple[float, float]]()
    for pause, value in made:
        now += pause
        windows.record(value, now)
        all_made.append((now, value))
    begin = all_made[0][0] - size
    newest = int((now - begin) / size)
    kept = sum(value for at, value in all_made if int((at - begin) / size) > newest - num)
    assert windows.total == pytest.approx(kept, abs=1e-6)


@settings(max_examples=40)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=200))
def test_obeying_delays_keeps_any_client_near_its_quota(parts_of_a_window: list[float]) -> None:
    windows = Gauge(QuotaWindows(11, 1.0), LIMIT)
    now = done = 0.0
    for part in parts_of_a_window:
        done += part * LIMIT
        now += windows.record(part * LIMIT, now)
    assert done <= LIMIT * (now + 3.0)


def test_a_bucket_is_full_at_first_and_may_be_overdrawn_once() -> None:
    bucket = MutationGauge(QuotaWindows(11, 1.0), 2.0)
    assert bucket.used(100.0) == 22.0
    bucket.record(30.0, 100.0)
    assert bucket.used(100.0) == -8.0
    assert bucket.delay_s(100.0) == 4.0
    assert bucket.delay_s(104.0) == 0.0


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 40)), max_size=40), st.floats(0.1, 50))
def test_a_bucket_never_holds_more_than_its_burst_and_its_delay_pays_the_debt(
    made: list[tuple[float, float]], limit: float
) -> None:
    bucket, now = MutationGauge(QuotaWindows(11, 1.0), limit), 0.0
    for pause, count in made:
        now += pause
        assert bucket.used(now) <= limit * 11.0
        bucket.record(count, now)
        later = now + bucket.delay_s(now)
        assert bucket.used(later) >= -1e-6 * limit
        now = later
