"""Records of a batch, without their headers: what a look-up by time and the offsets topic need.

Uncompressed batches are walked where they are; the others are decompressed first, within a limit.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from ..protocol import BATCH_OVERHEAD, BatchHeader, Codec, CorruptBatchError

#: Offset, timestamp in milliseconds, key, value; None is null.
Record = tuple[int, int, bytes | None, bytes | None]

#: Most bytes that a batch may grow to, and most bytes out of one byte in.
MAX_DECOMPRESSED_BYTES = 64 << 20
MAX_COMPRESSION_RATIO = 1000

_SMALLEST_LIMIT = 64 << 10
_FIRST_GUESS_RATIO = 8
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16


def decode_records(data: bytes | bytearray, header: BatchHeader, position: int = 0) -> list[Record]:
    """The records of the batch at ``position``. Its checksum is not looked at.

    Raises CorruptBatchError, with the batch's position, if the records do not fill the batch as they claim,
    are not as many as the header says, or cannot be decompressed within MAX_DECOMPRESSED_BYTES.
    """
    payload = data[position + BATCH_OVERHEAD : position + header.size]
    try:
        if header.codec != Codec.NONE:
            payload = _decompress(header.codec, bytes(payload))
        records = _walk(bytes(payload), header)
    except (IndexError, ValueError, zlib.error) as error:
        raise CorruptBatchError(f"records cannot be read: {error}", position) from error
    if len(records) != header.record_count:
        raise CorruptBatchError(f"{len(records)} records, the header says {header.record_count}", position)
    return records


def _walk(data: bytes, header: BatchHeader) -> list[Record]:
    """This is where a load of the offsets topic spends its time: varints of one byte are read in place."""
    records: list[Record] = []
    base_offset, base_timestamp = header.base_offset, header.base_timestamp_ms
    if header.log_append_time:
        base_timestamp = header.max_timestamp_ms
    follows_delta = not header.log_append_time
    position, size = 0, len(data)
    while position < size:
        length, position = _varint(data, position)
        end = position + length
        if length < 0 or end > size:
            raise ValueError(f"a record of {length} bytes where {size - position} are left")
        timestamp = base_timestamp
        position += 1  # attributes
        if data[position]:
            delta, position = _varint(data, position)
            if follows_delta:
                timestamp += delta
        else:
            position += 1
        delta, position = _varint(data, position)
        key, position = _nullable(data, position)
        value, position = _nullable(data, position)
        if position >= end:
            raise ValueError("a record shorter than its fields")
        records.append((base_offset + delta, timestamp, key, value))
        position = end
    return records


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


def _decompress(codec: int, data: bytes) -> bytes:
    limit = min(MAX_DECOMPRESSED_BYTES, max(len(data) * MAX_COMPRESSION_RATIO, _SMALLEST_LIMIT))
    if codec == Codec.GZIP:
        return _gunzip(data, limit)
    import cramjam

    if codec == Codec.SNAPPY:
        return _unsnap(data, limit)
    if codec == Codec.LZ4:
        return _grow(cramjam.lz4.decompress_into, data, limit)
    if codec == Codec.ZSTD:
        return _grow(cramjam.zstd.decompress_into, data, limit)
    raise ValueError(f"codec {codec} is not assigned")


def _gunzip(data: bytes, limit: int) -> bytes:
    inflate = zlib.decompressobj(wbits=31)
    out = inflate.decompress(data, limit)
    if not inflate.eof:
        raise ValueError(f"gzip data cut short, or more than {limit} bytes in it")
    return out


def _unsnap(data: bytes, limit: int) -> bytes:
    """Snappy as Java clients frame it, length and block repeated, or one bare block as others send it."""
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnap_block(data, limit)
    out = bytearray()
    position = _XERIAL_HEADER
    while position < len(data):
        end = position + 4 + int.from_bytes(data[position : position + 4], "big")
        if end > len(data):
            raise ValueError("a snappy block is cut short")
        out += _unsnap_block(data[position + 4 : end], limit - len(out))
        position = end
    return bytes(out)


def _unsnap_block(block: bytes, limit: int) -> bytes:
    import cramjam

    try:
        if cramjam.snappy.decompress_raw_len(block) > limit:
            raise ValueError(f"more than {limit} bytes in a snappy block")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from error


def _grow(decompress_into: Callable[[bytes, bytearray], int], data: bytes, limit: int) -> bytes:
    """Decompress into a buffer that grows until it is enough: these formats need not say their size."""
    import cramjam

    size = min(limit, max(len(data) * _FIRST_GUESS_RATIO, _SMALLEST_LIMIT))
    while True:
        buffer = bytearray(size)
        try:
            return bytes(memoryview(buffer)[: decompress_into(data, buffer)])
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise ValueError(str(error)) from error
            if size >= limit:
                raise ValueError(f"more than {limit} bytes come out of {len(data)}") from error
        size = min(limit, size * _FIRST_GUESS_RATIO)
