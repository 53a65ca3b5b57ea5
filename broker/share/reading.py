"""Record batches read from a log for a share partition: only where a fetch could acquire something."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...protocol import CorruptBatchError, ErrorCode, KafkaError, iter_batches
from ...protocol.named_tuples import NamedTuple
from ...share_partitions import AcquiredRange, BatchOffsets, ShareLimits, SharePartition
from ..partitions.partition import Partition

#: Bytes of the first read, for each record and for all, and of the largest: most fetches acquire less than
#: their MaxBytes allow.
_RECORD_BYTES: Final = 1_024
_FIRST_BYTES: Final = 65_536
_MOST_BYTES: Final = 1_048_576
#: Largest record batch that a share partition keeps in memory.
_KEPT_BYTES: Final = 16_384


class KeptBatch(NamedTuple):
    """A record batch of which a member was given a part: the next fetch most likely begins in it.

    ``aborted``: its records are of an aborted transaction. ``committed``: it was read up to the last stable
    offset; otherwise nobody has looked for aborted transactions.
    """

    offsets: BatchOffsets
    data: memoryview
    aborted: bool
    committed: bool


@dataclass(slots=True)
class ReadBatches:
    """Record batches in order, with their bytes. ``aborted`` are ranges of offsets, both included, whose
    records are of aborted transactions.
    """

    offsets: list[BatchOffsets] = field(default_factory=list)
    data: list[memoryview] = field(default_factory=list)
    aborted: list[tuple[int, int]] = field(default_factory=list)
    committed: bool = False

    def select(self, ranges: Sequence[AcquiredRange]) -> bytes:
        """Return the record batches that hold something of these ranges, which are in order."""
        found: list[memoryview] = []
        at = 0
        for (first, last), data in zip(self.offsets, self.data, strict=True):
            while at < len(ranges) and ranges[at].last < first:
                at += 1
            if at == len(ranges):
                break
            if ranges[at].first <= last:
                found.append(data)
        return b"".join(found)

    def keep(self, ranges: Sequence[AcquiredRange], kept: KeptBatch | None) -> KeptBatch | None:
        """Return the record batch of which the last of these ranges ends before its end, if it is small;
        ``kept`` is what was returned before.
        """
        after = ranges[-1].last
        for batch, data in zip(self.offsets, self.data, strict=True):
            if batch.first <= after < batch.last and len(data) <= _KEPT_BYTES:
                if kept is not None and kept.offsets == batch and kept.committed == self.committed:
                    return kept
                # without the batches that were read with it
                aborted = (batch.first, batch.last) in self.aborted
                return KeptBatch(batch, memoryview(bytes(data)), aborted, self.committed)
        return None


def read_wanted(
    log: Partition,
    records: SharePartition,
    limits: ShareLimits,
    first_wanted: int,
    *,
    most_records: int,
    most_bytes: int,
    at_least_one: bool,
    committed: bool,
    kept: KeptBatch | None = None,
) -> ReadBatches:
    """Read what a fetch could acquire, from ``first_wanted`` on and in order, until it is ``most_records`` or
    ``most_bytes``; what is ``kept`` is not read again.

    With ``at_least_one`` the first record batch is read whatever its size. ``committed``: up to the last
    stable offset. Raises KafkaError as ``Partition.read``.
    """
    read = ReadBatches(committed=committed)
    size = count = 0
    piece_bytes = min(_FIRST_BYTES, most_records * _RECORD_BYTES)
    offset: int | None = first_wanted
    if kept is not None and _begins_in(first_wanted, kept, committed=committed):
        size = len(kept.data)
        if size > most_bytes and not at_least_one:
            return read
        read.offsets.append(kept.offsets)
        read.data.append(kept.data)
        if kept.aborted:
            read.aborted.append(kept.offsets)
        count = records.count_wanted(first_wanted, kept.offsets.last)
        offset = records.next_wanted(kept.offsets.last + 1, limits)
    while offset is not None and count < most_records and size < max(most_bytes, 1):
        info = log.read(
            offset,
            min(piece_bytes, most_bytes - size),
            committed=committed,
            at_least_one=at_least_one and not size,
        )
        if not info.records:
            if piece_bytes < most_bytes - size:
                # the next record batch is larger than a piece
                piece_bytes = most_bytes - size
                continue
            break
        ended = _add_batches(read, info.records, info.aborted)
        count += records.count_wanted(offset, ended)
        size += len(info.records)
        piece_bytes = min(2 * piece_bytes, _MOST_BYTES)
        offset = records.next_wanted(ended + 1, limits)
    return read


def _begins_in(offset: int, kept: KeptBatch, *, committed: bool) -> bool:
    return kept.offsets.first <= offset <= kept.offsets.last and kept.committed == committed


def measure_wanted(
    log: Partition, records: SharePartition, limits: ShareLimits, most_bytes: int, *, committed: bool
) -> int:
    """Return how many bytes from the first wanted offset on there are, up to ``most_bytes`` or so."""
    offset = records.next_wanted(records.start_offset, limits)
    if offset is None:
        return 0
    info = log.read(offset, most_bytes, committed=committed, range_bytes=1)
    return len(info.records or info.range or b"")


def _add_batches(read: ReadBatches, records: bytes, aborted: Iterable[tuple[int, int]]) -> int:
    """Add the batches of one read; return the last offset. ``aborted``: producer id and first offset."""
    due = sorted(aborted, key=lambda each: each[1], reverse=True)
    aborting: set[int] = set()
    view, last = memoryview(records), -1
    try:
        for position, header in iter_batches(records):
            last = header.last_offset
            read.offsets.append(BatchOffsets(header.base_offset, last))
            read.data.append(view[position : position + header.size])
            while due and due[-1][1] <= last:
                aborting.add(due.pop()[0])
            if header.control:
                # the marker that ends the transaction
                aborting.discard(header.producer_id)
            elif header.transactional and header.producer_id in aborting:
                read.aborted.append((header.base_offset, last))
    except CorruptBatchError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return last
