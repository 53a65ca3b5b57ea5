"""The records of a batch, decompressed, without the batch's header.

A record (KIP-98, "Record Format"), whose numbers are zigzag varints:

    bytes  field
    1-5    length of all that follows
    1      attributes: there are none
    1-10   timestamp delta: milliseconds since the batch's base timestamp
    1-5    offset delta: since the batch's base offset
    1-5    size of the key, below 0 for null; the key
    1-5    size of the value, below 0 for null; the value
    1-5    number of headers; for each the size of its name, its name in UTF-8, and like the value its content

This Python is the specification. Compiled, ``_native.pyx`` gives the same for a whole batch at once, but
leaves errors to this.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, TypeAlias

from ._batch import BatchHeader, Headers, read_varint
from ._errors import CorruptBatchError
from ._native_parts import has_native
from .named_tuples import NamedTuple

NATIVE = has_native("protocol")
NATIVE_COPY = has_native("protocol", "copy_fields")
if NATIVE:
    from . import _native

Buffer: TypeAlias = bytes | bytearray | memoryview

#: Timestamp delta in milliseconds, offset delta, position and size of the key, then of the value, position of
#: the headers, end of the record. The size of null is -1.
LocatedRecord: TypeAlias = tuple[int, int, int, int, int, int, int, int]
RECORD_NUMBERS: Final = 8
#: Of each header: position and size of its name, then of its content.
HEADER_NUMBERS: Final = 4

#: Position of the first record that is not whole, the number of those before it, their least and greatest
#: timestamp delta in milliseconds, whether one has no key, whether an offset delta is not its record's place.
CheckedRecords: TypeAlias = tuple[int, int, int, int, bool, bool]

#: Offset, timestamp in milliseconds, key, value, headers; None is null.
Record: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers]

#: Bits of all numbers but timestamps.
_INT: Final = 32
#: Bit of a varint's byte that says that another byte follows.
_MORE: Final = 0x80


class RecordColumns(NamedTuple):
    """Records, field by field. ``headers`` ends with the last record that has any."""

    offsets: list[int]
    timestamps_ms: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers]


def locate_record(data: Buffer, position: int) -> LocatedRecord:
    """Return where the fields of the record at ``position`` are. Its headers are not looked at.

    Raises CorruptBatchError if there is no whole record.
    """
    try:
        length, at = read_varint(data, position, _INT)
        end = at + length
        if length < 0 or end > len(data):
            raise CorruptBatchError(f"a record of {length} bytes where {len(data) - at} are left", position)
        at += 1  # attributes
        # numbers of one byte, as most are, are read in place
        later_ms = data[at]
        if later_ms < _MORE:
            later_ms, at = (later_ms >> 1) ^ -(later_ms & 1), at + 1
        else:
            later_ms, at = read_varint(data, at)
        delta = data[at]
        if delta < _MORE:
            delta, at = (delta >> 1) ^ -(delta & 1), at + 1
        else:
            delta, at = read_varint(data, at, _INT)
        key_size = data[at]
        if key_size < _MORE:
            key_size, key_at = (key_size >> 1) ^ -(key_size & 1), at + 1
        else:
            key_size, key_at = read_varint(data, at, _INT)
        if key_size < 0:
            key_size, at = -1, key_at
        else:
            at = key_at + key_size
        value_size = data[at]
        if value_size < _MORE:
            value_size, value_at = (value_size >> 1) ^ -(value_size & 1), at + 1
        else:
            value_size, value_at = read_varint(data, at, _INT)
        if value_size < 0:
            value_size, at = -1, value_at
        else:
            at = value_at + value_size
    except (IndexError, ValueError) as error:
        raise CorruptBatchError(f"a record that cannot be read: {error}", position) from error
    if at >= end:
        raise CorruptBatchError("a record shorter than its fields", position)
    return later_ms, delta, key_at, key_size, value_at, value_size, at, end


def cut_field(data: bytes, at: int, size: int) -> bytes | None:
    """Return a field of a LocatedRecord: ``size`` bytes, None for null."""
    return None if size < 0 else data[at : at + size]


def locate_header_fields(data: Buffer, at: int, end: int) -> list[int]:
    """Return HEADER_NUMBERS numbers for each of a record's headers, which lie from ``at`` to ``end``.

    Raises CorruptBatchError if they do not fill these bytes.
    """
    found: list[int] = []
    start = at
    try:
        count, at = read_varint(data, at, _INT)
        if count < 0:
            raise CorruptBatchError(f"a record with {count} headers", start)
        for _ in range(count):
            size, name_at = read_varint(data, at, _INT)
            if size < 0:
                raise CorruptBatchError("a header without a name", at)
            content_size, content_at = read_varint(data, name_at + size, _INT)
            at = content_at + max(content_size, 0)
            found += (name_at, size, content_at, max(content_size, -1))
            if at > end:
                break
    except (IndexError, ValueError) as error:
        raise CorruptBatchError(f"headers that cannot be read: {error}", start) from error
    if at != end:
        raise CorruptBatchError("a record that does not end where its length says", start)
    return found


def read_headers(data: bytes, at: int, end: int) -> Headers:
    """Return a record's headers. Bytes of a name that are not UTF-8 are replaced, as Java's clients do.

    Raises CorruptBatchError.
    """
    if not data[at] and at + 1 == end:
        return ()
    numbers = iter(locate_header_fields(data, at, end))
    return [
        (data[name_at : name_at + size].decode("utf-8", "replace"), cut_field(data, content_at, content_size))
        for name_at, size, content_at, content_size in zip(numbers, numbers, numbers, numbers, strict=True)
    ]


def iter_records(data: bytes, header: BatchHeader) -> Iterator[Record]:
    """Yield the records of the batch with this header. Raises CorruptBatchError unless they fill ``data``."""
    append_ms = header.max_timestamp_ms if header.log_append_time else None
    position = 0
    for _ in range(header.record_count):
        later_ms, delta, key_at, key_size, value_at, value_size, at, end = locate_record(data, position)
        yield (
            header.base_offset + delta,
            header.base_timestamp_ms + later_ms if append_ms is None else append_ms,
            None if key_size < 0 else data[key_at : key_at + key_size],
            None if value_size < 0 else data[value_at : value_at + value_size],
            read_headers(data, at, end),
        )
        position = end
    _check_end(position, len(data), header.record_count)


def read_records(data: Buffer, header: BatchHeader, columns: RecordColumns) -> None:
    """Add the records of the batch with this header to ``columns``.

    Raises CorruptBatchError if they do not fill ``data``; then none is added.
    """
    append_ms = header.max_timestamp_ms if header.log_append_time else None
    if NATIVE and _native.read_records(
        data, header.record_count, header.base_offset, header.base_timestamp_ms, append_ms, *columns
    ):
        return
    before = len(columns.offsets)
    for number, record in enumerate(list(iter_records(bytes(data), header)), before):
        columns.offsets.append(record[0])
        columns.timestamps_ms.append(record[1])
        columns.keys.append(record[2])
        columns.values.append(record[3])
        if record[4]:
            columns.headers.extend([()] * (number - len(columns.headers)))
            columns.headers.append(record[4])


def check_records(data: bytes, position: int, number: int, most: int) -> CheckedRecords:
    """Walk over up to ``most`` records from ``position`` on, of which the first is the ``number``-th of its
    batch, up to one that is not whole.
    """
    if NATIVE:
        return _native.check_records(data, position, number, most)
    end_number = number + most
    oldest = newest = first = number
    keyless = unordered = False
    try:
        while number < end_number:
            later_ms, delta, _, key_size, _, _, at, end = locate_record(data, position)
            if data[at] or at + 1 != end:
                locate_header_fields(data, at, end)
            if number == first:
                oldest = newest = later_ms
            elif later_ms < oldest:
                oldest = later_ms
            elif later_ms > newest:
                newest = later_ms
            if key_size < 0:
                keyless = True
            if delta != number:
                unordered = True
            number += 1
            position = end
    except CorruptBatchError:
        pass  # what is wrong with it is for the caller to find out
    return position, number - first, oldest, newest, keyless, unordered


def locate_batch(data: Buffer, start: int, size: int, count: int) -> Sequence[LocatedRecord]:
    """Return the LocatedRecord of each of the ``count`` records in ``data[start : start + size]``.

    Raises CorruptBatchError unless they fill these bytes.
    """
    if not NATIVE:
        return _locate_each(data, start, start + size, count)
    numbers = memoryview(locate_records(data, start, [(size, count)])).cast("q").tolist()
    columns = [numbers[first : first + count] for first in range(0, len(numbers), count or 1)]
    return list(zip(*columns, strict=True))


def locate_records(data: Buffer, start: int, batches: Sequence[tuple[int, int]]) -> bytes:
    """Return the numbers of each LocatedRecord of batches that lie in ``data`` from ``start`` on, one behind
    the other: signed 64-bit integers, all timestamp deltas first.

    ``batches`` has the bytes and the record count of each. Raises CorruptBatchError unless the records fill
    them.
    """
    if NATIVE and (numbers := _native.locate_records(data, start, batches)) is not None:
        return numbers
    found: list[LocatedRecord] = []
    for size, count in batches:
        found += _locate_each(data, start, start + size, count)
        start += size
    return array("q", chain.from_iterable(zip(*found, strict=True))).tobytes()


def _locate_each(data: Buffer, start: int, end: int, count: int) -> list[LocatedRecord]:
    found: list[LocatedRecord] = []
    position = start
    for _ in range(count):
        found.append(located := locate_record(data, position))
        position = located[-1]
    _check_end(position, end, count)
    return found


def locate_headers(data: Buffer, at: bytes, ends: bytes) -> tuple[bytes, bytes]:
    """Return the counts of the headers of records, and HEADER_NUMBERS numbers for each header: signed 64-bit
    integers, header by header.

    ``at`` and ``ends`` are the last two numbers of each LocatedRecord, written in the same way. Raises
    CorruptBatchError.
    """
    if NATIVE and (numbers := _native.locate_headers(data, at, ends)) is not None:
        return numbers
    places = zip(memoryview(at).cast("q"), memoryview(ends).cast("q"), strict=True)
    fields = [locate_header_fields(data, *place) for place in places]
    counts = array("q", [len(numbers) // HEADER_NUMBERS for numbers in fields])
    return counts.tobytes(), array("q", chain.from_iterable(fields)).tobytes()


def copy_fields(data: Buffer, at: memoryview, sizes: memoryview, out: memoryview) -> None:
    """Write fields into ``out``, one behind the other. ``at`` and ``sizes`` have signed 64-bit
    integers, as ``locate_records`` finds them; null has no bytes.

    Raises IndexError for a field outside of ``data``, or of what ``out`` has room for.
    """
    if NATIVE_COPY:
        _native.copy_fields(data, at, sizes, out)
        return
    with memoryview(data) as source, out.cast("B") as room:
        end = 0
        for start, size in zip(*(each.cast("B").cast("q") for each in (at, sizes)), strict=True):
            if size > 0:
                if not 0 <= start <= len(source) - size or size > len(room) - end:
                    raise IndexError("a field outside of the data")
                room[end : end + size] = source[start : start + size]
                end += size


def _check_end(position: int, end: int, count: int) -> None:
    if position != end:
        raise CorruptBatchError(f"{count} records do not fill the {end} bytes of their batch", position)
