"""Rows of a table as records: their partitions, the records of their batches, their checksum.

The rows come as Arrow lays columns out in memory, so that there is no object for each of them:

    bytes     signed offsets of 4 or 8 bytes, one more than rows: row n is data[offsets[n]:offsets[n + 1]]
    numbers   8 bytes each, signed
    validity  a bit for each row, the lowest of a byte first: 0 is null. None: no row is null

All numbers have the machine's byte order. A column that is cut out of a longer one begins at its ``first``
row.

This Python is the specification, and ``_native.pyx`` gives the same for all rows at once. Both look at
nothing beyond the buffers: they raise IndexError for columns that say otherwise.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import pairwise, repeat
from typing import Final, TypeAlias
from zlib import crc32

from ._batch import Headers, encode_records
from ._murmur2 import partition_of_key
from ._native_parts import has_native
from .named_tuples import NamedTuple
from .records import Buffer

NATIVE: Final = has_native("protocol")
if NATIVE:
    from . import _native

#: Numbers of a partition in FillingRecords: how many records there are, the first timestamp, the newest one.
FILLING_NUMBERS: Final = 3

#: Key, value, headers, timestamp in milliseconds; None is null.
Row: TypeAlias = tuple[bytes | None, bytes | None, Headers, int | None]

_MAX_SUM: Final = 2**64 - 1


class BytesColumn(NamedTuple):
    """Keys or values of rows. ``width``: bytes of an offset."""

    offsets: Buffer
    width: int
    data: Buffer
    validity: Buffer | None
    first: int


class TimestampColumn(NamedTuple):
    """Timestamps of rows, in milliseconds since 1970."""

    data: Buffer
    validity: Buffer | None
    first: int


class HeaderColumn(NamedTuple):
    """Headers of rows. ``ends``: for each row the number of headers up to its last one, 4 bytes each."""

    ends: Buffer
    names: BytesColumn
    contents: BytesColumn


class RowColumns(NamedTuple):
    """Columns of ``row_count`` rows; a column that is None is null in each of them."""

    row_count: int
    keys: BytesColumn | None = None
    values: BytesColumn | None = None
    headers: HeaderColumn | None = None
    timestamps_ms: TimestampColumn | None = None


class EncodedRecords(NamedTuple):
    """The records of a batch, encoded and not compressed; times in milliseconds since 1970."""

    data: bytearray
    record_count: int
    first_ms: int
    newest_ms: int


class FillingRecords(NamedTuple):
    """For each partition of a topic the encoded records of a batch that is being filled.

    ``numbers`` has FILLING_NUMBERS signed 64-bit integers for each, partition by partition.
    """

    records: list[bytearray]
    numbers: array[int]

    @classmethod
    def of(cls, partitions: int) -> FillingRecords:
        return cls(
            [bytearray() for _ in range(partitions)], array("q", bytes(8 * FILLING_NUMBERS * partitions))
        )

    def take(self, partition: int) -> EncodedRecords:
        """Return the records of a partition, of which another batch begins."""
        at = FILLING_NUMBERS * partition
        taken = EncodedRecords(self.records[partition], *self.numbers[at : at + FILLING_NUMBERS])
        self.records[partition], self.numbers[at] = bytearray(), 0
        return taken


def partition_rows(rows: RowColumns, partitions: int) -> array[int]:
    """Return the partition of each row's key, as signed 32-bit integers; -1 for a row without a key."""
    if rows.keys is None:
        return array("i", [-1]) * rows.row_count
    if NATIVE:
        return array("i", _native.partition_rows(rows.row_count, *rows.keys, partitions))
    keys = _cut_cells(rows.keys, 0, rows.row_count)
    return array("i", [-1 if key is None else partition_of_key(key, partitions) for key in keys])


def encode_rows(
    rows: RowColumns,
    start: int,
    places: array[int],
    keyless: int,
    now_ms: int,
    filling: FillingRecords,
    full_bytes: int,
) -> int:
    """Append rows from ``start`` on as records to the batches of their partitions, up to the first row with
    which one would be longer than ``full_bytes``. Return that row's number; a batch may be one longer record.

    ``places``: partition of each row, or -1 for the partition ``keyless``. ``now_ms``: timestamp of rows that
    have none. Raises ValueError for a timestamp below 0.
    """
    if NATIVE:
        return _native.encode_rows(rows, start, places, keyless, now_ms, *filling, full_bytes)
    numbers = filling.numbers
    if len(places) < rows.row_count:
        raise IndexError("rows without a partition")
    for row, (key, value, headers, timestamp_ms) in enumerate(read_rows(rows, start), start):
        place = places[row] if places[row] >= 0 else keyless
        if not 0 <= place < len(filling.records):
            raise IndexError("a partition that is not there")
        records, at = filling.records[place], FILLING_NUMBERS * place
        timestamp_ms = now_ms if timestamp_ms is None else timestamp_ms
        if timestamp_ms < 0:
            raise ValueError(f"timestamp_ms={timestamp_ms}: it must be whole milliseconds since 1970")
        if not numbers[at]:
            numbers[at + 1] = numbers[at + 2] = timestamp_ms
        encoded = encode_records([(key, value, headers, timestamp_ms)], numbers[at + 1], numbers[at])
        if records and len(records) + len(encoded) > full_bytes:
            return row
        records += encoded
        numbers[at] += 1
        numbers[at + 2] = max(numbers[at + 2], timestamp_ms)
    return rows.row_count


def sum_rows(rows: RowColumns, seeds: array[int]) -> int:
    """Return the sum of the rows' checksums, of 64 bits: the same in any order of the rows.

    ``seeds``: for each row, as unsigned 32-bit integers, the checksum of what else belongs to it.
    """
    if NATIVE:
        return _native.sum_rows(rows, seeds)
    if len(seeds) < rows.row_count:
        raise IndexError("rows without a seed")
    return sum(check_row(*row, seed) for row, seed in zip(read_rows(rows), seeds, strict=False)) & _MAX_SUM


def check_row(
    key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int | None, seed: int
) -> int:
    """Return a row's checksum of 64 bits: CRC-32 (that of zlib) of its content, and the length of its key."""
    check = seed
    for name, content in headers:
        check = crc32(b"h%d" % (-1 if content is None else len(content)), crc32(name.encode(), check))
        check = crc32(content or b"", check)
    if timestamp_ms is not None:
        check = crc32(b"t%d" % timestamp_ms, check)
    # the lengths tell ("ab", "c") from ("a", "bc"), and nothing from an empty text
    length = -1 if key is None else len(key)
    check = crc32(value or b"", crc32(key or b"", check)) ^ (value is None)
    return (check + (length << 32)) & _MAX_SUM


def read_rows(rows: RowColumns, start: int = 0) -> Iterator[Row]:
    """Return key, value, headers and timestamp (milliseconds) of each row from ``start`` on; None is null."""
    count = rows.row_count - start
    return zip(
        _cut_cells(rows.keys, start, count),
        _cut_cells(rows.values, start, count),
        _cut_headers(rows.headers, start, count),
        _cut_timestamps(rows.timestamps_ms, start, count),
        strict=True,
    )


def _cut_cells(column: BytesColumn | None, start: int, count: int) -> Iterable[bytes | None]:
    if column is None:
        return repeat(None, count)
    start += column.first
    offsets = _read_integers(column.offsets, column.width, start, count + 1 if count else 0)
    data, found = column.data, list[bytes | None]()
    for is_valid, (begin, end) in zip(
        _read_bits(column.validity, start, count), pairwise(offsets), strict=True
    ):
        if is_valid and not 0 <= begin <= end <= len(data):
            raise IndexError("a row outside of its column")
        found.append(bytes(data[begin:end]) if is_valid else None)
    return found


def _cut_headers(column: HeaderColumn | None, start: int, count: int) -> Iterable[Headers]:
    if column is None:
        return repeat((), count)
    ends = [0, *_read_integers(column.ends, 4, 0, start + count)]
    names = _cut_cells(column.names, 0, ends[-1])
    # a name is not null
    headers = [
        ((name or b"").decode(), content)
        for name, content in zip(names, _cut_cells(column.contents, 0, ends[-1]), strict=True)
    ]
    return [headers[first:end] for first, end in pairwise(ends[start:])]


def _cut_timestamps(column: TimestampColumn | None, start: int, count: int) -> Iterable[int | None]:
    if column is None:
        return repeat(None, count)
    start += column.first
    times, valid = _read_integers(column.data, 8, start, count), _read_bits(column.validity, start, count)
    return [time if is_valid else None for time, is_valid in zip(times, valid, strict=True)]


def _read_bits(validity: Buffer | None, start: int, count: int) -> Iterable[bool]:
    """Return whether each row is not null."""
    if validity is None:
        return repeat(True, count)
    if not 0 <= start <= 8 * len(validity) - count:
        raise IndexError("a row outside of its column")
    return [bool(validity[row >> 3] >> (row & 7) & 1) for row in range(start, start + count)]


def _read_integers(data: Buffer, width: int, start: int, count: int) -> array[int]:
    found = array("i" if width == 4 else "q")
    if start < 0 or (start + count) * width > len(data):
        raise IndexError("a row outside of its column")
    found.frombytes(data[start * width : (start + count) * width])
    return found
