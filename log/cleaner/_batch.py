"""One batch as compaction sees it: its records in place, and the batch rebuilt from some of them.

Offsets never change. A batch keeps its base offset, last offset delta, leader epoch, producer and sequence
number, so that the producer's last sequence number is known even when its records are gone. Records stay byte
for byte, except for their timestamp deltas where a delete horizon replaces the base timestamp (KIP-534).
"""

from __future__ import annotations

from collections.abc import Container

from ...protocol import (
    BATCH_CODEC,
    BATCH_CONTROL,
    BATCH_DELETE_HORIZON,
    BATCH_LOG_APPEND_TIME,
    BATCH_OVERHEAD,
    BATCH_TRANSACTIONAL,
    BatchHeader,
    Codec,
    compress,
    decompress,
    read_varint,
    seal_batch,
    write_varint,
)
from ...protocol.named_tuples import NamedTuple
from ...protocol.records import cut_field, locate_batch

#: After every offset.
NO_OFFSET = 2**63 - 1

_NO_TIMESTAMP = -1


class RawRecord(NamedTuple):
    """A record from ``start`` to ``end`` of the records of its batch. The key is None for null."""

    start: int
    end: int
    offset: int
    timestamp_delta: int
    key: bytes | None
    has_value: bool


def plain_records(data: bytes, position: int, end: int, attributes: int) -> bytes:
    """The records of the batch from ``position`` to ``end``, decompressed. Raises CorruptBatchError."""
    packed = data[position + BATCH_OVERHEAD : end]
    return bytes(decompress(attributes & BATCH_CODEC, packed)) if attributes & BATCH_CODEC else packed


def raw_records(
    records: bytes, base_offset: int, count: int, wanted: Container[int] | None = None
) -> list[RawRecord]:
    """The records of a batch, all of them or those at the ``wanted`` offsets.

    Raises CorruptBatchError if they are not ``count`` or do not fill the batch.
    """
    found: list[RawRecord] = []
    start = 0
    for later_ms, delta, key_at, key_size, _, value_size, _, end in locate_batch(
        records, 0, len(records), count
    ):
        if wanted is None or base_offset + delta in wanted:
            key = cut_field(records, key_at, key_size)
            found.append(RawRecord(start, end, base_offset + delta, later_ms, key, value_size >= 0))
        start = end
    return found


def rebuild_batch(
    header: BatchHeader, records: bytes, kept: list[RawRecord], horizon_ms: int | None
) -> bytes:
    """The batch with only the ``kept`` of its ``records``, packed with the same codec.

    ``horizon_ms`` is a delete horizon to set; None leaves the batch's own as it is.
    """
    attributes, base_ms, newest_ms = header.attributes, header.base_timestamp_ms, header.max_timestamp_ms
    if not header.log_append_time:
        newest_ms = max(base_ms + record.timestamp_delta for record in kept)
    if horizon_ms is None:
        body = b"".join([records[record.start : record.end] for record in kept])
    else:
        attributes |= BATCH_DELETE_HORIZON
        body = b"".join([_shift_time(records, record, base_ms - horizon_ms) for record in kept])
        base_ms = horizon_ms
    if header.codec != Codec.NONE:
        body = compress(header.codec, body)
    changed = header._replace(
        attributes=attributes, base_timestamp_ms=base_ms, max_timestamp_ms=newest_ms, record_count=len(kept)
    )
    return bytes(seal_batch(changed, body))


def empty_batch(header: BatchHeader) -> bytes:
    """The batch without records: it keeps its offsets, its producer and its newest timestamp."""
    attributes = header.attributes & (BATCH_LOG_APPEND_TIME | BATCH_TRANSACTIONAL | BATCH_CONTROL)
    changed = header._replace(attributes=attributes, base_timestamp_ms=_NO_TIMESTAMP, record_count=0)
    return bytes(seal_batch(changed, b""))


def _shift_time(records: bytes, record: RawRecord, by_ms: int) -> bytes:
    """The record with ``by_ms`` added to its timestamp delta."""
    _, body = read_varint(records, record.start)
    _, rest = read_varint(records, body + 1)
    delta = bytearray()
    write_varint(delta, record.timestamp_delta + by_ms)
    out = bytearray()
    write_varint(out, 1 + len(delta) + record.end - rest)
    out += records[body : body + 1] + delta + records[rest : record.end]
    return bytes(out)
