"""Producer ids (KIP-98): no id is given out twice, not even after a crash.

Ids are taken from a block, whose end is durable before its first id is given out, so a restart begins after
it. Apache Kafka's blocks have the same size.
"""

from __future__ import annotations

from contextlib import suppress

from ._store import ConflictError, Create, MetadataStore, Put
from .layout import PRODUCER_IDS

BLOCK_SIZE = 1_000


class ProducerIds:
    """Gives out ids from blocks that are reserved in a metadata store."""

    __slots__ = ("_end", "_next", "_store")

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._next = self._end = 0

    def __repr__(self) -> str:
        return f"ProducerIds({self._next}..{self._end})"

    async def take(self) -> int:
        """Return an id that was never given out before. Raises OSError if no block can be reserved."""
        while self._next == self._end:
            # another broker that takes a block meanwhile gets another one
            with suppress(ConflictError):
                await self._reserve()
        taken = self._next
        self._next += 1
        return taken

    async def begin_behind(self, newest: int) -> None:
        """Skip ids up to ``newest``, which another broker gave out. Raises OSError."""
        while newest >= self._end:
            with suppress(ConflictError):
                await self._reserve((newest // BLOCK_SIZE + 1) * BLOCK_SIZE)
        self._next = max(self._next, newest + 1)

    async def _reserve(self, least: int = 0) -> None:
        entry = self._store.get(PRODUCER_IDS)
        first = max(least, 0 if entry is None else int(entry.value))
        end = first + BLOCK_SIZE
        await self._store.commit(
            Create(PRODUCER_IDS, end) if entry is None else Put(PRODUCER_IDS, end, entry.version)
        )
        self._next, self._end = first, end
