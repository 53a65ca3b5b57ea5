"""Records of a batch, without their headers, and the control records that end a transaction (KIP-98).

Uncompressed batches are walked in place; others are decompressed once, within a limit, and in a thread if
they grow large.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from ..protocol import (
    BATCH_OVERHEAD,
    BatchHeader,
    Codec,
    CorruptBatchError,
    ErrorCode,
    GrownTooLargeError,
    KafkaError,
    decompress,
    decompressed_limit,
    read_varint,
)
from ._steps import Steps, ThreadWork

#: Offset, timestamp in milliseconds, key, value; None is null.
Record = tuple[int, int, bytes | None, bytes | None]

#: Bit of a varint's byte that says that another byte follows.
_MORE = 0x80


def decode_records(data: bytes | bytearray, header: BatchHeader, position: int = 0) -> list[Record]:
    """Return the records of the batch at ``position``, without a check of its checksum.

    Raises CorruptBatchError, with the batch's position, if the records are malformed, if their number is not
    the header's, or if they cannot be decompressed within the limits.
    """
    payload = bytes(data[position + BATCH_OVERHEAD : position + header.size])
    try:
        records = _walk(bytes(decompress(header.codec, payload)), header)
    except (CorruptBatchError, IndexError, ValueError) as error:
        raise CorruptBatchError(f"records cannot be read: {error}", position) from error
    if len(records) != header.record_count:
        raise CorruptBatchError(f"{len(records)} records, the header says {header.record_count}", position)
    return records


def _walk(data: bytes, header: BatchHeader) -> list[Record]:
    records: list[Record] = []
    position = 0
    while position < len(data):
        delta, later_ms, key, value, position = record_at(data, position)
        time_ms = header.max_timestamp_ms if header.log_append_time else header.base_timestamp_ms + later_ms
        records.append((header.base_offset + delta, time_ms, key, value))
    return records


def record_at(data: bytes, position: int) -> tuple[int, int, bytes | None, bytes | None, int]:
    """Read a record of an uncompressed batch: its offset delta, its timestamp delta in milliseconds, its key,
    its value, and the position after it.

    Raises IndexError or ValueError if there is no record at ``position``.
    """
    length, position = read_varint(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise ValueError(f"a record of {length} bytes where {len(data) - position} are left")
    position += 1  # attributes
    if data[position]:
        later_ms, position = read_varint(data, position)
    else:
        later_ms, position = 0, position + 1
    delta, position = read_varint(data, position)
    key = value = None
    # lengths of one byte, as most are, are read in place
    length = data[position]
    if length < _MORE:
        length, position = (length >> 1) ^ -(length & 1), position + 1
    else:
        length, position = read_varint(data, position)
    if length >= 0:
        key = data[position : position + length]
        position += length
    length = data[position]
    if length < _MORE:
        length, position = (length >> 1) ^ -(length & 1), position + 1
    else:
        length, position = read_varint(data, position)
    if length >= 0:
        value = data[position : position + length]
        position += length
    if position >= end:
        raise ValueError("a record shorter than its fields")
    return delta, later_ms, key, value, end


def signed_long(number: int) -> int:
    """A number wrapped to a signed 64-bit integer, as Java's sums of timestamps are."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


_ABORT, _COMMIT = 0, 1


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    committed: bool
    coordinator_epoch: int


def parse_marker(data: bytes | bytearray, header: BatchHeader, position: int = 0) -> Marker | None:
    """Return the marker in the control batch at ``position``; None for a type that ends no transaction.

    Raises CorruptBatchError if it holds no record or one too short.
    """
    records = decode_records(data, header, position)
    if not records:
        return None  # compaction keeps the emptied batch for its producer's epoch
    _, _, key, value = records[0]
    if key is None or value is None or len(key) < 4 or len(value) < 6:
        raise CorruptBatchError("control record too short for a type and a coordinator epoch", position)
    kind = int.from_bytes(key[2:4], "big", signed=True)
    if kind not in (_ABORT, _COMMIT):
        return None
    return Marker(kind == _COMMIT, int.from_bytes(value[2:6], "big", signed=True))


def markers_of(data: bytes | bytearray, headers: Sequence[BatchHeader]) -> list[Marker | None]:
    """Return the marker of each batch that is to be appended. Raises KafkaError INVALID_RECORD."""
    markers: list[Marker | None] = []
    position = 0
    for header in headers:
        try:
            markers.append(parse_marker(data, header, position) if header.control else None)
        except CorruptBatchError as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from error
        position += header.size
    return markers


#: Compressed and decompressed bytes up to which the caller's own thread does the work; above them another
#: thread does, which at first claims memory for _MODEST_BYTES alone.
PROMPT_PACKED_BYTES, PROMPT_BYTES = 64 << 10, 1 << 20
_MODEST_BYTES = 8 << 20


def unpack_records(header: BatchHeader, payload: memoryview, most_members: int | None = None) -> Steps[bytes]:
    """The records after a batch's header, decompressed. ``most_members``: see ``decompress``.

    Raises CorruptBatchError, and GrownTooLargeError over the limits of decompression.
    """
    if header.codec == Codec.NONE:
        return bytes(payload)
    unpack = partial(decompress, header.codec, payload, most_members=most_members)
    allowed = decompressed_limit(len(payload))
    if len(payload) <= PROMPT_PACKED_BYTES:
        try:
            return bytes(unpack(min(PROMPT_BYTES, allowed)))
        except GrownTooLargeError:
            if allowed <= PROMPT_BYTES:
                raise
    if allowed > _MODEST_BYTES:
        with suppress(GrownTooLargeError):
            return bytes((yield ThreadWork(partial(unpack, _MODEST_BYTES), _MODEST_BYTES)))
    return bytes((yield ThreadWork(partial(unpack, allowed), allowed)))
