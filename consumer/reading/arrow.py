"""Record batches as Arrow, without a Python object per record: what Spark and data frames read.

    for batch in decode(records, topic="orders", partition=0, start=500, end=700):
        batch.num_rows                                    # a pyarrow.RecordBatch, columns as in SCHEMA

``records`` are bytes of a Fetch response or of a log file: consecutive record batches, of which the last may
be incomplete. Checksums are always verified. Needs numpy and pyarrow (``pip install 'kohort[spark]'``).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from threading import local

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...protocol import (
    BATCH_OVERHEAD,
    MAX_DECOMPRESSED_BYTES,
    CorruptBatchError,
    TopicPartition,
    batch_extent,
)
from ...protocol.messages.fetch import AbortedTransaction
from ...protocol.records import HEADER_NUMBERS, RECORD_NUMBERS, copy_fields, locate_headers, locate_records
from .fetched_records import RUN_BYTES, ChunkReader, FetchedBatch

Ints = npt.NDArray[np.int64]

#: Approximate rows of one Arrow batch: Spark takes these fastest.
ROWS_PER_BATCH = 20_000

#: Rows as in Spark's built-in Kafka source. ``timestampType`` is 0 for the producer's time and 1 for the
#: broker's.
SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
    ]
)

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

#: The same with a column of headers.
SCHEMA_WITH_HEADERS = SCHEMA.append(pa.field("headers", pa.list_(_HEADER)))

_MICROS_PER_MILLI = 1000


class _ArrowScratch(local):
    """Memory in which a thread decodes runs: new memory would cost more than the work in it."""

    room = bytearray()

    def of(self, size: int) -> bytearray:
        """A buffer of at least this many bytes, kept for the next call unless it is very large."""
        if size > 2 * RUN_BYTES:
            return bytearray(size)
        if len(self.room) < size:
            self.room = bytearray(size)
        return self.room


_scratch = _ArrowScratch()


def decode(
    records: bytes | bytearray | memoryview,
    *,
    topic: str,
    partition: int,
    start: int = 0,
    end: int | None = None,
    aborted: Sequence[tuple[int, int]] = (),
    include_headers: bool = False,
    rows_per_batch: int = ROWS_PER_BATCH,
    max_batch_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[pa.RecordBatch]:
    """The records with ``start <= offset < end`` as Arrow batches of at most ``rows_per_batch`` rows.

    ``aborted`` are the (producer id, first offset) pairs of a read_committed Fetch response: records of those
    producers up to their abort marker are left out. Control batches always are. Raises CorruptBatchError,
    with the position of the batch, for damaged batches, and for a batch of more than ``max_batch_bytes``
    after decompression.
    """
    reader = ChunkReader(
        TopicPartition(topic, partition),
        memoryview(records),
        start,
        aborted=[AbortedTransaction(*pair) for pair in aborted],
        max_batch_bytes=max_batch_bytes,
    )
    while run := reader.next_run(rows_per_batch, end):
        yield from decode_run(run, reader.partition, start, end, include_headers, rows_per_batch)


def next_offset(records: bytes | bytearray | memoryview, otherwise: int) -> int:
    """The offset after the last whole batch, or ``otherwise`` if there is none. Reads the headers only."""
    behind, position = otherwise, 0
    while len(records) - position >= BATCH_OVERHEAD:
        size, after, _ = batch_extent(records, position)
        position += size
        if position > len(records):  # incomplete, because of the limits of a Fetch
            break
        behind = after
    return behind


def decode_run(
    run: Sequence[FetchedBatch],
    partition: TopicPartition,
    start: int,
    end: int | None,
    include_headers: bool,
    rows_per_batch: int,
) -> Iterator[pa.RecordBatch]:
    """The records of a reader's run with ``start <= offset < end``, as ``decode``."""
    made = _arrow_batch(run, partition, start, end, include_headers)
    for first in range(0, made.num_rows, rows_per_batch):
        yield made.slice(first, rows_per_batch)


def _arrow_batch(
    run: Sequence[FetchedBatch], partition: TopicPartition, start: int, end: int | None, include_headers: bool
) -> pa.RecordBatch:
    batches = [batch.header for batch in run]
    pieces = [(len(batch.payload), batch.header.record_count) for batch in run]
    data = memoryview(run[0].payload) if len(run) == 1 else _join_payloads(run)
    try:
        numbers = np.frombuffer(locate_records(data, 0, pieces), np.int64).reshape(RECORD_NUMBERS, -1)
        later_ms, deltas, key_at, key_size, value_at, value_size, headers_at, ends = numbers
        counts = [count for _, count in pieces]
        offsets = np.repeat([header.base_offset for header in batches], counts) + deltas
        times = np.repeat([header.base_timestamp_ms for header in batches], counts) + later_ms
        by_broker = np.zeros(len(offsets), np.int32)
        if any(header.log_append_time for header in batches):
            by_broker = np.repeat([np.int32(header.log_append_time) for header in batches], counts)
            newest = np.repeat([header.max_timestamp_ms for header in batches], counts)
            times = np.where(by_broker, newest, times)
        rows = _rows_between(offsets, start, end)
        count = rows.stop - rows.start
        columns = [
            _binary_array(data, key_at[rows], key_size[rows]),
            _binary_array(data, value_at[rows], value_size[rows]),
            _constant_array(partition.topic, count),
            pa.array(np.full(count, partition.partition, np.int32)),
            pa.array(offsets[rows]),
            pa.array(times[rows] * _MICROS_PER_MILLI).view(pa.timestamp("us", tz="UTC")),
            pa.array(by_broker[rows]),
        ]
        if include_headers:
            columns.append(_header_column(data, headers_at[rows], ends[rows]))
    except CorruptBatchError as error:
        first = batches[0].base_offset
        raise CorruptBatchError(f"unreadable record in the batches from offset {first} on") from error
    schema = SCHEMA_WITH_HEADERS if include_headers else SCHEMA
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _join_payloads(run: Sequence[FetchedBatch]) -> memoryview:
    size = sum(len(batch.payload) for batch in run)
    room, position = _scratch.of(size), 0
    for batch in run:
        end = position + len(batch.payload)
        room[position:end] = batch.payload
        position = end
    return memoryview(room)[:size]


def _rows_between(offsets: Ints, start: int, end: int | None) -> slice:
    first = bisect.bisect_left(offsets, start)
    last = len(offsets) if end is None else bisect.bisect_left(offsets, end)
    return slice(first, max(first, last))


def _binary_array(data: memoryview, at: Ints, sizes: Ints) -> pa.Array:
    """The pieces of ``data`` at these positions; a size below 0 is null."""
    count, null = len(sizes), sizes < 0
    if null.all():
        return pa.nulls(count, pa.binary())
    ends = np.zeros(count + 1, np.int32)
    np.cumsum(np.maximum(sizes, 0), dtype=np.int32, out=ends[1:])
    content = pa.allocate_buffer(int(ends[-1]))
    copy_fields(data, at.data, sizes.data, memoryview(content))
    valid = pa.py_buffer(np.packbits(~null, bitorder="little")) if null.any() else None
    return pa.Array.from_buffers(pa.binary(), count, [valid, pa.py_buffer(ends), content])


def _constant_array(text: str, count: int) -> pa.Array:
    raw = text.encode()
    ends = np.arange(0, (count + 1) * len(raw), len(raw) or 1, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(raw * count)])


def _header_column(data: memoryview, at: Ints, ends: Ints) -> pa.Array:
    counts, numbers = locate_headers(data, at.tobytes(), ends.tobytes())
    ends_of_rows = np.zeros(len(at) + 1, np.int32)
    np.cumsum(np.frombuffer(counts, np.int64), out=ends_of_rows[1:])
    if not ends_of_rows[-1]:
        items = pa.array([], _HEADER)
    else:
        name_at, name_size, content_at, content_size = np.ascontiguousarray(
            np.frombuffer(numbers, np.int64).reshape(-1, HEADER_NUMBERS).T
        )
        names = _binary_array(data, name_at, name_size)
        contents = _binary_array(data, content_at, content_size)
        items = pa.StructArray.from_arrays([_text_array(names), contents], fields=list(_HEADER))
    return pa.ListArray.from_arrays(pa.array(ends_of_rows), items, type=pa.list_(_HEADER))


def _text_array(names: pa.Array) -> pa.Array:
    """Header names as strings; bytes that are not UTF-8 are replaced, as in Java's clients."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        decoded = (name if name is None else name.decode("utf-8", "replace") for name in names.to_pylist())
        return pa.array(decoded, pa.string())
