"""What a request names again and again."""

from __future__ import annotations

import pytest

from kohort.coordinator.element_limits import MAX_REPEATS, RepeatLimit


def test_an_element_may_be_there_again_so_often_and_no_more() -> None:
    repeats = RepeatLimit()
    assert [repeats.refuses("g") for _ in range(MAX_REPEATS + 3)] == [False] * (MAX_REPEATS + 1) + [True] * 2
    assert not repeats.refuses("h"), "the first time is no repeat"
    assert repeats.refuses("h"), "all elements share what is left"


@pytest.mark.parametrize(
    ("partitions", "answered", "refused"),
    [
        ([], [], []),
        ([1, 2, 3], [1, 2, 3], []),
        ([1, 2, 1], [1, 2, 1], []),
        ([5] * (MAX_REPEATS + 1), [5] * (MAX_REPEATS + 1), []),
        ([5] * (MAX_REPEATS + 2) + [6, 5], [5] * (MAX_REPEATS + 1) + [6], [5, 5]),
    ],
    ids=["none", "each once", "one twice", "as often as allowed", "too often"],
)
def test_a_topics_partitions_are_answered_until_too_many_are_there_again(
    partitions: list[int], answered: list[int], refused: list[int]
) -> None:
    assert RepeatLimit().sift("t", partitions) == (answered, refused)


def test_a_topic_that_is_there_again_repeats_its_partitions_and_another_does_not() -> None:
    repeats = RepeatLimit()
    many = list(range(MAX_REPEATS))
    assert repeats.sift("t", many) == (many, [])
    assert repeats.sift("u", many) == (many, [])
    assert repeats.sift("t", [99, *many]) == ([99, *many], [])
    assert repeats.sift("u", [98, *many]) == ([98], many)
    assert repeats.sift("v", [0, 0]) == ([0], [0])
    assert repeats.refuses("g") is False
    assert repeats.refuses("g")
