"""Record batches as Arrow, without a Python object per record: what Spark and data frames read.

    for batch in decode(records, topic="orders", partition=0, start=500, end=700):
        batch.num_rows                                    # a pyarrow.RecordBatch, columns as in SCHEMA

``records`` are bytes of a Fetch answer or of a log file: whole record batches one after another, the last one
perhaps cut short. Checksums are always verified. Needs numpy and pyarrow (``pip install 'kohort[spark]'``).
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..protocol import (
    BATCH_OVERHEAD,
    MAX_DECOMPRESSED_BYTES,
    BatchHeader,
    CorruptBatchError,
    decompress,
    parse_batch_header,
    verify_batch,
)
from .columns import Bytes, Fields, Ints, Spans, fields, headers, is_abort_marker, walk

#: Rows of one Arrow batch, about: what Spark takes fastest.
ROWS_PER_BATCH = 20_000

#: Bytes of records that are decoded in one go, about.
RUN_BYTES = 4 * 1024 * 1024

#: A row is as Spark's built-in Kafka source has it. ``timestampType`` is 0 for the producer's time and 1 for
#: the broker's.
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
#: So many pieces are brought together in one step: few enough for the processor's caches.
_AT_ONCE = 1024


@dataclass(slots=True)
class _Run:
    """Batches that are decoded together: their records, decompressed, and a header for each."""

    batches: list[BatchHeader] = field(default_factory=list)
    parts: list[bytes | memoryview] = field(default_factory=list)
    records: int = 0
    size: int = 0

    def add(self, header: BatchHeader, records: bytes | memoryview) -> None:
        self.batches.append(header)
        self.parts.append(records)
        self.records += header.record_count
        self.size += len(records)


class _Scratch(threading.local):
    """Where a thread's runs lie while they are taken apart: fresh memory costs more than the work in it."""

    room = bytearray()

    def of(self, size: int) -> bytearray:
        """Room for so many bytes at least, kept for the next time unless it is very much."""
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

    ``aborted`` are the (producer id, first offset) pairs that a read_committed Fetch answers with: what those
    producers wrote up to their abort marker is left out. Control batches always are. Raises
    CorruptBatchError, with the position of the batch, for bytes that are not what they claim to be, and for a
    batch that grows to more than ``max_batch_bytes`` when it is decompressed.
    """
    for run, _ in _runs(memoryview(records), start, end, aborted, rows_per_batch, max_batch_bytes):
        yield from _sliced(_arrow(run, topic, partition, start, end, include_headers), rows_per_batch)


def decode_some(
    records: memoryview,
    *,
    topic: str,
    partition: int,
    start: int,
    aborted: Sequence[tuple[int, int]],
    include_headers: bool,
    rows_per_batch: int,
    max_batch_bytes: int,
) -> tuple[list[pa.RecordBatch], int]:
    """As much as ``decode`` takes in one go, which is bounded in bytes; and how many bytes that were.

    The rest is for the next call. What is before a flaw is given first, and CorruptBatchError raised then.
    """
    for run, size in _runs(records, start, None, aborted, rows_per_batch, max_batch_bytes):
        made = _arrow(run, topic, partition, start, None, include_headers)
        return list(_sliced(made, rows_per_batch)), size
    return [], sum(header.size for _, header in _whole_batches(records))


def _runs(
    records: memoryview,
    start: int,
    end: int | None,
    aborted: Sequence[tuple[int, int]],
    rows: int,
    max_batch_bytes: int,
) -> Iterator[tuple[_Run, int]]:
    """Batches to be decoded in one go, and where in ``records`` they end."""
    run, behind = _Run(), 0
    try:
        for header, payload, behind in _wanted(records, start, end, aborted, max_batch_bytes):
            run.add(header, payload)
            if run.records >= rows or run.size >= RUN_BYTES:
                yield run, behind
                run = _Run()
    except CorruptBatchError:
        if run.batches:
            yield run, behind
        raise
    if run.batches:
        yield run, behind


def next_offset(records: bytes | bytearray | memoryview, otherwise: int) -> int:
    """The offset behind the last whole batch, or ``otherwise`` if there is none. Reads the headers only."""
    behind = otherwise
    for _, header in _whole_batches(records):
        behind = header.next_offset
    return behind


def _whole_batches(records: bytes | bytearray | memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """As protocol.iter_batches, but a batch cut short by the limits of a Fetch ends the run quietly."""
    position = 0
    while len(records) - position >= BATCH_OVERHEAD:
        header = parse_batch_header(records, position)
        if position + header.size > len(records):
            return
        yield position, header
        position += header.size


def _wanted(
    records: memoryview,
    start: int,
    end: int | None,
    aborted: Sequence[tuple[int, int]],
    max_batch_bytes: int,
) -> Iterator[tuple[BatchHeader, bytes | memoryview, int]]:
    """Header, decompressed records and end of each batch that may hold a row of the range."""
    transactions = _Aborted(aborted)
    for position, header in _whole_batches(records):
        if end is not None and header.base_offset >= end:
            return
        verify_batch(records, header, position)
        payload = records[position + BATCH_OVERHEAD : position + header.size]
        if transactions.hides(header, payload) or header.last_offset < start or not header.record_count:
            continue
        if header.record_count < 0:
            raise CorruptBatchError(f"a batch of {header.record_count} records", position)
        try:
            plain = decompress(header.codec, payload, max_batch_bytes)
        except CorruptBatchError as error:
            raise CorruptBatchError(str(error).removesuffix(" (at byte 0)"), position) from error
        yield header, plain, position + header.size


class _Aborted:
    """Follows a run of batches and tells which belong to aborted transactions (KIP-98, read_committed)."""

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._waiting = sorted(aborted, key=lambda pair: pair[1], reverse=True)
        self._open: set[int] = set()

    def hides(self, header: BatchHeader, payload: memoryview) -> bool:
        while self._waiting and self._waiting[-1][1] <= header.last_offset:
            self._open.add(self._waiting.pop()[0])
        if header.control:
            if header.producer_id in self._open and is_abort_marker(payload):
                self._open.discard(header.producer_id)
            return True
        return header.transactional and header.producer_id in self._open


def _sliced(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def _arrow(
    run: _Run, topic: str, partition: int, start: int, end: int | None, include_headers: bool
) -> pa.RecordBatch:
    room = _scratch.of(run.size)
    bodies: list[Ints] = []
    position = 0
    for header, part in zip(run.batches, run.parts, strict=True):
        room[position : position + len(part)] = part
        bodies.append(walk(room, position, position + len(part), header.record_count))
        position += len(part)
    data = memoryview(room)[:position]
    raw = np.frombuffer(data, np.uint8)
    at = bodies[0] if len(bodies) == 1 else np.concatenate(bodies)
    try:
        found = fields(raw, at)
        offsets = _per_record(run, [header.base_offset for header in run.batches]) + found.offset_deltas
        rows = _rows_between(offsets, start, end)
        _check_inside(found, at, len(data))
        columns = [
            *_binary_columns(data, found, rows),
            _constant(topic, rows.stop - rows.start),
            pa.array(np.full(rows.stop - rows.start, partition, np.int32)),
            pa.array(offsets[rows]),
            *_time_columns(run, found, rows),
        ]
        if include_headers:
            columns.append(_header_column(data, raw, found.headers_at[rows]))
    except IndexError as error:
        first = run.batches[0].base_offset
        raise CorruptBatchError(f"unreadable record in the batches from offset {first} on") from error
    schema = SCHEMA_WITH_HEADERS if include_headers else SCHEMA
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _per_record(run: _Run, values: Sequence[int]) -> Ints:
    return np.repeat(np.array(values, np.int64), [header.record_count for header in run.batches])


def _rows_between(offsets: Ints, start: int, end: int | None) -> slice:
    first = bisect.bisect_left(offsets, start)
    last = len(offsets) if end is None else bisect.bisect_left(offsets, end)
    return slice(first, max(first, last))


def _check_inside(found: Fields, bodies: Ints, size: int) -> None:
    """No record may reach into the next one: the columns below rely on it."""
    limits = np.append(bodies[1:], size)
    if (found.headers_at >= limits).any():
        raise IndexError("a record reaches past its end")


def _time_columns(run: _Run, found: Fields, rows: slice) -> list[pa.Array]:
    millis = _per_record(run, [header.base_timestamp_ms for header in run.batches]) + found.timestamp_deltas
    kinds = np.zeros(len(millis), np.int32)
    if any(header.log_append_time for header in run.batches):
        by_broker = _per_record(run, [header.log_append_time for header in run.batches]).astype(bool)
        written = _per_record(run, [header.max_timestamp_ms for header in run.batches])
        millis = np.where(by_broker, written, millis)
        kinds[by_broker] = 1
    micros = pa.array(millis[rows] * _MICROS_PER_MILLI)
    return [micros.view(pa.timestamp("us", tz="UTC")), pa.array(kinds[rows])]


def _binary_columns(data: memoryview, found: Fields, rows: slice) -> list[pa.Array]:
    """Keys and values: both taken out of one array over the raw bytes, so that nothing is copied twice."""
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
    """Header names as strings; bytes that are no UTF-8 are replaced, as Java's clients do."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        decoded = (name if name is None else name.decode("utf-8", "replace") for name in names.to_pylist())
        return pa.array(decoded, pa.string())
