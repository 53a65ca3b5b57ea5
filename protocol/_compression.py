"""Compression of record batches with every codec, and decompression with limits on memory.

Why kafka-python's codecs are not used: docs/architecture.md, "Libraries". Gzip and zstd data are those of the
libraries. Around blocks of snappy and LZ4 there is:

======  =========  =====================================================================================
        type       field
======  =========  =====================================================================================
snappy  8 bytes    magic; without it the data are one block and nothing else (other clients than Java's)
        2 * int32  version 1, oldest version that can read it 1
        int32      length of a block, which follows; this and the block again and again
LZ4     4 bytes    magic
        2 * int8   flags, code of the largest block
        int64      only with a flag: size of the content, little-endian
        int8       checksum of the header
        uint32     length of a block, little-endian; the top bit says that it is not compressed
                   the block, and with a flag 4 bytes of checksum; after the last one 4 zero bytes
======  =========  =====================================================================================
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ._batch import BATCH_OVERHEAD, Codec, with_payload
from ._errors import BrokenOffBatchError, CorruptBatchError, GrownTooLargeError

#: Limits on decompression: bytes of a batch, and bytes for each compressed byte.
MAX_DECOMPRESSED_BYTES = 64 << 20
MAX_COMPRESSION_RATIO = 1000

#: Size in bytes up to which any batch may be decompressed, however small it is: producers fill batches up to
#: this size before they compress them.
_SMALLEST_LIMIT = 1 << 20
_FIRST_GUESS_RATIO = 8
_FIRST_GUESS_BYTES = 64 << 10
#: Largest buffer that a thread keeps for its next batches.
_MOST_SCRATCH_BYTES = 4 << 20

#: Java clients write snappy data as a header with this magic, then blocks with their lengths (xerial's
#: format).
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_XERIAL_VERSIONS = b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 << 10
_BLOCK_LENGTH = struct.Struct(">i")

#: Gzip data may consist of several members, one after the other.
_GZIP_MAGIC = b"\x1f\x8b"
#: Bytes of it that are inflated at once.
_GZIP_PIECE_BYTES = 4 << 10

#: Header of an LZ4 frame with independent blocks of at most 64 KiB, without checksums. Java clients cannot
#: read linked blocks.
_LZ4_FRAME_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 << 10
_LZ4_BLOCK_LENGTH = struct.Struct("<I")
_LZ4_NOT_COMPRESSED = 1 << 31
#: Size of an LZ4 frame's header without the optional content size: magic, flags, block size, checksum. The
#: bits below are its flags.
_LZ4_HEADER_BYTES = 7
_LZ4_BLOCK_CHECKSUMS, _LZ4_HAS_SIZE, _LZ4_CONTENT_CHECKSUM = 0x10, 0x08, 0x04

#: Lowest level at which the library uses its slow compressor, as Java does at every level but the default.
_LZ4_LEAST_SLOW_LEVEL = 3

#: Largest ratio of snappy: its longest copy makes 64 bytes of 2.
_SNAPPY_RATIO = 32

#: Kafka's defaults of compression.gzip.level, compression.lz4.level and compression.zstd.level (KIP-390). LZ4
#: uses its fast compressor at its default, and its slow one at all other levels.
GZIP_LEVEL, LZ4_LEVEL, ZSTD_LEVEL = -1, 9, 3
_LEVELS: Final = {Codec.GZIP: GZIP_LEVEL, Codec.LZ4: LZ4_LEVEL, Codec.ZSTD: ZSTD_LEVEL}

Bytes = bytes | memoryview


def decompressed_limit(size: int) -> int:
    """Return the most bytes that ``size`` compressed bytes may be decompressed to."""
    return min(MAX_DECOMPRESSED_BYTES, max(size * MAX_COMPRESSION_RATIO, _SMALLEST_LIMIT))


def compress(codec: int, records: bytes, level: int | None = None) -> bytes:
    """Compress the records of a batch with a codec of :class:`Codec`, in a format that Java clients can read.

    ``level`` is the codec's, as Kafka numbers it, by default Kafka's default; snappy has none. Raises
    ValueError for a codec that is not assigned.
    """
    if codec == Codec.NONE:
        return records
    if level is None:
        level = _LEVELS.get(Codec(codec), 0)
    if codec == Codec.GZIP:
        deflate = zlib.compressobj(level, wbits=31)
        return deflate.compress(records) + deflate.flush()
    import cramjam

    if codec == Codec.LZ4:
        return _lz4_frame(records, level)
    if codec == Codec.ZSTD:
        return bytes(cramjam.zstd.compress(records, level=level))
    if codec == Codec.SNAPPY:
        out = bytearray(_XERIAL_MAGIC + _XERIAL_VERSIONS)
        for start in range(0, len(records), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(records[start : start + _XERIAL_BLOCK_BYTES]))
            out += _BLOCK_LENGTH.pack(len(block)) + block
        return bytes(out)
    raise ValueError(f"codec {codec} is not assigned")


def compress_batch(batch: bytes | bytearray, codec: int) -> bytes | bytearray:
    """Return the batch compressed, or ``batch`` itself if that is not smaller."""
    payload = compress(codec, bytes(batch[BATCH_OVERHEAD:]))
    smaller = len(payload) < len(batch) - BATCH_OVERHEAD
    return with_payload(batch, codec, payload) if smaller else batch


def _lz4_frame(records: bytes, level: int) -> bytes:
    import cramjam

    if level != LZ4_LEVEL:
        packer = cramjam.lz4.Compressor(
            level=max(level, _LZ4_LEAST_SLOW_LEVEL), content_checksum=False, block_linked=False
        )
        packer.compress(records)
        return bytes(packer.finish())
    out = bytearray(_LZ4_FRAME_HEADER)
    for start in range(0, len(records), _LZ4_BLOCK_BYTES):
        plain = records[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            out += _LZ4_BLOCK_LENGTH.pack(len(block)) + block
        else:
            out += _LZ4_BLOCK_LENGTH.pack(len(plain) | _LZ4_NOT_COMPRESSED) + plain
    return bytes(out + _LZ4_BLOCK_LENGTH.pack(0))


def decompress(
    codec: int, payload: Bytes, limit: int | None = None, *, most_members: int | None = None
) -> Bytes:
    """Decompress the records of a batch, which follow its header; without a codec returns ``payload`` itself.

    ``codec`` is a number of :class:`Codec`; ``limit`` is in bytes, by default ``decompressed_limit``;
    ``most_members`` bounds the members of gzip data, by default nothing does. Raises GrownTooLargeError if
    more than ``limit`` bytes come out; CorruptBatchError for an unassigned codec, too many members and
    damaged data, as BrokenOffBatchError if a part of it (gzip) could be decompressed.
    """
    if codec == Codec.NONE:
        return payload
    if limit is None:
        limit = decompressed_limit(len(payload))
    try:
        return _decompress_with(codec, payload, limit, most_members)
    except _GrownError as error:
        raise GrownTooLargeError(f"{_codec_name(codec)} data cannot be decompressed: {error}") from error
    except _BrokenOffError as error:
        reason = f"{_codec_name(codec)} data cannot be decompressed: {error}"
        raise BrokenOffBatchError(reason, error.before) from error
    except (ValueError, struct.error) as error:
        raise CorruptBatchError(f"{_codec_name(codec)} data cannot be decompressed: {error}") from error


class _GrownError(ValueError):
    """More bytes come out than the limit allows."""


class _BrokenOffError(ValueError):
    """The data is damaged or cut short; ``before`` is what came out until then."""

    def __init__(self, reason: str, before: bytes) -> None:
        super().__init__(reason)
        self.before = before


def _codec_name(codec: int) -> str:
    return Codec(codec).name.lower() if codec in Codec.__members__.values() else f"codec {codec}"


def _decompress_with(codec: int, payload: Bytes, limit: int, most_members: int | None) -> Bytes:
    if codec == Codec.GZIP:
        return _gunzip_payload(payload, limit, most_members)
    if codec == Codec.SNAPPY:
        return _unsnap_payload(payload, limit)
    import cramjam

    if codec == Codec.LZ4:
        return _decompress_growing(cramjam.lz4.decompress_into, payload[: _lz4_frame_end(payload)], limit)
    if codec == Codec.ZSTD:
        if not payload:
            return b""  # no frame
        return _decompress_growing(cramjam.zstd.decompress_into, payload, limit)
    raise ValueError("the codec is not assigned")


def _lz4_frame_end(payload: Bytes) -> int:
    """Return where the first frame ends; Java clients read no further. If unknown, the payload's size."""
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


def _gunzip_payload(payload: Bytes, limit: int, most_members: int | None) -> bytes:
    out = bytearray()
    rest = memoryview(payload)
    members = 0
    while True:
        members += 1
        if most_members is not None and members > most_members:
            raise ValueError(f"more than {most_members} members, where producers write one")
        rest = _inflate_member(rest, out, limit)
        if bytes(rest[: len(_GZIP_MAGIC)]) != _GZIP_MAGIC:
            return bytes(out)  # Java clients ignore bytes after the last member


def _inflate_member(data: memoryview, out: bytearray, limit: int) -> memoryview:
    """Add the output of the first member to ``out``; return the bytes behind that member.

    It is read in pieces, since zlib copies what is behind the member: so much of it comes once a member.
    """
    inflate = zlib.decompressobj(wbits=31)
    for start in range(0, len(data), _GZIP_PIECE_BYTES):
        piece = data[start : start + _GZIP_PIECE_BYTES]
        before = inflate.copy()
        try:
            # one more than the limit: zlib takes 0 for "no limit"
            out += inflate.decompress(piece, limit - len(out) + 1)
        except zlib.error as error:
            _inflate_to_damage(before, piece, out, limit)
            raise _BrokenOffError(str(error), bytes(out)) from error
        if len(out) > limit:
            raise _GrownError(f"more than {limit} bytes come out")
        if inflate.eof:
            return data[start + len(piece) - len(inflate.unused_data) :]
    raise _BrokenOffError("it is cut short", bytes(out))


def _inflate_to_damage(inflate: zlib._Decompress, piece: memoryview, out: bytearray, limit: int) -> None:
    """Add to ``out`` what comes out of a damaged piece up to the damage."""
    with suppress(zlib.error):
        for at in range(len(piece)):
            out += inflate.decompress(piece[at : at + 1], limit)
            if len(out) > limit:
                break


def _unsnap_payload(payload: Bytes, limit: int) -> bytes:
    """Decompress blocks in xerial's format (written by Java clients), or one bare block (by others)."""
    if bytes(payload[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC or len(payload) < _XERIAL_HEADER_BYTES:
        return _unsnap_block(payload, limit)
    out = bytearray()
    position = _XERIAL_HEADER_BYTES
    while position < len(payload):
        if bytes(payload[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += _XERIAL_HEADER_BYTES  # another stream begins
            continue
        if position + _BLOCK_LENGTH.size > len(payload):
            break  # Java clients ignore bytes that are too few for a length
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
    """A thread's buffer to decompress into. It is reused: fresh memory costs more than decompressing."""

    room = bytearray()

    def of(self, size: int) -> bytearray:
        """Return a buffer of at least ``size`` bytes; one of up to _MOST_SCRATCH_BYTES is kept for the next
        call.
        """
        if size > _MOST_SCRATCH_BYTES:
            return bytearray(size)
        if len(self.room) < size:
            self.room = bytearray(size)
        return self.room


_scratch = _Scratch()


def _decompress_growing(
    decompress_into: Callable[[Bytes, memoryview], int], payload: Bytes, limit: int
) -> bytes:
    """Decompress into a buffer that grows until it is large enough: these formats need not state the size."""
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
