"""Records of a batch, without their headers: what a look-up by time and the offsets topic need.

Uncompressed batches are walked where they are; the others are decompressed first, within a limit.
"""

from __future__ import annotations

from ..protocol import BATCH_OVERHEAD, BatchHeader, CorruptBatchError, decompress

#: Offset, timestamp in milliseconds, key, value; None is null.
Record = tuple[int, int, bytes | None, bytes | None]


def decode_records(data: bytes | bytearray, header: BatchHeader, position: int = 0) -> list[Record]:
    """The records of the batch at ``position``. Its checksum is not looked at.

    Raises CorruptBatchError, with the batch's position, if the records do not fill the batch as they claim,
    are not as many as the header says, or cannot be decompressed within the limits.
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
    base_offset, base_timestamp = header.base_offset, header.base_timestamp_ms
    if header.log_append_time:
        base_timestamp = header.max_timestamp_ms
    follows_delta = not header.log_append_time
    position, size = 0, len(data)
    while position < size:
        delta, later_ms, key, value, position = record_at(data, position)
        timestamp = base_timestamp + later_ms if follows_delta else base_timestamp
        records.append((base_offset + delta, timestamp, key, value))
    return records


def record_at(data: bytes, position: int) -> tuple[int, int, bytes | None, bytes | None, int]:
    """One record of an uncompressed batch: the difference of its offset and of its time in milliseconds to
    the batch's, its key, its value, and the position behind it.

    Raises IndexError and ValueError where there is no record.
    """
    length, position = _varint(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise ValueError(f"a record of {length} bytes where {len(data) - position} are left")
    position += 1  # attributes
    if data[position]:
        later_ms, position = _varint(data, position)
    else:
        later_ms, position = 0, position + 1
    delta, position = _varint(data, position)
    key, position = _nullable(data, position)
    value, position = _nullable(data, position)
    if position >= end:
        raise ValueError("a record shorter than its fields")
    return delta, later_ms, key, value, end


def _varint(data: bytes, position: int) -> tuple[int, int]:
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    value = byte & 0x7F
    shift = 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise ValueError("a varint of more than ten bytes")


def _nullable(data: bytes, position: int) -> tuple[bytes | None, int]:
    length = data[position]
    if length >= 0x80:
        length, position = _varint(data, position)
    else:
        position += 1
        length = (length >> 1) ^ -(length & 1)
    if length < 0:
        return None, position
    end = position + length
    return data[position:end], end
