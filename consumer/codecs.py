"""Decompression of record batches, all codecs through cramjam."""

from __future__ import annotations

import struct
from typing import Any

from ..protocol import Codec, CorruptBatchError

#: Snappy data of the Java client comes in blocks, each behind its length, after this header (xerial format).
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_BLOCK_LENGTH = struct.Struct(">i")


def decompress(codec: int, payload: bytes | memoryview) -> bytes | memoryview:
    """The records behind a batch's header. Raises CorruptBatchError; codec numbers are ``protocol.Codec``."""
    if codec == Codec.NONE:
        return payload
    import cramjam

    try:
        match codec:
            case Codec.GZIP:
                return bytes(cramjam.gzip.decompress(payload))
            case Codec.SNAPPY:
                return _unsnappy(payload, cramjam.snappy.decompress_raw)
            case Codec.LZ4:
                return bytes(cramjam.lz4.decompress(payload))
            case Codec.ZSTD:
                return bytes(cramjam.zstd.decompress(payload))
    except (cramjam.DecompressionError, struct.error) as error:
        name = Codec(codec).name.lower()
        raise CorruptBatchError(f"{name} data cannot be decompressed: {error}") from error
    raise CorruptBatchError(f"codec {codec} is not assigned")


def _unsnappy(payload: bytes | memoryview, decode: Any) -> bytes:
    if bytes(payload[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return bytes(decode(payload))
    blocks = bytearray()
    position = _XERIAL_HEADER_BYTES
    while position < len(payload):
        (size,) = _BLOCK_LENGTH.unpack_from(payload, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= size <= len(payload) - position:
            raise CorruptBatchError(f"snappy block of {size} bytes, {len(payload) - position} are left")
        blocks += decode(payload[position : position + size])
        position += size
    return bytes(blocks)
