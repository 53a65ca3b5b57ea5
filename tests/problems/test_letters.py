"""What topics of dead letters tell is wrong."""

from __future__ import annotations

from kohort.problems import LettersSeen, find_in_letters

NOW_MS = 1_700_000_000_000


def test_letters_of_the_last_hour_are_a_problem_and_older_ones_no_news() -> None:
    seen = [LettersSeen("new.dlt", 1_200, NOW_MS - 3_600_000), LettersSeen("old.dlt", 3, NOW_MS - 3_600_001)]
    assert [(each.kind, each.about, each.text) for each in find_in_letters(seen, NOW_MS)] == [
        ("DeadLetters", "topic new.dlt", "1,200 records are set aside, the newest for 3,600 s")
    ]
    ahead = find_in_letters([LettersSeen("ahead.dlt", 1, NOW_MS + 5_000)], NOW_MS)
    assert ahead[0].text.endswith("the newest for 0 s"), "clocks differ"
