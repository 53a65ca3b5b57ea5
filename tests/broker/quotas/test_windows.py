"""Rates over windows and buckets of tokens: what they let through, and for how long they delay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.broker.quotas import RateWindows, TokenBucket

LIMIT = 1_000.0

steps = st.lists(
    st.tuples(st.floats(0.0, 3.0, allow_nan=False), st.floats(0.0, 2_500.0, allow_nan=False)),
    min_size=1,
    max_size=60,
)
shapes = st.tuples(st.integers(1, 12), st.sampled_from([0.5, 1.0, 2.0]))


def greedy(windows: RateWindows, batch: float, seconds: float, speed: float = 10.0) -> float:
    """What gets through of a client that always sends at ``speed`` times its quota and obeys delays."""
    now = done = 0.0
    while now < seconds:
        now += batch / (LIMIT * speed)
        done += batch
        now += windows.record(batch, LIMIT, now)
    return done / seconds


@pytest.mark.parametrize("batch", [5.0, 50.0, 400.0, 1_000.0])
def test_a_client_that_always_sends_ends_close_to_its_quota(batch: float) -> None:
    assert greedy(RateWindows(11, 1.0), batch, 30.0) == pytest.approx(LIMIT, rel=0.06)


def test_a_client_below_its_quota_is_never_delayed() -> None:
    windows = RateWindows(11, 1.0)
    assert not any(windows.record(90.0, LIMIT, number / 10) for number in range(1_000))


def test_a_new_client_has_the_credit_of_one_window() -> None:
    assert RateWindows(11, 1.0).record(1_000.0, LIMIT, 5.0) == 0.0
    assert RateWindows(11, 1.0).record(1_500.0, LIMIT, 5.0) == pytest.approx(0.5)


def test_a_client_that_was_quiet_has_the_credit_of_all_windows_but_one() -> None:
    windows = RateWindows(11, 1.0)
    windows.record(1.0, LIMIT, 0.0)
    assert windows.record(10_000.0, LIMIT, 100.0) == 0.0
    assert windows.record(1_000.0, LIMIT, 100.0) == pytest.approx(1.0)


def test_what_is_older_than_the_windows_is_forgotten() -> None:
    windows = RateWindows(3, 1.0)
    windows.record(9_000.0, LIMIT, 0.0)
    assert windows.rate(1.9) == pytest.approx(9_000 / 2.9)
    assert windows.rate(3.1) == 0.0


def test_what_is_taken_back_was_never_there() -> None:
    windows = RateWindows(11, 1.0)
    windows.record(700.0, LIMIT, 1.0)
    windows.record(9_000.0, LIMIT, 1.2)
    windows.unrecord(9_000.0)
    assert windows.delay_s(LIMIT, 1.3) == 0.0
    assert windows.total == pytest.approx(700.0)


@settings(max_examples=40)
@given(shapes, steps)
def test_there_is_a_delay_exactly_while_the_rate_is_above_the_quota(
    shape: tuple[int, float], made: list[tuple[float, float]]
) -> None:
    windows = RateWindows(*shape)
    now = 0.0
    for pause, value in made:
        now += pause
        delay = windows.record(value, LIMIT, now)
        assert (delay > 1e-9) <= (windows.rate(now) > LIMIT)
        assert (windows.rate(now) > LIMIT * (1 + 1e-9)) <= (delay > 0)
    num, size = shape
    assert windows.delay_s(LIMIT, now + num * size + 1e-3) == 0.0


@settings(max_examples=40)
@given(shapes, steps)
def test_the_windows_hold_what_was_recorded_in_their_time(
    shape: tuple[int, float], made: list[tuple[float, float]]
) -> None:
    num, size = shape
    windows = RateWindows(num, size)
    now, all_made = 0.0, list[tuple[float, float]]()
    for pause, value in made:
        now += pause
        windows.record(value, LIMIT, now)
        all_made.append((now, value))
    begin = all_made[0][0] - size
    newest = int((now - begin) / size)
    kept = sum(value for at, value in all_made if int((at - begin) / size) > newest - num)
    assert windows.total == pytest.approx(kept, abs=1e-6)


@settings(max_examples=40)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=200))
def test_obeying_delays_keeps_any_client_near_its_quota(parts_of_a_window: list[float]) -> None:
    windows = RateWindows(11, 1.0)
    now = done = 0.0
    for part in parts_of_a_window:
        done += part * LIMIT
        now += windows.record(part * LIMIT, LIMIT, now)
    assert done <= LIMIT * (now + 3.0)


def test_a_bucket_is_full_at_first_and_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(11.0)
    assert bucket.tokens(2.0, 100.0) == 22.0
    bucket.take(30.0, 2.0, 100.0)
    assert bucket.tokens(2.0, 100.0) == -8.0
    assert bucket.delay_s(2.0, 100.0) == 4.0
    assert bucket.delay_s(2.0, 104.0) == 0.0


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 40)), max_size=40), st.floats(0.1, 50))
def test_a_bucket_never_holds_more_than_its_burst_and_its_delay_pays_the_debt(
    made: list[tuple[float, float]], limit: float
) -> None:
    bucket, now = TokenBucket(11.0), 0.0
    for pause, count in made:
        now += pause
        assert bucket.tokens(limit, now) <= limit * 11.0
        bucket.take(count, limit, now)
        later = now + bucket.delay_s(limit, now)
        assert bucket.tokens(limit, later) >= -1e-6 * limit
        now = later
