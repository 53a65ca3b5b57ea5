"""Partitions of records without a key (KIP-480); those of keys are in ``protocol/``."""

from __future__ import annotations

import random


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
