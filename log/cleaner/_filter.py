"""The filter of a compaction: it takes whole batches and returns those that stay. It uses no files.

In the dirty part the key map knows the live offsets, so the filter keeps or drops a batch by counting those
in its range, without reading its records. It reads records only if a batch is mixed, has a tombstone that
needs a delete horizon, or lies in the clean part.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from ...protocol import (
    BATCH_CONTROL,
    BATCH_DELETE_HORIZON,
    BATCH_HEADER,
    BATCH_LENGTH_END,
    BATCH_OVERHEAD,
    BATCH_TRANSACTIONAL,
    BatchHeader,
    CorruptBatchError,
    parse_batch_header,
    verify_batch,
)
from ...protocol.named_tuples import NamedTuple
from .._indexes import AbortedTransaction
from .._records import parse_marker
from ._batch import NO_OFFSET, RawRecord, empty_batch, plain_records, raw_records, rebuild_batch
from ._keys import KeyMap, TransactionWalk

_NEVER_MS = 2**63 - 1


class LastBatch(NamedTuple):
    """The batch of an active producer that must stay: the batch that ends at ``last_offset`` has its last
    sequence number. -1: it wrote markers alone, and those of ``epoch`` hold its epoch.
    """

    last_offset: int
    epoch: int


class Filtered(NamedTuple):
    """Batches that stay, one after the other, their headers, and how many bytes were filtered.

    ``last`` is the last filtered batch, emptied of its records, if it does not stay; else empty.
    """

    data: bytes
    headers: list[BatchHeader]
    consumed: int
    last: bytes


@dataclass(slots=True, eq=False)
class FilterRules:
    """The rules of one compaction. ``producers`` are the active ones, by id."""

    now_ms: int
    delete_retention_ms: int
    producers: Mapping[int, LastBatch]


class BatchFilter:
    """One walk over a log from its first batch on, in the order of offsets."""

    __slots__ = ("_at", "_due", "_keys", "_live", "_rules", "_tombs", "_transactions")

    def __init__(self, keys: KeyMap, transactions: TransactionWalk, rules: FilterRules) -> None:
        self._keys = keys
        self._transactions = transactions
        self._rules = rules
        self._live = sorted(keys.newest.values())
        self._live.append(NO_OFFSET)
        self._tombs = keys.tombstones.intersection(self._live)
        self._at = 0
        self._due = 0

    def take(self, data: bytes, end_offset: int = NO_OFFSET) -> Filtered:
        """Filter the whole batches at the front of ``data``, whose offsets rise and stay below
        ``end_offset``.

        Raises CorruptBatchError with the position of a batch that is damaged.
        """
        out: list[bytes] = []
        headers: list[BatchHeader] = []
        position, size, copied, last = 0, len(data), 0, -1
        while position + BATCH_OVERHEAD <= size:
            fields = BATCH_HEADER.unpack_from(data, position)
            end = position + BATCH_LENGTH_END + fields[1]
            if end < position + BATCH_OVERHEAD:
                raise CorruptBatchError(f"a batch of {end - position} bytes", position)
            if end > size:
                break
            if fields[0] < self._due or fields[0] + fields[6] >= end_offset:
                raise CorruptBatchError(f"offset {fields[0]} where {self._due} is due", position)
            self._due = fields[0] + fields[6] + 1
            stays: bytes | bool | None = self._by_count(fields)
            if stays is None:
                header = parse_batch_header(data, position)
                stays = self._by_records(data, position, header)
            if stays is False and self._holds_place(fields):
                header = parse_batch_header(data, position)
                stays = empty_batch(header) if header.record_count else True
            last = position if stays is False else -1
            if stays is True:
                headers.append(BatchHeader._make(fields))
            else:
                out.append(data[copied:position])
                copied = end
                if stays is not False:
                    out.append(stays)
                    headers.append(parse_batch_header(stays))
            position = end
        out.append(data[copied:position])
        place = empty_batch(parse_batch_header(data, last)) if last >= 0 else b""
        return Filtered(b"".join(out), headers, position, place)

    def take_aborted(self) -> list[AbortedTransaction]:
        """The aborted transactions whose markers were kept since the last call: the new segment's index."""
        kept, self._transactions.kept = self._transactions.kept, []
        return kept

    def _by_count(self, fields: tuple[int, ...]) -> bool | None:
        """True if the batch stays whole, False if it goes, None if its records have to be read."""
        base, _, _, _, _, attributes, delta, _, _, _, _, _, count = fields
        last = base + delta
        if base in self._keys.odd:
            return None
        if (
            last >= self._keys.next_offset
            and base >= self._keys.first_offset
            and not attributes & BATCH_CONTROL
        ):
            return None if attributes & BATCH_TRANSACTIONAL else True
        if (
            attributes & (BATCH_TRANSACTIONAL | BATCH_CONTROL | BATCH_DELETE_HORIZON)
            or base < self._keys.first_offset
        ):
            return None
        live, at = self._live, self._at
        while live[at] < base:
            at += 1
        first = at
        while live[at] <= last:
            at += 1
        self._at = at
        if at == first:
            return False
        if at - first < count or (self._tombs and not self._tombs.isdisjoint(live[first:at])):
            return None
        return True

    def _by_records(self, data: bytes, position: int, header: BatchHeader) -> bytes | bool:
        """The rebuilt batch, or True if it stays as it is, False if it goes."""
        verify_batch(data, header, position)
        if header.control:
            return self._filter_marker(data, position, header)
        if header.transactional and self._transactions.is_aborted(header.producer_id, header.last_offset):
            return False
        if header.base_offset >= self._keys.next_offset or header.base_offset in self._keys.odd:
            return True
        try:
            end = position + header.size
            records = plain_records(data, position, end, header.attributes)
            known = self._known_living(header)
            found = raw_records(records, header.base_offset, header.record_count, known)
        except CorruptBatchError as error:
            raise CorruptBatchError(str(error), position) from error
        kept = found if known is not None else self._living_records(found, header)
        if not kept:
            return False
        undated = not header.has_delete_horizon and not all(record.has_value for record in kept)
        if len(kept) == header.record_count and not undated:
            return True
        return rebuild_batch(header, records, kept, self._horizon_ms if undated else None)

    def _known_living(self, header: BatchHeader) -> set[int] | None:
        """The live offsets of a batch, if the map knows them; None if the records' keys have to be read."""
        if header.base_offset < self._keys.first_offset or header.has_delete_horizon:
            return None
        live = self._live
        return set(live[bisect_left(live, header.base_offset) : bisect_right(live, header.last_offset)])

    def _living_records(self, records: list[RawRecord], header: BatchHeader) -> list[RawRecord]:
        """The records that are the newest of their key, without tombstones past their delete horizon."""
        newest, past = self._keys.newest, self._keys.next_offset
        tombstones_stay = not header.has_delete_horizon or self._rules.now_ms < header.base_timestamp_ms
        kept = []
        for record in records:
            if record.offset < past:
                if record.key is None or newest.get(record.key, -1) > record.offset:
                    continue
                if not (record.has_value or tombstones_stay):
                    continue
            kept.append(record)
        return kept

    def _filter_marker(self, data: bytes, position: int, header: BatchHeader) -> bytes | bool:
        """Filter a marker: once no batch of its transaction is left it gets a delete horizon, and it goes
        when that has passed.
        """
        if not header.record_count:
            return False
        marker = parse_marker(data, header, position)
        if marker is None:
            return True
        spent = self._transactions.is_spent(
            header.producer_id, header.last_offset, committed=marker.committed
        )
        if not spent:
            return True
        if header.has_delete_horizon:
            return self._rules.now_ms < header.base_timestamp_ms
        records = plain_records(data, position, position + header.size, header.attributes)
        found = raw_records(records, header.base_offset, header.record_count)
        return rebuild_batch(header, records, found, self._horizon_ms)

    @property
    def _horizon_ms(self) -> int:
        return min(self._rules.now_ms + self._rules.delete_retention_ms, _NEVER_MS)

    def _holds_place(self, fields: tuple[int, ...]) -> bool:
        """Return whether a batch without records must stay."""
        base, _, _, _, _, attributes, delta, _, _, producer_id, epoch, _, _ = fields
        last = self._rules.producers.get(producer_id)
        if last is None or producer_id < 0:
            return False
        if last.last_offset >= 0:
            return last.last_offset == base + delta
        return bool(attributes & BATCH_CONTROL) and epoch == last.epoch
