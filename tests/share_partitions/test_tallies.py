"""Tallies: how many records something happened to, and the last of them."""

from __future__ import annotations

from kohort.share_partitions import Tally


def test_ranges_of_one_member_that_follow_each_other_are_one() -> None:
    tally = Tally()
    assert tally.read() == (0, -1, -1, "", -1)
    tally.add(0, 4, "a", 1)
    tally.add(5, 5, "a", 1)
    assert tally.read() == (6, 0, 5, "a", 1)


def test_the_last_range_is_told_of_another_member_place_or_count() -> None:
    tally = Tally()
    tally.add(0, 4, "a", 1)
    tally.add(5, 6, "b", 1)
    assert tally.read() == (7, 5, 6, "b", 1)
    tally.add(9, 9, "b", 1)
    assert tally.read() == (8, 9, 9, "b", 1)
    tally.add(10, 10, "b", 2)
    assert tally.read() == (9, 10, 10, "b", 2)
