"""Decompression of record batches, every codec, within limits: a few bytes must not become a full memory."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from ._batch import Codec
from ._errors import CorruptBatchError

#: Most bytes that a batch may grow to, and most bytes out of one byte in.
MAX_DECOMPRESSED_BYTES = 64 << 20
MAX_COMPRESSION_RATIO = 1000

_SMALLEST_LIMIT = 64 << 10
_FIRST_GUESS_RATIO = 8

#: Snappy data of Java clients comes in blocks, each behind its length, after this header (xerial's format).
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_BLOCK_LENGTH = struct.Struct(">i")

Bytes = bytes | memoryview


def decompressed_limit(size: int) -> int:
    """Most bytes that may come out of ``size`` compressed ones."""
    return min(MAX_DECOMPRESSED_BYTES, max(size * MAX_COMPRESSION_RATIO, _SMALLEST_LIMIT))


def decompress(codec: int, payload: Bytes) -> Bytes:
    """The records behind a batch's header; ``payload`` itself where there is nothing to do.

    ``codec`` is a number of :class:`Codec`. Raises CorruptBatchError for one that is not assigned, for data
    that does not decompress, and for more than MAX_DECOMPRESSED_BYTES or MAX_COMPRESSION_RATIO.
    """
    if codec == Codec.NONE:
        return payload
    limit = decompressed_limit(len(payload))
    try:
        return _decompress(codec, payload, limit)
    except (ValueError, struct.error, zlib.error) as error:
        raise CorruptBatchError(f"{_name(codec)} data cannot be decompressed: {error}") from error


def _name(codec: int) -> str:
    return Codec(codec).name.lower() if codec in Codec.__members__.values() else f"codec {codec}"


def _decompress(codec: int, payload: Bytes, limit: int) -> Bytes:
    if codec == Codec.GZIP:
        return _gunzip(payload, limit)
    if codec == Codec.SNAPPY:
        return _unsnap(payload, limit)
    import cramjam

    if codec == Codec.LZ4:
        return _grow(cramjam.lz4.decompress_into, payload, limit)
    if codec == Codec.ZSTD:
        return _grow(cramjam.zstd.decompress_into, payload, limit)
    raise ValueError("the codec is not assigned")


def _gunzip(payload: Bytes, limit: int) -> bytes:
    inflate = zlib.decompressobj(wbits=31)
    out = inflate.decompress(payload, limit)
    if not inflate.eof:
        raise ValueError(f"it is cut short, or more than {limit} bytes come out")
    return out


def _unsnap(payload: Bytes, limit: int) -> bytes:
    """Blocks as Java clients write them, or one bare block as others send it."""
    if bytes(payload[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _unsnap_block(payload, limit)
    out = bytearray()
    position = _XERIAL_HEADER_BYTES
    while position < len(payload):
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
        if cramjam.snappy.decompress_raw_len(block) > limit:
            raise ValueError(f"more than {limit} bytes in a block")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from error


def _grow(decompress_into: Callable[[Bytes, bytearray], int], payload: Bytes, limit: int) -> memoryview:
    """Decompress into a buffer that grows until it is enough: these formats need not say their size."""
    import cramjam

    size = min(limit, max(len(payload) * _FIRST_GUESS_RATIO, _SMALLEST_LIMIT))
    while True:
        buffer = bytearray(size)
        try:
            return memoryview(buffer)[: decompress_into(payload, buffer)].toreadonly()
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise ValueError(str(error)) from error
            if size >= limit:
                raise ValueError(f"more than {limit} bytes come out of {len(payload)}") from error
        size = min(limit, size * _FIRST_GUESS_RATIO)
