"""Rows of Spark by topic, and what is read of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.protocol import Headers, partition_of_key
from kohort.protocol.rows import read_rows
from kohort.spark import OptionsError, UnknownTopicError
from kohort.spark._rows import split_rows
from tests.spark.sink_rows import HEADERS, SCHEMA

Row = tuple[str, bytes | None, bytes | None, int | None, Headers, int | None]


def rows_of(batch: pa.RecordBatch, default: str | None = None) -> list[Row]:
    """What is read of each row; a row that asks for no partition has None."""
    return [
        (part.topic, *row[:2], None if part.asked is None else part.asked[nth].as_py(), *row[2:])
        for part in split_rows(batch, default)
        for nth, row in enumerate(read_rows(part.columns))
    ]


def test_each_row_has_what_its_columns_say_and_defaults_else() -> None:
    alone = pa.record_batch({"value": ["a", None]})
    assert rows_of(alone, "t") == [("t", None, b"a", None, (), None), ("t", None, None, None, (), None)]
    at = datetime(1970, 1, 1, 0, 0, 1, 234_567, tzinfo=UTC)
    full = {
        "value": [b"a", b"b"],
        "timestamp": [at, None],
        "headers": pa.array([[{"key": "h", "value": b"1"}], None], HEADERS),
        "partition": pa.array([1, None], pa.int32()),
        "topic": ["other", None],
        "key": ["k", None],
    }
    assert rows_of(pa.record_batch(full), "t") == [
        ("other", b"k", b"a", 1, [("h", b"1")], 1234),
        ("t", None, b"b", None, (), None),
    ]
    for batch in (alone, pa.record_batch(full)):
        with pytest.raises(OptionsError, match="a row has no topic"):
            rows_of(batch)


CONTENTS = st.none() | st.binary(max_size=9)
ROWS = st.fixed_dictionaries(
    {
        "topic": st.sampled_from([None, "", "a", "b", "default"]),
        "key": CONTENTS,
        "value": CONTENTS,
        "partition": st.none() | st.integers(0, 4),
        "headers": st.none()
        | st.lists(st.fixed_dictionaries({"key": st.text(max_size=2), "value": CONTENTS}), max_size=2),
        "timestamp": st.none() | st.integers(-3_000, 3_000) | st.integers(0, 2**53) | st.just(-(2**63)),
    }
)
#: Types of keys (of text alone) and of values, other than Spark gives by default.
KINDS = st.none() | st.sampled_from(
    [
        (pa.large_string(), pa.large_binary()),
        (pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.binary())),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ROWS, max_size=10), st.integers(0, 9), KINDS)
def test_rows_keep_their_order_in_each_topic_and_lose_nothing(
    drawn: list[dict[str, Any]], first: int, kinds: tuple[pa.DataType, pa.DataType] | None
) -> None:
    if kinds is not None:
        for row in drawn:
            row["key"] = None if row["key"] is None else row["key"].hex().encode()
    batch = pa.RecordBatch.from_pylist(drawn, SCHEMA)
    if kinds is not None:
        batch = batch.cast(SCHEMA.set(1, pa.field("key", kinds[0])).set(2, pa.field("value", kinds[1])))
    batch, drawn = batch.slice(first), drawn[first:]
    expected = [
        (
            row["topic"] or "default",
            row["key"],
            row["value"],
            row["partition"],
            [(header["key"], header["value"]) for header in row["headers"] or ()],
            None if row["timestamp"] is None else row["timestamp"] // 1_000,
        )
        for row in drawn
    ]
    found = [(*row[:4], [*row[4]], row[5]) for row in rows_of(batch, "default")]
    for topic in ("a", "b", "default"):
        assert [row for row in found if row[0] == topic] == [row for row in expected if row[0] == topic]
    assert len(found) == len(expected)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CONTENTS, st.none() | st.integers(0, 4)), min_size=1, max_size=10))
def test_a_row_goes_where_it_asks_to_go_or_where_its_key_says(
    drawn: list[tuple[bytes | None, int | None]],
) -> None:
    batch = pa.record_batch(
        {
            "value": pa.nulls(len(drawn), pa.binary()),
            "key": pa.array([key for key, _ in drawn], pa.binary()),
            "partition": pa.array([asked for _, asked in drawn], pa.int32()),
        }
    )
    (rows,) = split_rows(batch, "t")
    keyless = [-1 if key is None else partition_of_key(key, 5) for key, _ in drawn]
    for ignore_keys, others in ((False, keyless), (True, [-1] * len(drawn))):
        assert [*rows.choose_partitions(5, ignore_keys=ignore_keys)] == [
            other if asked is None else asked for (_, asked), other in zip(drawn, others, strict=True)
        ]


@pytest.mark.parametrize("number", [-1, 5])
def test_a_partition_that_the_topic_does_not_have_is_named(number: int) -> None:
    batch = pa.record_batch({"value": ["v", "v"], "partition": pa.array([0, number], pa.int32())})
    (rows,) = split_rows(batch, "t")
    with pytest.raises(UnknownTopicError, match=f"'t' has 5 partitions, not number {number}"):
        rows.choose_partitions(5, ignore_keys=False)


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        (pa.array([[None]], HEADERS), "a header is null, or its name is"),
        (pa.array([[{"key": None, "value": b"1"}]], HEADERS), "a header is null, or its name is"),
        (
            pa.ListArray.from_arrays(
                [0, 1],
                pa.StructArray.from_arrays(
                    [
                        pa.Array.from_buffers(
                            pa.string(),
                            1,
                            [None, pa.py_buffer(bytes(4) + b"\x01\0\0\0"), pa.py_buffer(b"\xff")],
                        ),
                        pa.array([b"1"]),
                    ],
                    ["key", "value"],
                ),
            ),
            "a header's name is no text: .*UTF8",
        ),
    ],
)
def test_a_header_without_a_name_is_refused(headers: pa.Array, problem: str) -> None:
    with pytest.raises(OptionsError, match=problem):
        rows_of(pa.record_batch({"value": ["v"], "headers": headers}), "t")
