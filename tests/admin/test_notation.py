"""What people type, and what they read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.admin import notation
from kohort.admin.notation import datetime_ms, duration_ms, moment_ms, span, topic_partitions, utc

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2h", 2 * HOUR),
        ("90s", 90_000),
        ("1h30m", 90 * 60_000),
        ("1.5h", 90 * 60_000),
        ("250ms", 250),
        ("7d", 7 * 24 * HOUR),
        ("1w", 7 * 24 * HOUR),
        ("0s", 0),
        ("P1DT2H", 26 * HOUR),
        ("PT30M", 30 * 60_000),
        ("pt0.5s", 500),
        ("P2W", 14 * 24 * HOUR),
        (" PT1H ", HOUR),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


def test_a_long_number_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a page of the cluster may send one of thousands of digits."""
    looked_at = list[int]()

    class Counting:
        def __getattr__(self, name: str) -> object:
            looked_at.append(0)
            assert name == "match", "a search begins at every digit anew"
            return short.match

    short = notation._SHORT
    monkeypatch.setattr(notation, "_SHORT", Counting())
    with pytest.raises(ValueError, match="no duration"):
        duration_ms("9" * 30_000)
    assert len(looked_at) == 1


@pytest.mark.parametrize(
    "text", ["", "2", "h", "2 hours", "P", "PT", "P1M", "P1DT", "1h-", "-2h", "2h x", "9" * 400 + "s"]
)
def test_what_is_no_duration_says_what_is(text: str) -> None:
    with pytest.raises(ValueError, match="write 90s, 2h, 1h30m or ISO 8601"):
        duration_ms(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T22:13:20.500", 1_700_000_000_500),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14 22:13", 1_699_999_980_000),
        ("1970-01-01", 0),
    ],
)
def test_times_without_an_offset_are_utc(text: str, expected: int) -> None:
    assert datetime_ms(text) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "14.11.2023", "2023-13-01", "1969-12-31T23:59:59"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no time|is before 1970"):
        datetime_ms(text)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["orders"], {"orders": []}),
        (["orders:0"], {"orders": [0]}),
        (["orders:0,3"], {"orders": [0, 3]}),
        (["orders:0", "orders:2", "other"], {"orders": [0, 2], "other": []}),
        (["orders:0", "orders"], {"orders": []}),
        (["orders", "orders:0"], {"orders": []}),
    ],
)
def test_topics_with_partitions(texts: list[str], expected: dict[str, list[int]]) -> None:
    assert topic_partitions(texts) == expected


@pytest.mark.parametrize("text", ["", ":0", "orders:", "orders:x", "orders:0,", "orders:-1"])
def test_what_is_no_topic_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no topic: write orders, or orders:0,3"):
        topic_partitions([text])


@given(st.integers(0, 253_000_000_000_000))
def test_what_is_shown_as_a_time_can_be_typed_as_one(timestamp_ms: int) -> None:
    assert datetime_ms(utc(timestamp_ms)) == timestamp_ms


@pytest.mark.parametrize("timestamp_ms", [253_402_300_800_000, 2**63 - 1, -(2**63)])
def test_a_time_that_no_calendar_has_is_a_number(timestamp_ms: int) -> None:
    """Producers choose the times of their records, and none may keep others from being shown."""
    assert utc(timestamp_ms) == f"{timestamp_ms} ms"


@pytest.mark.parametrize(
    ("duration", "shown"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (59_900, "59.9 s"),
        (60_000, "1 min 0 s"),
        (125_000, "2 min 5 s"),
        (3_599_999, "59 min 59 s"),
        (3_600_000, "1 h 0 min"),
        (86_399_999, "23 h 59 min"),
        (9 * 86_400_000 + 7_200_000, "9 d 2 h"),
    ],
)
def test_spans(duration: int, shown: str) -> None:
    assert span(duration) == shown


def test_a_moment_is_a_day_so_long_ago_or_a_time() -> None:
    noon = datetime_ms("2026-11-28T12:00:00Z")
    for text, begin, end in (
        ("yesterday", "2026-11-27T00:00:00Z", "2026-11-27T23:59:59.999Z"),
        (" Today", "2026-11-28T00:00:00Z", "2026-11-28T23:59:59.999Z"),
        ("24h", "2026-11-27T12:00:00Z", "2026-11-27T12:00:00Z"),
        ("2026-11-01", "2026-11-01T00:00:00Z", "2026-11-01T00:00:00Z"),
    ):
        assert moment_ms(text, noon) == datetime_ms(begin)
        assert moment_ms(text, noon, is_end=True) == datetime_ms(end)
    with pytest.raises(ValueError, match="'soon' is no time: write yesterday, 24h, or ISO 8601"):
        moment_ms("soon", noon)
