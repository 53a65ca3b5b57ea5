"""The rows of a Spark batch by topic, as columns that are written without an object for each row.

Nothing here imports pyspark.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..protocol.rows import BytesColumn, HeaderColumn, RowColumns, TimestampColumn, partition_rows
from ._client import OptionsError
from ._group import UnknownTopicError

if TYPE_CHECKING:
    import pyarrow as pa


class TopicRows(NamedTuple):
    """Rows for one topic. ``asked``: the partition that a row is to go to; None, or null: its key decides."""

    topic: str
    columns: RowColumns
    asked: pa.Array | None = None

    def choose_partitions(self, count: int, *, ignore_keys: bool) -> array[int]:
        """Return the partition of each row in a topic that has ``count``, or -1 for any of them.

        Raises UnknownTopicError if a row asks for another one.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        keyed = self.columns._replace(keys=None) if ignore_keys else self.columns
        chosen = partition_rows(keyed, count)
        if self.asked is None:
            return chosen
        bounds = pc.min_max(self.asked).as_py()
        for number in bounds.values():
            if not 0 <= number < count:
                raise UnknownTopicError(f"topic {self.topic!r} has {count} partitions, not number {number}")
        by_key = pa.Array.from_buffers(pa.int32(), len(chosen), [None, pa.py_buffer(chosen)])
        return array("i", _view(pc.coalesce(self.asked, by_key).buffers()[1]).tobytes())


def split_rows(batch: pa.RecordBatch, default: str | None) -> Iterator[TopicRows]:
    """Yield the rows of each topic, in their order. ``default``: topic of rows that name none.

    Raises OptionsError for a row without a topic, or with a header whose name is null or no UTF-8.
    """
    if not batch.num_rows:
        return
    topics, batch = _sort_by_topic(batch, default)
    for topic, start, end in topics:
        part = batch.slice(start, end - start)
        columns = dict(zip(part.schema.names, part.columns, strict=True))
        asked = columns.get("partition")
        yield TopicRows(
            topic,
            RowColumns(
                part.num_rows,
                keys=_bytes_column(columns.get("key")),
                values=_bytes_column(columns.get("value")),
                headers=_header_column(columns.get("headers")),
                timestamps_ms=_timestamp_column(columns.get("timestamp")),
            ),
            None if asked is None or asked.null_count == len(asked) else asked,
        )


def _sort_by_topic(
    batch: pa.RecordBatch, default: str | None
) -> tuple[list[tuple[str, int, int]], pa.RecordBatch]:
    """Return the topics, each with its first row and that behind its last one, and the rows in that order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = pa.array([default or ""])
    if "topic" in batch.schema.names:
        given = batch.column("topic").cast(pa.string()).fill_null("")
        names = pc.if_else(pc.equal(given, ""), default or "", given)
    coded = names.dictionary_encode()
    topics = coded.dictionary.to_pylist()
    if "" in topics:
        raise OptionsError("a row has no topic: fill column topic, or set option topic")
    if len(topics) == 1:
        return [(topics[0], 0, batch.num_rows)], batch
    counts = {one["values"]: one["counts"] for one in pc.value_counts(coded.indices).to_pylist()}
    places = pairwise(accumulate((counts[nth] for nth in range(len(topics))), initial=0))
    # equal ones keep their order
    batch = batch.take(pc.sort_indices(coded.indices))
    return [(topic, *place) for topic, place in zip(topics, places, strict=True)], batch


def _bytes_column(column: pa.Array | None) -> BytesColumn | None:
    """Return a column of bytes or text."""
    import pyarrow as pa

    if column is None:
        return None
    wide = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    if not (wide or pa.types.is_binary(column.type) or pa.types.is_string(column.type)):
        column = column.cast(pa.binary())
    validity, offsets, data = column.buffers()
    return BytesColumn(_view(offsets), 8 if wide else 4, _view(data), _bits(column, validity), column.offset)


def _timestamp_column(column: pa.Array | None) -> TimestampColumn | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if column is None or column.null_count == len(column):
        return None
    us = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    # a quotient below 0 would be rounded up, and the first time that there is has none before it
    before_1970 = pc.subtract(pc.divide(pc.add(us, 1), 1_000), 1)
    ms = pc.if_else(pc.less(us, 0), before_1970, pc.divide(us, 1_000))
    validity, data = ms.buffers()
    return TimestampColumn(_view(data), _bits(ms, validity), ms.offset)


def _header_column(column: pa.Array | None) -> HeaderColumn | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if column is None:
        return None
    headers = pc.list_flatten(column)
    if not len(headers):
        return None
    names, contents = headers.field("key"), headers.field("value")
    if headers.null_count or names.null_count:
        raise OptionsError("a header is null, or its name is: leave it out of the row's array")
    try:
        names.validate(full=True)
    except pa.ArrowInvalid as error:
        raise OptionsError(f"a header's name is no text: {error}") from error
    ends = pc.cumulative_sum(pc.list_value_length(column).fill_null(0).cast(pa.int32()))
    name_column, content_column = _bytes_column(names), _bytes_column(contents)
    assert name_column is not None, "there are headers"
    assert content_column is not None, "there are headers"
    return HeaderColumn(_view(ends.buffers()[1]), name_column, content_column)


def _view(buffer: Any) -> memoryview:
    return memoryview(b"" if buffer is None else buffer).cast("B")


def _bits(column: pa.Array, validity: object) -> memoryview | None:
    return _view(validity) if column.null_count else None
