"""Record batches, magic 2 (KIP-98): building them, reading headers, and the fields that a broker writes.

A broker stores a batch byte for byte as the producer sent it, except for the base offset and the leader
epoch, which the checksum does not cover, and for the timestamps under LogAppendTime, which need a new
checksum. Numbers are big-endian:

======  ======  =================  ========================================================================
offset  type    field              meaning
======  ======  =================  ========================================================================
0       int64   base_offset        of the first record; the broker writes it
8       int32   length             bytes of all that follows
12      int32   leader_epoch       the broker writes it
16      int8    magic              2
17      uint32  crc                CRC-32C of all that follows
21      int16   attributes         bits 0-2 codec, 3 LogAppendTime, 4 transactional, 5 control, 6 see below
23      int32   last_offset_delta  of the last record, also after compaction: minus the base offset
27      int64   base_timestamp_ms  records have differences to it; bit 6: the delete horizon (KIP-534)
35      int64   max_timestamp_ms   of the records; bit 3: the time of the append, for all of them
43      int64   producer_id        -1: of no idempotent producer, like the next two
51      int16   producer_epoch
53      int32   base_sequence      of the first record
57      int32   record_count       of those that are in the batch
======  ======  =================  ========================================================================

The records follow from byte 61 on (``records.py``), compressed together. ``_native.pyx`` joins those of a
coordinator's batch as ``_join_records`` does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import cache
from typing import Final, TypeAlias

from ._errors import CorruptBatchError
from ._native_parts import has_native
from .named_tuples import NamedTuple

NATIVE = has_native("protocol", "join_records")
if NATIVE:
    from ._native import join_records

#: The fields of a BatchHeader.
BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")
#: Of these base offset, length, leader epoch, magic and last offset delta.
_EXTENT = struct.Struct(">qiib6xi")
_LENGTH = struct.Struct(">i")
_BASE_OFFSET = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_CRC = struct.Struct(">I")

#: Creates a named tuple in half the time of a call of its class.
_new: Final = tuple.__new__

#: Size of a batch header in bytes; the records follow it.
BATCH_OVERHEAD = BATCH_HEADER.size
_LENGTH_AT, _EPOCH_AT, _CRC_AT, _ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 8, 12, 17, 21, 35
#: Bytes of a batch before the part that its length counts, and before the part that its checksum covers.
BATCH_LENGTH_END, BATCH_CRC_END = 12, 21
_MAGIC = 2

#: Bits of a batch's attributes.
BATCH_CODEC = 0x07
BATCH_LOG_APPEND_TIME = 0x08
BATCH_TRANSACTIONAL = 0x10
BATCH_CONTROL = 0x20
BATCH_DELETE_HORIZON = 0x40
#: The attributes that setting a batch's timestamps leaves as they are.
_LASTING = BATCH_CODEC | BATCH_TRANSACTIONAL | BATCH_CONTROL | BATCH_DELETE_HORIZON

#: Headers of a record: names and values, in order.
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
#: A producer's record: key, value, headers, timestamp in milliseconds.
TimedRecord: TypeAlias = tuple[bytes | None, bytes | None, Headers, int]

#: A record to write: key and value, or key, value and headers; None is null.
RecordToWrite: TypeAlias = (
    tuple[bytes | None, bytes | None] | tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]
)


class Codec(IntEnum):
    """Compression codecs, as numbered in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BatchHeader(NamedTuple):
    """The fixed part of a batch. Timestamps are in milliseconds; -1 stands for none in producer fields."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Size of the whole batch in bytes, base offset and length included."""
        return self.length + BATCH_LENGTH_END

    @property
    def last_offset(self) -> int:
        """Offset of the last record; compaction may have removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset after the batch."""
        return self.last_offset + 1

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; after 2147483647 comes 0."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF if self.base_sequence >= 0 else -1

    @property
    def codec(self) -> int:
        """Number of the :class:`Codec`; 5 to 7 are not assigned."""
        return self.attributes & BATCH_CODEC

    @property
    def log_append_time(self) -> bool:
        """Whether the log has written its own time (bit 3 of the attributes)."""
        return bool(self.attributes & BATCH_LOG_APPEND_TIME)

    @property
    def transactional(self) -> bool:
        """Whether it is part of a transaction (bit 4)."""
        return bool(self.attributes & BATCH_TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether it is a marker of a transaction's end (bit 5)."""
        return bool(self.attributes & BATCH_CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """Return whether compaction has replaced the base timestamp by a delete horizon (KIP-534)."""
        return bool(self.attributes & BATCH_DELETE_HORIZON)


def parse_batch_header(data: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """Return the header of the batch that starts at ``position``.

    Checks neither the checksum nor whether the whole batch is there. Raises CorruptBatchError if fewer than
    BATCH_OVERHEAD bytes are left, if the magic is not 2, or if the length is less than a header's.
    """
    if len(data) - position < BATCH_OVERHEAD:
        raise CorruptBatchError(f"batch header cut short: {len(data) - position} bytes", position)
    fields = BATCH_HEADER.unpack_from(data, position)
    if fields[3] != _MAGIC:
        raise CorruptBatchError(f"batch of magic {fields[3]}: only 2 is known", position)
    if fields[1] < BATCH_OVERHEAD - BATCH_LENGTH_END:
        raise CorruptBatchError(f"batch length {fields[1]} is less than its header", position)
    return _new(BatchHeader, fields)


def batch_extent(data: bytes | bytearray | memoryview, position: int = 0) -> tuple[int, int, int]:
    """Return size in bytes, offset after it and leader epoch of the batch that starts at ``position``.

    For those who walk past it: a third of the time of ``parse_batch_header``, whose errors it raises.
    """
    if len(data) - position >= BATCH_OVERHEAD:
        base_offset, length, leader_epoch, magic, last_offset_delta = _EXTENT.unpack_from(data, position)
        size = length + BATCH_LENGTH_END
        if magic == _MAGIC and size >= BATCH_OVERHEAD:
            return size, base_offset + last_offset_delta + 1, leader_epoch
    header = parse_batch_header(data, position)
    return header.size, header.next_offset, header.leader_epoch


def verify_batch(data: bytes | bytearray | memoryview, header: BatchHeader, position: int = 0) -> None:
    """Check that the whole batch is there and that its CRC-32C is right. Raises CorruptBatchError."""
    end = position + header.size
    if end > len(data):
        raise CorruptBatchError(f"batch of {header.size} bytes cut short by {end - len(data)}", position)
    crc = crc32c_function()(memoryview(data)[position + _ATTRIBUTES_AT : end])
    if crc != header.crc:
        raise CorruptBatchError(f"checksum is {header.crc:#010x}, the bytes give {crc:#010x}", position)


def iter_batches(data: bytes | bytearray | memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch in ``data``. Raises CorruptBatchError if one is cut short."""
    position = 0
    while position < len(data):
        header = parse_batch_header(data, position)
        if position + header.size > len(data):
            missing = position + header.size - len(data)
            raise CorruptBatchError(f"batch of {header.size} bytes cut short by {missing}", position)
        yield position, header
        position += header.size


def stamp_batch(
    data: bytearray,
    position: int,
    *,
    base_offset: int,
    leader_epoch: int,
    log_append_time_ms: int | None = None,
    newest_ms: int | None = None,
) -> None:
    """Write the fields of a batch that the broker decides, and a new checksum if it covers any of them.

    ``log_append_time_ms`` sets the timestamp type LogAppendTime and this time, in milliseconds.
    ``newest_ms``, the newest timestamp of the records, sets CreateTime and the maximal timestamp, unless the
    header has both.
    """
    _BASE_OFFSET.pack_into(data, position, base_offset)
    _EPOCH.pack_into(data, position + _EPOCH_AT, leader_epoch)
    if log_append_time_ms is not None:
        _set_time(data, position, BATCH_LOG_APPEND_TIME, log_append_time_ms)
    elif newest_ms is not None:
        _set_time(data, position, 0, newest_ms)


def _set_time(data: bytearray, position: int, kind: int, time_ms: int) -> None:
    """Set timestamp type and maximal timestamp, unless the batch has both (as Apache Kafka does it)."""
    (attributes,) = _SHORT.unpack_from(data, position + _ATTRIBUTES_AT)
    (said_ms,) = _BASE_OFFSET.unpack_from(data, position + _MAX_TIMESTAMP_AT)
    if attributes & BATCH_LOG_APPEND_TIME == kind and said_ms == time_ms:
        return
    _SHORT.pack_into(data, position + _ATTRIBUTES_AT, attributes & _LASTING | kind)
    _BASE_OFFSET.pack_into(data, position + _MAX_TIMESTAMP_AT, time_ms)
    _write_crc(data, position)


def build_batch(
    records: Sequence[RecordToWrite],
    *,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """Return an uncompressed batch of records, at least one, all with the timestamp ``timestamp_ms``."""
    assert records, "a batch needs a record"
    out = join_records(records, BATCH_OVERHEAD) if NATIVE else None
    if out is None:
        out = _join_records(records)
    attributes = (BATCH_TRANSACTIONAL if transactional else 0) | (BATCH_CONTROL if control else 0)
    BATCH_HEADER.pack_into(
        out,
        0,
        base_offset,
        len(out) - BATCH_LENGTH_END,
        leader_epoch,
        _MAGIC,
        0,
        attributes,
        len(records) - 1,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    with memoryview(out) as view:
        _CRC.pack_into(out, _CRC_AT, crc32c_function()(view[_ATTRIBUTES_AT:]))
    return out


def _join_records(records: Sequence[RecordToWrite]) -> bytearray:
    """Room for the header of a batch, and its encoded records."""
    parts = [bytes(BATCH_OVERHEAD)]
    varints = _VARINTS
    for delta, record in enumerate(records):
        key, value = record[0], record[1]
        try:
            sizes = varints[delta], varints[len(key)], varints[len(value)]  # type: ignore[arg-type]
        except (IndexError, TypeError):
            sizes = _pack_varint(delta), _size_of(key), _size_of(value)
        body = b"".join(
            (
                b"\x00\x00",  # attributes, timestamp delta
                sizes[0],
                sizes[1],
                key or b"",
                sizes[2],
                value or b"",
                _pack_headers(record[2]) if len(record) == 3 and record[2] else b"\x00",
            )
        )
        size = len(body)
        parts += (varints[size] if size < _SMALL else _pack_varint(size), body)
    return bytearray().join(parts)


def stamp_built(batch: bytearray, *, base_offset: int, leader_epoch: int) -> BatchHeader:
    """Write base offset and leader epoch into a batch of ``build_batch``; return its header unchecked."""
    _BASE_OFFSET.pack_into(batch, 0, base_offset)
    _EPOCH.pack_into(batch, _EPOCH_AT, leader_epoch)
    return _new(BatchHeader, BATCH_HEADER.unpack_from(batch))


def encode_records(records: Sequence[TimedRecord], first_ms: int, first_delta: int = 0) -> bytearray:
    """Encode the records of a batch, uncompressed, without its header.

    ``first_ms`` is its base timestamp, ``first_delta`` the offset delta of the first of these records.
    """
    parts: list[bytes] = []
    for delta, (key, value, headers, timestamp_ms) in enumerate(records, first_delta):
        later_ms = timestamp_ms - first_ms
        if key is None:
            key_size, key = _NULL, b""
        else:
            key_size = _pack_varint(len(key))
        if value is None:
            value_size, value = _NULL, b""
        else:
            size = len(value)
            value_size = _VARINTS[size] if size < _SMALL else _pack_varint(size)
        head = b"\x00%b%b%b%b%b" % (
            _VARINTS[later_ms] if 0 <= later_ms < _SMALL else _signed_varint(later_ms),
            _VARINTS[delta] if delta < _SMALL else _pack_varint(delta),
            key_size,
            key,
            value_size,
        )
        tail = _pack_headers(headers) if headers else b"\x00"
        size = len(head) + len(value) + len(tail)
        parts += (_VARINTS[size] if size < _SMALL else _pack_varint(size), head, value, tail)
    return bytearray().join(parts)


def seal_batch(header: BatchHeader, records: bytes | bytearray) -> bytearray:
    """Join a header and encoded records into a batch; sets its length and its checksum."""
    out = bytearray(BATCH_HEADER.pack(*header)) + records
    _LENGTH.pack_into(out, _LENGTH_AT, len(out) - BATCH_LENGTH_END)
    _write_crc(out, 0)
    return out


def with_payload(batch: bytes | bytearray, codec: int, payload: bytes) -> bytearray:
    """Return an uncompressed batch with its records replaced by ``payload``, compressed with ``codec``."""
    header = parse_batch_header(batch)
    return seal_batch(header._replace(attributes=header.attributes | codec), payload)


def write_varint(out: bytearray, value: int) -> None:
    """Append a signed number of up to 64 bits as a zigzag varint."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def read_varint(data: bytes | bytearray | memoryview, position: int, bits: int = 64) -> tuple[int, int]:
    """Return the zigzag varint at ``position``, a signed number of so many bits, and the position after it.
    More bits are dropped, as by Java's clients.

    Raises IndexError if the data end within it, ValueError if it has more bytes than such a number takes.
    """
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= (1 << bits) - 1
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift >= bits:
            raise ValueError(f"a varint of more than {bits} bits")


#: Varints of numbers below this one are in a table.
_SMALL = 1_024


def _small_varints() -> list[bytes]:
    out = []
    for value in range(_SMALL):
        data = bytearray()
        write_varint(data, value)
        out.append(bytes(data))
    return out


#: The varints of small numbers, which nearly all lengths and deltas are.
_VARINTS = _small_varints()

#: The varint of -1, which is the length of null.
_NULL = b"\x01"


def _pack_headers(headers: Headers) -> bytes:
    out = bytearray(_pack_varint(len(headers)))
    for name, content in headers:
        data = name.encode()
        out += _pack_varint(len(data)) + data
        out += _NULL if content is None else _pack_varint(len(content)) + content
    return bytes(out)


def _size_of(content: bytes | None) -> bytes:
    return _NULL if content is None else _pack_varint(len(content))


def _pack_varint(value: int) -> bytes:
    """Zigzag varint of a length or a delta, which is not negative."""
    return _VARINTS[value] if value < _SMALL else _signed_varint(value)


def _signed_varint(value: int) -> bytes:
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


def _write_crc(data: bytearray, position: int) -> None:
    (length,) = _LENGTH.unpack_from(data, position + _LENGTH_AT)
    with memoryview(data) as view:
        crc = crc32c_function()(view[position + _ATTRIBUTES_AT : position + BATCH_LENGTH_END + length])
    _CRC.pack_into(data, position + _CRC_AT, crc)


@cache
def crc32c_function() -> Callable[[bytes | bytearray | memoryview], int]:
    """Return the function that computes the CRC-32C of bytes."""
    # imported on first use: crc32c reads its package metadata at import, a tenth of a broker's start time
    from crc32c import crc32c

    return crc32c
