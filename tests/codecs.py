"""Every way in which clients compress their batches: codec number and how."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable

import cramjam


def xerial(data: bytes, block: int = 64) -> bytes:
    """Snappy in blocks of this many bytes, as Java clients frame it."""
    out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for start in range(0, len(data), block):
        packed = bytes(cramjam.snappy.compress_raw(data[start : start + block]))
        out += struct.pack(">i", len(packed)) + packed
    return out


CODECS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, gzip.compress),
    "snappy of Java clients": (2, xerial),
    "snappy, one bare block": (2, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "lz4": (3, lambda data: bytes(cramjam.lz4.compress(data))),
    "zstd": (4, lambda data: bytes(cramjam.zstd.compress(data))),
}
