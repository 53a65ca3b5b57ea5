"""The partition of ``__consumer_offsets`` that holds a group.

All brokers must compute the same partition, so this does exactly what Kafka does in Java:
``String.hashCode``, over UTF-16 code units, made positive, modulo the number of partitions. That number must
therefore never change.
"""

from __future__ import annotations

import struct

#: Strings of this many characters or more are hashed in steps of eight code units.
_LONG = 512
_EIGHT = struct.Struct("<Q8x")
_31_TO_8 = 31**8
_INT32_SIGN = 0x80000000
_INT32_MASK = 0xFFFFFFFF


def java_hash(text: str) -> int:
    """Return what Java's ``String.hashCode`` returns: a signed 32-bit number."""
    value = 0
    if len(text) >= _LONG:
        # hashing an id of 32 KB code unit by code unit would delay other clients by milliseconds
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
    """Combine each eight 16-bit units into one number, which is in the first half of their 16 bytes.

    First all pairs of units are combined at once, then all pairs of pairs, then these: each step multiplies
    one large number and adds another, and no pair overflows into the next.
    """
    units = bytes(-len(units) % _EIGHT.size) + units  # leading zeros do not change the hash
    packed, size = int.from_bytes(units, "little"), len(units)
    for width in (2, 4, 8):
        first = int.from_bytes((b"\xff" * width + bytes(width)) * (size // (2 * width)), "little")
        packed = (packed & first) * 31 ** (width // 2) + (packed >> 8 * width & first)
    return packed.to_bytes(size, "little")


def partition_for(group_id: str, partition_count: int) -> int:
    """Return the partition, ``0..partition_count - 1``, that holds a group's records.

    The smallest int32 has no positive counterpart and counts as 0, as in Kafka (``Utils.abs``).
    """
    value = java_hash(group_id)
    return (0 if value == -_INT32_SIGN else abs(value)) % partition_count
