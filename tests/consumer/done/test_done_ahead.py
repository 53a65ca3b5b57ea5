"""The metadata of a commit: what is done beyond the first gap."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.consumer.done.done_ahead import MAX_CHARS, PREFIX, Range, decode, encode

#: Bounds of ranges that ascend and do not touch.
RANGES = st.lists(st.integers(0, 5_000), max_size=60, unique=True).map(
    lambda bounds: list(zip(*[iter(sorted(bounds))] * 2, strict=False))
)


@given(st.integers(0, 2**62), RANGES)
def test_what_is_written_is_read_back(offset: int, ranges: list[Range]) -> None:
    moved = [(offset + start, offset + end) for start, end in ranges]
    assert decode(offset, encode(offset, moved)) == moved


def test_no_more_ranges_are_looked_at_than_fit() -> None:
    looked_at = 0

    def ranges() -> Iterator[Range]:
        nonlocal looked_at
        for looked_at in range(1, 1_000_000):
            yield looked_at * 10, looked_at * 10 + 1

    assert len(decode(0, encode(0, ranges()))) == looked_at - 1


def test_the_first_ranges_that_fit_are_written() -> None:
    ranges = [(n * 1_000, n * 1_000 + 1) for n in range(1, 5_000)]
    text = encode(0, ranges)
    assert MAX_CHARS - 8 < len(text) <= MAX_CHARS
    kept = decode(0, text)
    assert kept == ranges[: len(kept)]
    assert len(kept) > 900


def test_ranges_stand_only_beside_the_offset_they_were_written_for() -> None:
    text = encode(42, [(50, 60)])
    assert decode(42, text) == [(50, 60)]
    assert decode(41, text) == []
    assert decode(50, text) == []


@pytest.mark.parametrize(
    "metadata",
    ["", "somebody else's note", "kohort-done-2:AAEB", PREFIX, PREFIX + "!", PREFIX + "gA", PREFIX + "KgE"],
)
def test_metadata_of_others_of_later_versions_and_damaged_ones_say_nothing(metadata: str) -> None:
    assert decode(42, metadata) == []


@given(st.text(max_size=40))
def test_no_text_is_an_error(text: str) -> None:
    assert all(start < end for start, end in decode(0, PREFIX + text))


def test_nothing_done_beyond_is_no_metadata() -> None:
    assert encode(42, []) == ""
