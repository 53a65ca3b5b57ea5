"""When a failed handler is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.consumer.service import Retry


def test_waits_double_up_to_the_limit() -> None:
    retry = Retry(attempts=6, backoff_ms=100, max_backoff_ms=500, jitter=0.0)

    assert [retry.delay_ms(attempt, OSError()) for attempt in range(1, 7)] == [100, 200, 400, 500, 500, None]


def test_an_error_of_another_kind_is_not_tried_again() -> None:
    retry = Retry(attempts=5, retry_on=(OSError,))

    assert retry.delay_ms(1, ConnectionError()) is not None
    assert retry.delay_ms(1, ValueError()) is None


@given(st.integers(1, 5000), st.floats(0, 0.99), st.integers(0, 10_000))
def test_jitter_stays_within_its_share(attempt: int, jitter: float, backoff_ms: int) -> None:
    retry = Retry(attempts=10_000, backoff_ms=backoff_ms, max_backoff_ms=60_000, jitter=jitter)
    exact = Retry(attempts=10_000, backoff_ms=backoff_ms, max_backoff_ms=60_000, jitter=0.0)
    middle = exact.delay_ms(attempt, OSError())
    delay = retry.delay_ms(attempt, OSError())

    assert middle is not None
    assert delay is not None
    assert middle * (1 - jitter) - 1e-6 <= delay <= middle * (1 + jitter) + 1e-6


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"attempts": 0}, "attempts=0"),
        ({"backoff_ms": -1}, "backoff_ms=-1"),
        ({"backoff_ms": 100, "max_backoff_ms": 50}, "max_backoff_ms=50"),
        ({"multiplier": 0.5}, "multiplier=0.5"),
        ({"jitter": 1.0}, "jitter=1.0"),
    ],
)
def test_a_bad_setting_is_refused_by_name(wrong: dict[str, int], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Retry(**wrong)  # type: ignore[arg-type]
