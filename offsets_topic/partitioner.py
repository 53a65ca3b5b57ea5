"""The partition of ``__consumer_offsets`` that a group lives in.

Every broker and client computes the same, so it follows Java to the bit: ``String.hashCode`` over UTF-16 code
units, made positive, modulo the number of partitions. The number must therefore never change.
"""

from __future__ import annotations

import struct

#: From this many units on they are taken eight by eight.
_LONG = 512
_EIGHT = struct.Struct("<Q8x")
_31_TO_8 = 31**8
_INT32_SIGN = 0x80000000
_INT32_MASK = 0xFFFFFFFF


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``: a signed 32-bit number."""
    value = 0
    if len(text) >= _LONG:
        # a client that sends ids of 32 KB must not hold up the others for milliseconds
        for (eight,) in _EIGHT.iter_unpack(_by_eights(text.encode("utf-16-le", "surrogatepass"))):
            value = (_31_TO_8 * value + eight) & _INT32_MASK
    elif text.isascii():
        for unit in text.encode("ascii"):
            value = (31 * value + unit) & _INT32_MASK
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            value = (31 * value + (high << 8) + low) & _INT32_MASK
    return value - (value & _INT32_SIGN) * 2


def _by_eights(units: bytes) -> bytes:
    """Units of 16 bits folded by eights: each eight as one number, in the first half of its 16 bytes.

    All pairs of neighbours are folded at a time, then all pairs of pairs: two large numbers are multiplied
    and added, and nothing overflows from one pair into the next.
    """
    units = bytes(-len(units) % _EIGHT.size) + units  # zeros in front change nothing
    packed, size = int.from_bytes(units, "little"), len(units)
    for width in (2, 4, 8):
        first = int.from_bytes((b"\xff" * width + bytes(width)) * (size // (2 * width)), "little")
        packed = (packed & first) * 31 ** (width // 2) + (packed >> 8 * width & first)
    return packed.to_bytes(size, "little")


def partition_for(group_id: str, partition_count: int) -> int:
    """The partition, ``0..partition_count - 1``, that holds a group's records.

    The smallest int32 has no positive counterpart and counts as 0, as it does in Kafka.
    """
    value = java_hash(group_id)
    return (0 if value == -_INT32_SIGN else abs(value)) % partition_count
