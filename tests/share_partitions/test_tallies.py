"""Tallies: how many records something happened to, and the newest ranges of them."""

from __future__ import annotations

from kohort.share_partitions import Tally
from kohort.share_partitions.tallies import MOST_RANGES


def test_ranges_of_one_member_that_follow_each_other_are_one() -> None:
    tally = Tally()
    assert tally.take() == (0, [])
    tally.add(0, 4, "a", 1)
    tally.add(5, 5, "a", 1)
    assert tally.take() == (6, [(0, 5, "a", 1)])


def test_another_member_place_or_count_is_another_range_and_each_is_taken_once() -> None:
    tally = Tally()
    tally.add(0, 4, "a", 1)
    tally.add(5, 6, "b", 1)
    assert tally.take() == (7, [(0, 4, "a", 1), (5, 6, "b", 1)])
    tally.add(9, 9, "b", 1)
    tally.add(10, 10, "b", 2)
    assert tally.take() == (2, [(9, 9, "b", 1), (10, 10, "b", 2)])
    assert (tally.take(), tally.records) == ((0, []), 9)


def test_the_newest_ranges_are_kept_and_all_records_are_counted() -> None:
    tally = Tally()
    for offset in range(0, 2 * MOST_RANGES + 10, 2):
        tally.add(offset, offset, "a", 1)
    count, ranges = tally.take()
    assert (count, len(ranges)) == (MOST_RANGES + 5, MOST_RANGES)
    assert (ranges[0].first, ranges[-1].first) == (10, 2 * MOST_RANGES + 8)
