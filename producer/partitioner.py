"""Partition of a record: by its key, as in Java's producers, or the topic's current one (KIP-480)."""

from __future__ import annotations

import random
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


class Sticky:
    """Partitions for records without a key: one until a batch is full, then another at random (KIP-480)."""

    __slots__ = ("_batch_size", "_bytes", "_rng", "current")

    def __init__(self, batch_size: int, rng: random.Random) -> None:
        self._batch_size = batch_size
        self._rng = rng
        #: The current partition; -1 before the first record.
        self.current = -1
        self._bytes = 0

    def partition(self, size: int, choices: list[int]) -> int:
        """Return the partition of the next record, which has ``size`` bytes.

        ``choices``: the partitions with a leader, or all if none has one.
        """
        if self.current < 0 or self._bytes + size > self._batch_size:
            others = [number for number in choices if number != self.current] or choices
            self.current, self._bytes = self._rng.choice(others), 0
        self._bytes += size
        return self.current
