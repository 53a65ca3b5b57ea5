"""Vectors computed with Java 17's String.hashCode."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.offsets_topic import java_hash, partition_for


@pytest.mark.row("5.1/hash")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("my-group", -1906497762),
        ("polygenelubricants", -2147483648),
        ("Aa", 2112),
        ("BB", 2112),
        ("\U0001f600", 0xD83D * 31 + 0xDE00),
        # half of a character, which Java keeps as it is
        ("\ud83d", 0xD83D),
    ],
)
def test_the_hash_is_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


@pytest.mark.row("5.1/partition")
@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        ("", 0),
        ("a", 47),
        ("my-group", 12),
        ("console-consumer-1", 24),
        ("Aa", 12),
        ("BB", 12),
        ("polygenelubricants", 0),
        ("grüppe", 12),
        ("\U0001f600-grp", 27),
        ("\u65e5\u672c", 47),
    ],
)
def test_a_group_lives_where_kafka_puts_it(group_id: str, partition: int) -> None:
    assert partition_for(group_id, 50) == partition


@given(st.text(), st.integers(1, 200))
def test_every_group_has_a_partition(group_id: str, partition_count: int) -> None:
    assert 0 <= partition_for(group_id, partition_count) < partition_count


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_short_way_for_ascii_gives_what_the_long_way_gives(text: str) -> None:
    units = [ord(character) for character in text]
    value = 0
    for unit in units:
        value = value * 31 + unit
    assert java_hash(text) % 2**32 == value % 2**32


@given(st.text(st.characters(), min_size=1, max_size=9), st.integers(500, 540))
def test_a_long_id_is_hashed_eight_by_eight_to_the_same_number(pattern: str, length: int) -> None:
    text = (pattern * length)[:length]
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + 256 * high + low) % 2**32
    assert java_hash(text) % 2**32 == value
