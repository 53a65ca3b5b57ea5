"""Producer ids (KIP-98): no id is given out twice, not even after a crash.

Ids are taken from a block, whose end is durable before its first id is given out, so a restart begins after
it. Apache Kafka's blocks have the same size.

The entry with the end may be lost, or restored from an older copy. An id that is given out again loses
records: a leader takes those of the second producer for those of the first, sent again. So brokers remember
the end.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from ._store import ConflictError, Create, MetadataStore, Put
from .layout import PRODUCER_IDS

#: Ids that one write to the store reserves, as in Apache Kafka: a producer seldom waits for a write.
BLOCK_SIZE = 1_000


class ProducerIds:
    """Gives out ids from blocks that are reserved in a metadata store. ``known`` is the end of the last block
    that earlier processes knew of; ``note`` is called with each later one that is reserved, by any broker.
    """

    __slots__ = ("_end", "_known", "_next", "_note", "_store")

    def __init__(
        self, store: MetadataStore, known: int = 0, note: Callable[[int], None] = lambda _: None
    ) -> None:
        self._store = store
        self._known = known
        self._note = note
        self._next = self._end = 0
        self._entry_changed(PRODUCER_IDS)

    def __repr__(self) -> str:
        return f"ProducerIds({self._next}..{self._end})"

    async def take(self) -> int:
        """Return an id that was never given out before. Raises OSError if no block can be reserved."""
        while self._next == self._end:
            # another broker that takes a block meanwhile gets another one
            with suppress(ConflictError):
                await self._reserve_block()
        taken = self._next
        self._next += 1
        return taken

    async def begin_behind(self, newest: int) -> None:
        """Skip ids up to ``newest``, which another broker gave out. Raises OSError.

        The first block begins behind those that are known. So nothing is written for an id of these: a broker
        starts on a full disk.
        """
        while newest >= (self._end or self._known):
            with suppress(ConflictError):
                await self._reserve_block((newest // BLOCK_SIZE + 1) * BLOCK_SIZE)
        if newest < self._end:
            self._next = max(self._next, newest + 1)

    async def _reserve_block(self, least: int = 0) -> None:
        entry = self._store.get(PRODUCER_IDS)
        first = max(least, self._known, 0 if entry is None else int(entry.value))
        end = first + BLOCK_SIZE
        await self._store.commit(
            Create(PRODUCER_IDS, end) if entry is None else Put(PRODUCER_IDS, end, entry.version)
        )
        self._next, self._end = first, end

    def _entry_changed(self, path: str) -> None:
        entry = self._store.get(path)
        self._store.watch(path, self._entry_changed)
        if entry is not None and int(entry.value) > self._known:
            self._known = int(entry.value)
            self._note(self._known)
