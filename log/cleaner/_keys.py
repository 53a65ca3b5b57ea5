"""The first pass of a compaction: the newest offset of each key, and aborted transactions."""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol import (
    BATCH_CODEC,
    BATCH_CONTROL,
    BATCH_CRC_END,
    BATCH_HEADER,
    BATCH_LENGTH_END,
    BATCH_OVERHEAD,
    BATCH_TRANSACTIONAL,
    CorruptBatchError,
    crc32c_function,
)
from ...protocol.records import locate_batch
from .._indexes import AbortedTransaction
from ._batch import NO_OFFSET, plain_records


class TransactionWalk:
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
        #: Aborted transactions whose marker was met and stays, for the transaction index; the filter takes
        #: them out.
        self.kept: list[AbortedTransaction] = []

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Return whether the transactional batch that ends at ``last_offset`` was aborted."""
        self._begin_up_to(last_offset)
        transaction = self._aborting.get(producer_id)
        if transaction is not None and last_offset < transaction.last_offset:
            self._seen.add(producer_id)
            return True
        self._committing.add(producer_id)
        return False

    def is_spent(self, producer_id: int, last_offset: int, *, committed: bool) -> bool:
        """Return whether the marker at ``last_offset`` ends a transaction of which the walk met no batch."""
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
            # a walk that began after the last one's marker has not met it
            self._aborting[transaction.producer_id] = transaction


_MAGIC = 2

#: Bytes that a key takes beside those of its record: two objects, and its share of a dict that is being
#: enlarged.
KEY_OVERHEAD_BYTES = 165


class KeyMap:
    """The newest offset of each key in the dirty part of a log, filled batch by batch up to ``memory_bytes``.

    ``first_offset`` is where the dirty part begins. Records from ``next_offset`` on are not in the map and
    take another compaction. Records of aborted transactions and control batches are left out.
    """

    __slots__ = (
        "_crc32c",
        "_due",
        "_key_bytes",
        "_memory_bytes",
        "_transactions",
        "first_offset",
        "full",
        "newest",
        "next_offset",
        "odd",
        "records",
        "tombstones",
    )

    def __init__(self, first_offset: int, memory_bytes: int, transactions: TransactionWalk) -> None:
        self.first_offset = first_offset
        self.next_offset = first_offset
        self.newest: dict[bytes, int] = {}
        #: Offsets of records without a value, of superseded ones too.
        self.tombstones: set[int] = set()
        #: Base offsets of batches with a record whose offset delta lies outside of it. Clients may send
        #: such: where they claim to be is another record's place, so they count for no key, and stay.
        self.odd: set[int] = set()
        #: Number of records read.
        self.records = 0
        #: No room for another batch.
        self.full = False
        self._crc32c = crc32c_function()
        # base offsets are outside of the checksum
        self._due = 0
        self._memory_bytes = memory_bytes
        self._key_bytes = 0
        self._transactions = transactions

    def __repr__(self) -> str:
        return f"KeyMap({len(self.newest)} keys of {self.first_offset}..{self.next_offset})"

    def add(self, data: bytes, end_offset: int = NO_OFFSET) -> int:
        """Check and add the whole batches at the front of ``data`` until the map is ``full``; return their
        size in bytes.

        Offsets must rise and stay below ``end_offset``. Raises CorruptBatchError with the position of a batch
        that is damaged.
        """
        position, size = 0, len(data)
        with memoryview(data) as view:
            while position + BATCH_OVERHEAD <= size:
                fields = BATCH_HEADER.unpack_from(data, position)
                base, length, _, magic, crc, attributes, delta, _, _, producer_id, _, _, count = fields
                end: int = position + BATCH_LENGTH_END + length
                if magic != _MAGIC or length < BATCH_OVERHEAD - BATCH_LENGTH_END or delta < 0:
                    raise CorruptBatchError(f"no batch: magic {magic}, length {length}", position)
                if end > size:
                    break
                if base < self._due or base + delta >= end_offset:
                    raise CorruptBatchError(f"offset {base} where {self._due} is due", position)
                self._due = base + delta + 1
                if base + delta >= self.first_offset:
                    if self._crc32c(view[position + BATCH_CRC_END : end]) != crc:
                        raise CorruptBatchError("the checksum is wrong", position)
                    if count and (
                        not attributes & (BATCH_TRANSACTIONAL | BATCH_CONTROL)
                        or self._is_counted(attributes, producer_id, base + delta)
                    ):
                        try:
                            if attributes & BATCH_CODEC:
                                records = plain_records(data, position, end, attributes)
                                self._take_records(records, 0, len(records), base, delta, count)
                            else:
                                self._take_records(data, position + BATCH_OVERHEAD, end, base, delta, count)
                        except CorruptBatchError as error:
                            raise CorruptBatchError(f"records cannot be read: {error}", position) from error
                    self.next_offset = base + delta + 1
                    if self.full:
                        return end
                position = end
        return position

    def _is_counted(self, attributes: int, producer_id: int, last_offset: int) -> bool:
        if attributes & BATCH_CONTROL:
            return False
        return not (
            attributes & BATCH_TRANSACTIONAL and self._transactions.is_aborted(producer_id, last_offset)
        )

    def _take_records(
        self, records: bytes, start: int, end: int, base_offset: int, last_delta: int, count: int
    ) -> None:
        """Add the records of one batch. Compaction spends most of its time here."""
        newest = self.newest
        known = len(newest)
        located = locate_batch(records, start, end - start, count)
        for _, delta, key_at, key_size, _, value_size, _, _ in located:
            if key_size < 0:
                continue
            if not 0 <= delta <= last_delta:
                self.odd.add(base_offset)
                continue
            newest[records[key_at : key_at + key_size]] = base_offset + delta
            if value_size < 0:
                self.tombstones.add(base_offset + delta)
        self.records += count
        if len(newest) != known:
            self._key_bytes += (len(newest) - known) * ((end - start) // count + KEY_OVERHEAD_BYTES)
            self.full = self._key_bytes >= self._memory_bytes
