"""Compression of record batches, every codec, and decompression within limits of memory."""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress

from ._batch import BATCH_OVERHEAD, Codec, with_payload
from ._errors import BrokenOffBatchError, CorruptBatchError, GrownTooLargeError

#: Most bytes that a batch may grow to, and most bytes out of one byte in.
MAX_DECOMPRESSED_BYTES = 64 << 20
MAX_COMPRESSION_RATIO = 1000

#: Bytes that any batch may grow to: as much as producers put into one before they compress it.
_SMALLEST_LIMIT = 1 << 20
_FIRST_GUESS_RATIO = 8
_FIRST_GUESS_BYTES = 64 << 10
#: Most room that a thread keeps for the next batches.
_MOST_SCRATCH_BYTES = 4 << 20

#: Snappy data of Java clients comes in blocks, each after its length, after this header (xerial's format).
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_XERIAL_VERSIONS = b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 << 10
_BLOCK_LENGTH = struct.Struct(">i")

#: Gzip data may come in members, one after the other.
_GZIP_MAGIC = b"\x1f\x8b"

#: An LZ4 frame of independent blocks of at most 64 KiB without checksums; Java clients take no linked blocks.
_LZ4_FRAME_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 << 10
_LZ4_BLOCK_LENGTH = struct.Struct("<I")
_LZ4_NOT_COMPRESSED = 1 << 31
#: Magic, flags, block size, checksum; and what the flags say.
_LZ4_HEADER_BYTES = 7
_LZ4_BLOCK_CHECKSUMS, _LZ4_HAS_SIZE, _LZ4_CONTENT_CHECKSUM = 0x10, 0x08, 0x04

#: Snappy copies at most 64 bytes for 2.
_SNAPPY_RATIO = 32

#: As Kafka's default for compression.zstd.level.
_ZSTD_LEVEL = 3

Bytes = bytes | memoryview


def decompressed_limit(size: int) -> int:
    """Most bytes that may come out of ``size`` compressed ones."""
    return min(MAX_DECOMPRESSED_BYTES, max(size * MAX_COMPRESSION_RATIO, _SMALLEST_LIMIT))


def compress(codec: int, records: bytes) -> bytes:
    """The records of a batch, packed with a codec of :class:`Codec` as Java clients can read them."""
    if codec == Codec.NONE:
        return records
    if codec == Codec.GZIP:
        deflate = zlib.compressobj(wbits=31)
        return deflate.compress(records) + deflate.flush()
    import cramjam

    if codec == Codec.LZ4:
        return _lz4_frame(records)
    if codec == Codec.ZSTD:
        return bytes(cramjam.zstd.compress(records, level=_ZSTD_LEVEL))
    if codec == Codec.SNAPPY:
        out = bytearray(_XERIAL_MAGIC + _XERIAL_VERSIONS)
        for start in range(0, len(records), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(records[start : start + _XERIAL_BLOCK_BYTES]))
            out += _BLOCK_LENGTH.pack(len(block)) + block
        return bytes(out)
    raise ValueError(f"codec {codec} is not assigned")


def compress_batch(batch: bytes | bytearray, codec: int) -> bytes | bytearray:
    """The same batch compressed; as it was, where that does not make it smaller."""
    payload = compress(codec, bytes(batch[BATCH_OVERHEAD:]))
    smaller = len(payload) < len(batch) - BATCH_OVERHEAD
    return with_payload(batch, codec, payload) if smaller else batch


def _lz4_frame(records: bytes) -> bytes:
    import cramjam

    out = bytearray(_LZ4_FRAME_HEADER)
    for start in range(0, len(records), _LZ4_BLOCK_BYTES):
        plain = records[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            out += _LZ4_BLOCK_LENGTH.pack(len(block)) + block
        else:
            out += _LZ4_BLOCK_LENGTH.pack(len(plain) | _LZ4_NOT_COMPRESSED) + plain
    return bytes(out + _LZ4_BLOCK_LENGTH.pack(0))


def decompress(codec: int, payload: Bytes, limit: int | None = None) -> Bytes:
    """The records after a batch's header; ``payload`` itself where there is nothing to do.

    ``codec`` is a number of :class:`Codec`. Raises CorruptBatchError for one that is not assigned and for
    data that does not decompress, as BrokenOffBatchError where it comes out piece by piece, and
    GrownTooLargeError for more than ``limit`` bytes; without one, for more than MAX_DECOMPRESSED_BYTES or
    MAX_COMPRESSION_RATIO.
    """
    if codec == Codec.NONE:
        return payload
    if limit is None:
        limit = decompressed_limit(len(payload))
    try:
        return _decompress(codec, payload, limit)
    except _GrownError as error:
        raise GrownTooLargeError(f"{_name(codec)} data cannot be decompressed: {error}") from error
    except _BrokenOffError as error:
        reason = f"{_name(codec)} data cannot be decompressed: {error}"
        raise BrokenOffBatchError(reason, error.before) from error
    except (ValueError, struct.error) as error:
        raise CorruptBatchError(f"{_name(codec)} data cannot be decompressed: {error}") from error


class _GrownError(ValueError):
    """More comes out than allowed."""


class _BrokenOffError(ValueError):
    """Damage, or the end where more is due; ``before`` came out until then."""

    def __init__(self, reason: str, before: bytes) -> None:
        super().__init__(reason)
        self.before = before


def _name(codec: int) -> str:
    return Codec(codec).name.lower() if codec in Codec.__members__.values() else f"codec {codec}"


def _decompress(codec: int, payload: Bytes, limit: int) -> Bytes:
    if codec == Codec.GZIP:
        return _gunzip(payload, limit)
    if codec == Codec.SNAPPY:
        return _unsnap(payload, limit)
    import cramjam

    if codec == Codec.LZ4:
        return _grow(cramjam.lz4.decompress_into, payload[: _lz4_frame_end(payload)], limit)
    if codec == Codec.ZSTD:
        if not payload:
            return b""  # no frame at all
        return _grow(cramjam.zstd.decompress_into, payload, limit)
    raise ValueError("the codec is not assigned")


def _lz4_frame_end(payload: Bytes) -> int:
    """End of the first frame: Java clients read no further. The end of all if it is not found."""
    size = len(payload)
    flags = payload[4] if size > _LZ4_HEADER_BYTES else 0
    at = _LZ4_HEADER_BYTES + (8 if flags & _LZ4_HAS_SIZE else 0)
    checksum = 4 if flags & _LZ4_BLOCK_CHECKSUMS else 0
    while at + 4 <= size:
        (block,) = _LZ4_BLOCK_LENGTH.unpack_from(payload, at)
        at += 4
        if not block:
            return at + (4 if flags & _LZ4_CONTENT_CHECKSUM else 0)
        at += (block & ~_LZ4_NOT_COMPRESSED) + checksum
    return size


def _gunzip(payload: Bytes, limit: int) -> bytes:
    out = b""
    while True:
        inflate = zlib.decompressobj(wbits=31)
        try:
            # a limit of 0 would be none
            out += inflate.decompress(payload, limit - len(out) + 1)
        except zlib.error as error:
            raise _BrokenOffError(str(error), out + _inflated_before(payload, limit - len(out))) from error
        if len(out) > limit:
            raise _GrownError(f"more than {limit} bytes come out")
        if not inflate.eof:
            raise _BrokenOffError("it is cut short", out)
        payload = inflate.unused_data
        if not payload.startswith(_GZIP_MAGIC):
            return out  # Java clients ignore what is no member


def _inflated_before(payload: Bytes, limit: int) -> bytes:
    """The output of a damaged member up to the damage."""
    inflate = zlib.decompressobj(wbits=31)
    out = bytearray()
    with suppress(zlib.error):
        for at in range(len(payload)):
            out += inflate.decompress(payload[at : at + 1], limit)
            if len(out) > limit:
                break
    return bytes(out)


def _unsnap(payload: Bytes, limit: int) -> bytes:
    """Blocks as Java clients write them, or one bare block as others send it."""
    if bytes(payload[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC or len(payload) < _XERIAL_HEADER_BYTES:
        return _unsnap_block(payload, limit)
    out = bytearray()
    position = _XERIAL_HEADER_BYTES
    while position < len(payload):
        if bytes(payload[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += _XERIAL_HEADER_BYTES  # one stream after another
            continue
        if position + _BLOCK_LENGTH.size > len(payload):
            break  # Java clients ignore what is no length
        (size,) = _BLOCK_LENGTH.unpack_from(payload, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= size <= len(payload) - position:
            raise ValueError(f"a block of {size} bytes where {len(payload) - position} are left")
        out += _unsnap_block(payload[position : position + size], limit - len(out))
        position += size
    return bytes(out)


def _unsnap_block(block: Bytes, limit: int) -> bytes:
    import cramjam

    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > _SNAPPY_RATIO * len(block):
            raise ValueError(f"a block of {len(block)} bytes claims {size}")
        if size > limit:
            raise _GrownError(f"more than {limit} bytes in a block")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from error


class _Scratch(threading.local):
    """Room to decompress into, used again and again: fresh memory costs more than the work done in it."""

    room = bytearray()

    def of(self, size: int) -> bytearray:
        """Room for this many bytes at least, kept for the next time unless it is very much."""
        if size > _MOST_SCRATCH_BYTES:
            return bytearray(size)
        if len(self.room) < size:
            self.room = bytearray(size)
        return self.room


_scratch = _Scratch()


def _grow(decompress_into: Callable[[Bytes, memoryview], int], payload: Bytes, limit: int) -> bytes:
    """Decompress into room that grows until it is enough: these formats need not say their size."""
    import cramjam

    size = min(limit, max(len(payload) * _FIRST_GUESS_RATIO, _FIRST_GUESS_BYTES))
    while True:
        room = memoryview(_scratch.of(size))[:size]
        try:
            return bytes(room[: decompress_into(payload, room)])
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise ValueError(str(error)) from error
            if size >= limit:
                raise _GrownError(f"more than {limit} bytes come out of {len(payload)}") from error
        size = min(limit, size * _FIRST_GUESS_RATIO)
