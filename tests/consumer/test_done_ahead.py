"""The metadata of a commit: what is done beyond the first gap."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.consumer.done_ahead import MAX_CHARS, PREFIX, Range, decode, encode, merged

RANGES = st.lists(
    st.tuples(st.integers(0, 5_000), st.integers(1, 50)).map(lambda r: (r[0], r[0] + r[1])), max_size=60
)


def _offsets(ranges: list[Range]) -> set[int]:
    return {offset for start, end in ranges for offset in range(start, end)}


@given(st.integers(0, 2**62), RANGES)
def test_what_is_written_is_read_back(offset: int, ranges: list[Range]) -> None:
    moved = [(offset + start, offset + end) for start, end in ranges]
    assert decode(offset, encode(offset, moved)) == merged(moved)


@given(RANGES)
def test_merged_ranges_hold_the_same_offsets_and_do_not_touch(ranges: list[Range]) -> None:
    result = merged(ranges)
    assert _offsets(result) == _offsets(ranges)
    assert all(end < start for (_, end), (start, _) in pairwise(result))


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
