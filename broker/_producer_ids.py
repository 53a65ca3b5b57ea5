"""Producer ids (KIP-98): never given twice, not even after a crash.

Ids are taken from a block; the block's end is on disk before its first id is given away, so a restart begins
behind it. Apache Kafka gives them out in blocks of the same size.
"""

from __future__ import annotations

from collections.abc import Callable

BLOCK_SIZE = 1_000


class ProducerIds:
    """Gives ids; ``reserve(end)`` makes the end of a block durable and is called before the block is used."""

    __slots__ = ("_end", "_next", "_reserve")

    def __init__(self, first: int, reserve: Callable[[int], None]) -> None:
        self._next = self._end = first
        self._reserve = reserve

    def take(self) -> int:
        if self._next == self._end:
            self._reserve(self._end + BLOCK_SIZE)
            self._end += BLOCK_SIZE
        taken = self._next
        self._next += 1
        return taken
