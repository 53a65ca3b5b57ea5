"""Which transactional data a compaction may drop, and which markers have nothing left to mark."""

from __future__ import annotations

from collections.abc import Iterable

from ._txnindex import AbortedTransaction


class TransactionState:
    """Follows transactions through one walk over the log, batch by batch, from its start.

    Data of an aborted transaction goes. A marker may go once a walk meets no batch of its transaction: then
    no reader needs it any more.
    """

    __slots__ = ("_aborting", "_committing", "_pending", "_seen", "kept")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._pending = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._aborting: dict[int, AbortedTransaction] = {}
        self._seen: set[int] = set()
        self._committing: set[int] = set()
        #: Aborted transactions whose marker was met and stays, for the transaction index; the walker takes
        #: them out.
        self.kept: list[AbortedTransaction] = []

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Whether the transactional data batch that ends at ``last_offset`` belongs to an aborted one."""
        self._begin_up_to(last_offset)
        transaction = self._aborting.get(producer_id)
        if transaction is not None and last_offset < transaction.last_offset:
            self._seen.add(producer_id)
            return True
        self._committing.add(producer_id)
        return False

    def is_spent(self, producer_id: int, last_offset: int, *, committed: bool) -> bool:
        """Whether the marker at ``last_offset`` ends a transaction of which the walk met no batch."""
        self._begin_up_to(last_offset)
        if committed:
            spent = producer_id not in self._committing
            self._committing.discard(producer_id)
            return spent
        transaction = self._aborting.pop(producer_id, None)
        spent = producer_id not in self._seen
        self._seen.discard(producer_id)
        if transaction is not None and not spent:
            self.kept.append(transaction)
        return spent

    def _begin_up_to(self, offset: int) -> None:
        while self._pending and self._pending[-1].first_offset <= offset:
            transaction = self._pending.pop()
            # a walk that began behind the last one's marker has not met it
            self._aborting[transaction.producer_id] = transaction
