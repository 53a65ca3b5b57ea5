"""Which partition of ``__consumer_offsets`` a group lives in.

Every broker and client computes it alike, so it follows Java to the bit: ``String.hashCode`` over UTF-16 code
units, made positive, modulo the number of partitions. The number must therefore never change.
"""

from __future__ import annotations

_INT32_SIGN = 0x80000000
_INT32_MASK = 0xFFFFFFFF


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``: a signed 32-bit number."""
    value = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (31 * value + unit) & _INT32_MASK
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            value = (31 * value + (high << 8) + low) & _INT32_MASK
    return value - (value & _INT32_SIGN) * 2


def partition_for(group_id: str, partition_count: int) -> int:
    """The partition, ``0..partition_count - 1``, that holds a group's records.

    The smallest int32 has no positive counterpart and counts as 0, as it does in Kafka.
    """
    value = java_hash(group_id)
    return (0 if value == -_INT32_SIGN else abs(value)) % partition_count
