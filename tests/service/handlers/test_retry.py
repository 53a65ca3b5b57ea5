"""When a failed handler is tried again."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.consumer import ConfigError
from kohort.service import Retry


def test_waits_double_up_to_the_limit() -> None:
    retry = Retry(attempts=6, backoff_ms=100, max_backoff_ms=500, jitter=0.0)

    assert [retry.delay_ms(attempt, OSError()) for attempt in range(1, 7)] == [100, 200, 400, 500, 500, None]


def test_an_error_of_another_kind_is_not_tried_again() -> None:
    retry = Retry(attempts=5, retry_on=(OSError,))

    assert retry.delay_ms(1, ConnectionError()) is not None
    assert retry.delay_ms(1, ValueError()) is None


@pytest.mark.parametrize(("jitter", "least", "most"), [(0.0, 100, 100), (0.2, 80, 120), (0.9, 10, 190)])
def test_waits_are_spread_over_the_share_of_the_jitter_in_both_directions(
    jitter: float, least: float, most: float
) -> None:
    retry = Retry(attempts=2, backoff_ms=100, jitter=jitter)
    delays = [delay for _ in range(500) if (delay := retry.delay_ms(1, OSError())) is not None]

    assert len(delays) == 500
    assert least <= min(delays) <= least + (most - least) / 10
    assert most - (most - least) / 10 <= max(delays) <= most


@pytest.mark.parametrize("attempt", [1, 61, 62, 5_000])
def test_a_wait_is_within_its_limit_however_often_it_was_tried(attempt: int) -> None:
    retry = Retry(attempts=10_000, backoff_ms=60_000, max_backoff_ms=60_000, multiplier=1e4, jitter=0.0)

    assert retry.delay_ms(attempt, OSError()) == 60_000


@pytest.mark.parametrize(
    "allowed",
    [
        {"attempts": 1},
        {"backoff_ms": 0, "max_backoff_ms": 0},
        {"multiplier": 1},
        {"multiplier": 1.0},
        {"jitter": 0},
        {"retry_on": ()},
    ],
)
def test_the_bounds_of_settings_are_allowed(allowed: dict[str, Any]) -> None:
    assert Retry(**allowed) == Retry(**allowed)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"attempts": 0}, "attempts=0, but it must be a whole number, at least 1"),
        ({"attempts": True}, "attempts=True, but it must be a whole number, at least 1"),
        ({"backoff_ms": -1}, "backoff_ms=-1, but it must be a whole number, at least 0"),
        ({"backoff_ms": 1.5}, "backoff_ms=1.5, but it must be a whole number, at least 0"),
        (
            {"backoff_ms": 100, "max_backoff_ms": 99},
            "max_backoff_ms=99, but it must be at least backoff_ms (100)",
        ),
        ({"max_backoff_ms": "9"}, "max_backoff_ms='9', but it must be a whole number, at least 0"),
        ({"multiplier": 0.5}, "multiplier=0.5, but it must be a number, at least 1"),
        ({"multiplier": "2"}, "multiplier='2', but it must be a number, at least 1"),
        ({"multiplier": True}, "multiplier=True, but it must be a number, at least 1"),
        ({"jitter": 1.0}, "jitter=1.0, but it must be a number from 0 on, less than 1"),
        ({"jitter": -0.1}, "jitter=-0.1, but it must be a number from 0 on, less than 1"),
        ({"jitter": None}, "jitter=None, but it must be a number from 0 on, less than 1"),
        ({"retry_on": [OSError]}, f"retry_on={[OSError]!r}, but it must be a tuple of exception classes"),
        (
            {"retry_on": (OSError, 5)},
            f"retry_on={(OSError, 5)!r}, but it must be a tuple of exception classes",
        ),
        ({"retry_on": (int,)}, f"retry_on={(int,)!r}, but it must be a tuple of exception classes"),
    ],
)
def test_a_bad_setting_is_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Retry(**wrong)
    assert str(refused.value) == f"Retry: {named}"
