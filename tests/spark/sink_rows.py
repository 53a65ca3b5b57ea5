"""Rows as Spark gives them to a sink, from Python's values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kohort.protocol import Headers
from kohort.spark._rows import TopicRows, split_rows

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    {
        "topic": pa.string(),
        "key": pa.binary(),
        "value": pa.binary(),
        "partition": pa.int32(),
        "headers": HEADERS,
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
)


def one_row(
    topic: str,
    key: bytes | None,
    value: bytes | None,
    partition: int | None = None,
    headers: Headers = (),
    timestamp_ms: int | None = None,
) -> TopicRows:
    """A row with these fields."""
    row: dict[str, Any] = {
        "topic": topic,
        "key": key,
        "value": value,
        "partition": partition,
        "headers": [{"key": name, "value": content} for name, content in headers],
        "timestamp": None if timestamp_ms is None else timestamp_ms * 1_000,
    }
    (rows,) = split_rows(pa.RecordBatch.from_pylist([row], SCHEMA), None)
    return rows
