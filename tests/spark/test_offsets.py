from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol import TopicPartition
from kohort.spark import OffsetsFormatError, format_offsets, parse_offsets

partitions = st.builds(TopicPartition, st.text(min_size=1, max_size=5), st.integers(0, 50))


def test_reads_what_the_built_in_source_takes() -> None:
    assert parse_offsets('{"a": {"0": 23, "1": -2}, "b": {"10": -1}}') == {
        TopicPartition("a", 0): 23,
        TopicPartition("a", 1): -2,
        TopicPartition("b", 10): -1,
    }


def test_writes_in_the_order_of_the_partition_numbers() -> None:
    offsets = {TopicPartition("b", 0): 1, TopicPartition("a", 10): 2, TopicPartition("a", 9): 3}
    assert format_offsets(offsets) == '{"a":{"9":3,"10":2},"b":{"0":1}}'


@given(st.dictionaries(partitions, st.integers(-2, 2**63 - 1)))
def test_reads_back_what_it_writes(offsets: dict[TopicPartition, int]) -> None:
    assert parse_offsets(format_offsets(offsets)) == offsets


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("committed", "no JSON"),
        ("[]", "object of topics"),
        ('{"a": 5}', "topic 'a' must be an object"),
        ('{"a": {"x": 5}}', "'x' of topic 'a' is no partition"),
        ('{"a": {"-1": 5}}', "'-1' of topic 'a' is no partition"),
        ('{"a": {"0": -3}}', "-3 of a-0 is no offset"),
        ('{"a": {"0": 1.5}}', "1.5 of a-0 is no offset"),
        ('{"a": {"0": true}}', "True of a-0 is no offset"),
    ],
)
def test_names_what_it_cannot_read(text: str, problem: str) -> None:
    with pytest.raises(OffsetsFormatError, match=problem):
        parse_offsets(text)
