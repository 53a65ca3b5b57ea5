"""Record batches as Arrow, without a Python object per record: what Spark and data frames read.

    for batch in decode(records, topic="orders", partition=0, start=500, end=700):
        batch.num_rows                                    # a pyarrow.RecordBatch, columns as in SCHEMA

``records`` are bytes of a Fetch response or of a log file: consecutive record batches, of which the last may
be incomplete. Checksums are always verified. Needs numpy and pyarrow (``pip install 'kohort[spark]'``).
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...protocol import (
    BATCH_OVERHEAD,
    MAX_DECOMPRESSED_BYTES,
    CorruptBatchError,
    TopicPartition,
    parse_batch_header,
)
from ...protocol.messages.fetch import AbortedTransaction
from .columns import Bytes, Fields, Ints, Spans, fields, headers, walk_all
from .fetched_records import RUN_BYTES, Batch, ChunkReader

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
#: Pieces that are joined in one step: few enough for the processor's caches.
_AT_ONCE = 1024


class _Scratch(threading.local):
    """Memory in which a thread decodes runs: new memory would cost more than the work in it."""

    room = bytearray()

    def of(self, size: int) -> bytearray:
        """A buffer of at least this many bytes, kept for the next call unless it is very large."""
        if size > 2 * RUN_BYTES:
            return bytearray(size)
        if len(self.room) < size:
            self.room = bytearray(size)
        return self.room


_scratch = _Scratch()


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
        header = parse_batch_header(records, position)
        position += header.size
        if position > len(records):  # incomplete, because of the limits of a Fetch
            break
        behind = header.next_offset
    return behind


def decode_run(
    run: Sequence[Batch],
    partition: TopicPartition,
    start: int,
    end: int | None,
    include_headers: bool,
    rows_per_batch: int,
) -> Iterator[pa.RecordBatch]:
    """The records of a reader's run with ``start <= offset < end``, as ``decode``."""
    made = _arrow(run, partition, start, end, include_headers)
    for first in range(0, made.num_rows, rows_per_batch):
        yield made.slice(first, rows_per_batch)


def _arrow(
    run: Sequence[Batch], partition: TopicPartition, start: int, end: int | None, include_headers: bool
) -> pa.RecordBatch:
    batches, payloads = [batch.header for batch in run], [batch.payload for batch in run]
    size = sum(map(len, payloads))
    room, position = _scratch.of(size), 0
    for payload in payloads:
        room[position : position + len(payload)] = payload
        position += len(payload)
    at = walk_all(room, batches, payloads)
    data = memoryview(room)[:size]
    raw = np.frombuffer(data, np.uint8)
    try:
        found = fields(raw, at, batches)
        rows = _rows_between(found.offsets, start, end)
        # the columns below rely on it
        if (found.headers_at >= np.append(at[1:], size)).any():
            raise IndexError("a record reaches into the next one")
        count = rows.stop - rows.start
        columns = [
            *_binary_columns(data, found, rows),
            _constant(partition.topic, count),
            pa.array(np.full(count, partition.partition, np.int32)),
            pa.array(found.offsets[rows]),
            pa.array(found.times_ms[rows] * _MICROS_PER_MILLI).view(pa.timestamp("us", tz="UTC")),
            pa.array(
                np.zeros(count, np.int32)
                if found.by_broker is None
                else found.by_broker[rows].astype(np.int32)
            ),
        ]
        if include_headers:
            columns.append(_header_column(data, raw, found.headers_at[rows]))
    except IndexError as error:
        first = batches[0].base_offset
        raise CorruptBatchError(f"unreadable record in the batches from offset {first} on") from error
    schema = SCHEMA_WITH_HEADERS if include_headers else SCHEMA
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _rows_between(offsets: Ints, start: int, end: int | None) -> slice:
    first = bisect.bisect_left(offsets, start)
    last = len(offsets) if end is None else bisect.bisect_left(offsets, end)
    return slice(first, max(first, last))


def _binary_columns(data: memoryview, found: Fields, rows: slice) -> list[pa.Array]:
    """Keys and values, both cut from one array over the raw bytes, so that nothing is copied twice."""
    cut = [_cut(found.keys, rows), _cut(found.values, rows)]
    if all(pieces.length >= 0 for pieces in cut):
        return [_alike(data, pieces) for pieces in cut]
    return _pieces(data, cut, [pa.binary(), pa.binary()])


def _alike(data: memoryview, pieces: Spans) -> pa.Array:
    """Pieces of one length, absent or not."""
    count, length = len(pieces.starts), pieces.length
    if not count or pieces.null.all():
        return pa.nulls(count, pa.binary())
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(length)
    content = pa.allocate_buffer(count * length)
    if length:
        every: npt.NDArray[np.void] = np.ndarray(len(data) - length + 1, f"V{length}", data, strides=(1,))
        room = np.frombuffer(content, every.dtype)
        for first in range(0, count, _AT_ONCE):
            room[first : first + _AT_ONCE] = every[pieces.starts[first : first + _AT_ONCE]]
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), content])


def _cut(pieces: Spans, rows: slice) -> Spans:
    return Spans(pieces.starts[rows], pieces.ends[rows], pieces.null[rows], pieces.length)


def _pieces(data: memoryview, columns: list[Spans], kinds: list[pa.DataType]) -> list[pa.Array]:
    """One array per column. Within a row and from row to row the pieces must follow each other."""
    count = len(columns[0].starts)
    if not count:
        return [pa.array([], kind) for kind in kinds]
    bounds = np.empty((count, 2 * len(columns)), np.int32)
    for nth, column in enumerate(columns):
        bounds[:, 2 * nth] = column.starts
        bounds[:, 2 * nth + 1] = column.ends
    size = bounds.size - 1  # every other element is what lies between two pieces
    raw = pa.py_buffer(data)
    return [
        pa.Array.from_buffers(kind, size, [None, pa.py_buffer(bounds), raw]).take(
            _indexes(2 * nth, bounds.shape[1], count, column.null)
        )
        for nth, (column, kind) in enumerate(zip(columns, kinds, strict=True))
    ]


def _indexes(first: int, step: int, count: int, null: npt.NDArray[np.bool_]) -> pa.Array:
    places = np.arange(first, first + step * count, step, dtype=np.int64)
    return pa.array(places, mask=null) if null.any() else pa.array(places)


def _constant(text: str, count: int) -> pa.Array:
    raw = text.encode()
    ends = np.arange(0, (count + 1) * len(raw), len(raw) or 1, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(raw * count)])


def _header_column(data: memoryview, raw: Bytes, at: Ints) -> pa.Array:
    counts, keys, values = headers(raw, at)
    ends = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=ends[1:])
    if not ends[-1]:
        items = pa.array([], _HEADER)
    else:
        names, contents = _pieces(data, [keys, values], [pa.binary(), pa.binary()])
        items = pa.StructArray.from_arrays([_text(names), contents], fields=list(_HEADER))
    return pa.ListArray.from_arrays(pa.array(ends), items, type=pa.list_(_HEADER))


def _text(names: pa.Array) -> pa.Array:
    """Header names as strings; bytes that are not UTF-8 are replaced, as in Java's clients."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        decoded = (name if name is None else name.decode("utf-8", "replace") for name in names.to_pylist())
        return pa.array(decoded, pa.string())
