"""Records of a batch, without their headers, and the control records that end a transaction (KIP-98).

Uncompressed batches are walked in place; others are decompressed once, within a limit, and in a thread if
they grow large.

A marker is the one record of a control batch. Of longer keys and values, only this is read:

=======  =====  ==================================================
offset   type   field
=======  =====  ==================================================
key 0    int16  version 0
key 2    int16  type: 0 abort, 1 commit; others end no transaction
value 0  int16  version 0
value 2  int32  epoch of the transaction coordinator
=======  =====  ==================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

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
)
from ..protocol.named_tuples import NamedTuple
from ..protocol.records import cut_field, locate_batch
from ._steps import Steps, ThreadWork

#: Offset, timestamp in milliseconds, key, value; None is null.
Record = tuple[int, int, bytes | None, bytes | None]


def decode_records(data: bytes | bytearray, header: BatchHeader, position: int = 0) -> list[Record]:
    """Return the records of the batch at ``position``, without a check of its checksum.

    Raises CorruptBatchError, with the batch's position, if the records are malformed, if their number is not
    the header's, or if they cannot be decompressed within the limits.
    """
    payload = bytes(data[position + BATCH_OVERHEAD : position + header.size])
    try:
        plain = bytes(decompress(header.codec, payload))
        located = locate_batch(plain, 0, len(plain), header.record_count)
    except CorruptBatchError as error:
        raise CorruptBatchError(f"records cannot be read: {error}", position) from error
    append_ms = header.max_timestamp_ms if header.log_append_time else None
    return [
        (
            header.base_offset + delta,
            header.base_timestamp_ms + later_ms if append_ms is None else append_ms,
            cut_field(plain, key_at, key_size),
            cut_field(plain, value_at, value_size),
        )
        for later_ms, delta, key_at, key_size, value_at, value_size, _, _ in located
    ]


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
