"""What becomes of committed offsets in memory: compiled, the same as in Python."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.offsets_topic import OffsetCommitted, _commits, commits_again, enter_commits
from kohort.protocol import TopicPartition
from kohort.protocol.named_tuples import NamedTuple
from tests.leaks import require_no_leak
from tests.native_parts import both, needs_native


class Entry(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int
    record_offset: int
    topic_id: bytes


IDS = st.just(b"") | st.binary(min_size=16, max_size=16)
NUMBERS = st.integers(-(2**65), 2**65)
PLACES = st.lists(st.tuples(st.text(max_size=3), NUMBERS, IDS), max_size=5)
RECORDS = st.lists(
    st.builds(
        OffsetCommitted,
        st.sampled_from(["g", "group", "ä"]),
        st.sampled_from(["t", "topic"]),
        st.integers(0, 3),
        NUMBERS,
        NUMBERS,
        st.sampled_from(["", "note"]),
        NUMBERS,
        NUMBERS,
        IDS,
    ),
    max_size=12,
)


def entered(records: list[OffsetCommitted], begin: int, known: int) -> object:
    """What is known and entered afterwards, in its order, and with the types of the entries."""
    partitions: dict[tuple[str, int], TopicPartition] = {
        key: key for key in [TopicPartition(*record[1:3]) for record in records[:known]]
    }
    by_group: dict[str, Any] = {"g": {TopicPartition("t", 1): "an earlier one"}}

    def learn(topic: str, number: int) -> TopicPartition:
        key = TopicPartition(topic, number)
        return partitions.setdefault(key, key)

    enter_commits(records, begin, by_group, partitions, learn, Entry)
    found = [(group, list(entries.items())) for group, entries in by_group.items()]
    types = [type(each) for entries in by_group.values() for each in [*entries, *entries.values()]]
    return found, types, list(partitions)


@needs_native("offsets_topic")
@given(RECORDS, st.integers(0, 2**62), st.integers(0, 12))
def test_compiled_enters_what_python_enters(records: list[OffsetCommitted], begin: int, known: int) -> None:
    with patch.object(_commits, "NATIVE", False):
        expected = entered(records, begin, known)
    assert entered(records, begin, known) == expected


@needs_native("offsets_topic")
@given(st.text(max_size=3), PLACES, st.lists(NUMBERS, max_size=10), NUMBERS)
def test_compiled_repeats_what_python_repeats(
    group: str, places: list[tuple[str, int, bytes]], numbers: list[int], now_ms: int
) -> None:
    def made() -> object:
        try:
            found = commits_again(group, places, tuple(numbers), now_ms)
        except ValueError:
            return ValueError
        return found, [type(each) for each in found]

    with patch.object(_commits, "NATIVE", False):
        expected = made()
    assert made() == expected


@both("offsets_topic")
def test_a_repeated_commit_is_a_record_of_each_partition_and_an_entry(native: bool) -> None:
    with patch.object(_commits, "NATIVE", native):
        records = commits_again("g", [("t", 0, b"i" * 16), ("u", 3, b"")], (5, -1, 6, 2), 99)
        assert records == [
            OffsetCommitted("g", "t", 0, 5, -1, "", 99, -1, b"i" * 16),
            OffsetCommitted("g", "u", 3, 6, 2, "", 99),
        ]
        with pytest.raises(ValueError):
            commits_again("g", [("t", 0, b"")], (5, -1, 6), 99)
        by_group: dict[str, Any] = {}
        enter_commits(records, 7, by_group, {}, TopicPartition, Entry)
    assert by_group == {
        "g": {
            TopicPartition("t", 0): Entry(5, -1, "", 99, -1, 7, b"i" * 16),
            TopicPartition("u", 3): Entry(6, 2, "", 99, -1, 8, b""),
        }
    }


@needs_native("offsets_topic")
def test_no_memory_stays_behind() -> None:
    places = [("topic", number, b"i" * 16) for number in range(10)]
    numbers = tuple(range(20))

    def work() -> None:
        enter_commits(commits_again("g", places, numbers, 2**40), 2**41, {}, {}, TopicPartition, Entry)

    require_no_leak(work, [*places, places[0][2], numbers], 300)
