"""Partition of a key as Java's producers choose it: by a Murmur2 hash."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

_SEED, _M, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF
_WORD = Struct("<I")


@lru_cache(maxsize=4_096)
def murmur2(key: bytes) -> int:
    """Murmur2 hash as an unsigned number, computed as in Java's producers."""
    size = len(key)
    whole = size & ~3
    found = _SEED ^ size
    for (word,) in _WORD.iter_unpack(key[:whole]):
        word = word * _M & _MASK
        found = (found * _M ^ (word ^ word >> 24) * _M) & _MASK
    if rest := key[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * _M & _MASK
    found = (found ^ found >> 13) * _M & _MASK
    return found ^ found >> 15


def partition_of_key(key: bytes, count: int) -> int:
    """Return the partition, from 0 to ``count - 1``, to which Java's producers send records of this key."""
    return (murmur2(key) & 0x7FFFFFFF) % count
