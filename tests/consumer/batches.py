"""Record batches for tests, compressed if wanted."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import cramjam
from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder

from kohort.protocol import BATCH_OVERHEAD, Codec, build_batch

_LENGTH_AT, _CRC_AT, _ATTRIBUTES_AT = 8, 17, 21


def batch(values: Sequence[bytes | None], base_offset: int = 0, **settings: object) -> bytes:
    """One batch of these values, without keys and headers."""
    rows = [(None, value, ()) for value in values]
    return bytes(build_batch(rows, timestamp_ms=1_000, base_offset=base_offset, **settings))  # type: ignore[arg-type]


def written(rows: Sequence[tuple[int, int, bytes | None, bytes | None]], base_offset: int = 0) -> bytes:
    """One batch by kafka-python of (offset delta, timestamp, key, value)."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 2**30)
    for delta, timestamp_ms, key, value in rows:
        assert builder.append(delta, timestamp_ms, key, value, []) is not None
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, base_offset)
    return bytes(data)


def marker(base_offset: int, producer_id: int, *, commit: bool) -> bytes:
    """A control batch that ends a transaction."""
    key = struct.pack(">hh", 0, 1 if commit else 0)
    rows = [(key, b"\x00\x00\x00\x00\x00\x00", ())]
    return bytes(
        build_batch(
            rows,
            timestamp_ms=1_000,
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
    )


def compressed(plain: bytes, codec: Codec, *, xerial: bool = False) -> bytes:
    """The same batch with its records compressed."""
    body = plain[BATCH_OVERHEAD:]
    if codec is Codec.GZIP:
        packed = bytes(cramjam.gzip.compress(body))
    elif codec is Codec.LZ4:
        packed = bytes(cramjam.lz4.compress(body))
    elif codec is Codec.ZSTD:
        packed = bytes(cramjam.zstd.compress(body))
    elif xerial:
        packed = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
        for at in range(0, len(body), 100):
            block = bytes(cramjam.snappy.compress_raw(body[at : at + 100]))
            packed += struct.pack(">i", len(block)) + block
    else:
        packed = bytes(cramjam.snappy.compress_raw(body))
    out = bytearray(plain[:BATCH_OVERHEAD] + packed)
    out[_ATTRIBUTES_AT + 1] |= codec
    struct.pack_into(">i", out, _LENGTH_AT, len(out) - _LENGTH_AT - 4)
    struct.pack_into(">I", out, _CRC_AT, crc32c(bytes(out[_ATTRIBUTES_AT:])))
    return bytes(out)
