"""Records of a ShareFetch response: whole record batches, of which some offsets are acquired."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter

from ...protocol import (
    AcknowledgeType,
    CorruptBatchError,
    MalformedMessageError,
    TopicPartition,
    parse_batch_header,
)
from ...protocol.messages.share_fetch import AcquiredRecords
from ..errors import BatchTooLargeError
from ..reading.fetched_records import ChunkReader
from ..record import RecordBatch, Rows
from .records import Judge, PartitionId, RecordLock, ShareRecord
from .verdicts import Gap

_FIRST_OFFSET = attrgetter("first_offset")
_LAST_OFFSET = 2**63 - 1
#: More offsets are not acquired at a time: brokers lock far fewer.
_MOST_ACQUIRED = 1_000_000


@dataclass(slots=True, eq=False)
class Acquired:
    """The acquired records of a partition. ``rest`` are the acquired offsets that have none to deliver:
    gaps, and those of batches that cannot be read, which are released. ``damage`` is the error of the first.
    """

    lock: RecordLock
    records: list[ShareRecord] = field(default_factory=list)
    rest: list[Gap] = field(default_factory=list)
    damage: CorruptBatchError | BatchTooLargeError | None = None
    #: The offsets of what cannot be read.
    damaged: list[range] = field(default_factory=list)
    #: About how many bytes the records have, or more, where not all of a batch were acquired.
    size: int = 0

    def set_rest_aside(self, spans: Iterable[AcquiredRecords]) -> None:
        """Acknowledge the offsets that have no record to deliver."""
        delivered = {record.offset for record in self.records}
        rest = {at for span in spans for at in range(span.first_offset, span.last_offset + 1)} - delivered
        for offset in sorted(rest):
            unread = any(offset in part for part in self.damaged)
            verdict = AcknowledgeType.RELEASE if unread else AcknowledgeType.GAP
            self.rest.append(Gap(offset, verdict, self.lock.deadline_ms))


@dataclass(slots=True, eq=False)
class ShareReader:
    """Makes records from responses. ``judge`` takes what they say of themselves."""

    judge: Judge
    check_crcs: bool
    max_batch_bytes: int

    def read(
        self,
        topic: str,
        place: PartitionId,
        lock: RecordLock,
        data: bytes | memoryview,
        ranges: Sequence[AcquiredRecords],
    ) -> Acquired:
        """Read a partition's part of a response."""
        found = Acquired(lock)
        if not ranges:
            return found
        partition = TopicPartition(topic, place.partition)
        _check_ranges(partition, ranges)
        spans = sorted(ranges, key=_FIRST_OFFSET)
        common = repeat(self.judge), repeat(place), repeat(lock), repeat(topic)
        next_offset = spans[0].first_offset
        for batch in self._batches(partition, data, next_offset, found):
            found.size += batch.size
            offsets, places, counts = batch.rows.offsets, list[int](), list[int]()
            for span in spans:
                first = bisect_left(offsets, max(span.first_offset, next_offset))
                last = bisect_right(offsets, span.last_offset, first)
                if first < last:
                    next_offset = offsets[last - 1] + 1
                    places += range(first, last)
                    counts += [span.delivery_count] * (last - first)
            if places:
                rows = _rows_at(batch.rows, places)
                headers = repeat(()) if rows.headers is None else rows.headers
                found.records += map(ShareRecord, *common, *rows[:4], headers, counts)
        if len(found.records) < sum(span.last_offset - span.first_offset + 1 for span in spans):
            found.set_rest_aside(spans)
        return found

    def _batches(
        self, partition: TopicPartition, data: bytes | memoryview, first: int, found: Acquired
    ) -> Iterator[RecordBatch]:
        reader = self._reader(partition, data, first)
        while True:
            try:
                batch = reader.read_batch()
            except (CorruptBatchError, BatchTooLargeError) as error:
                found.damage = error
                break
            if batch is None:
                return
            yield batch
        # the one that cannot be read is passed over, what is behind it is read batch by batch
        rest = reader.unread
        while len(rest):
            try:
                header = parse_batch_header(rest, 0)
            except CorruptBatchError:
                found.damaged.append(range(_LAST_OFFSET))
                return
            one, rest = rest[: header.size], rest[header.size :]
            try:
                batch = self._reader(partition, one, first).read_batch()
            except (CorruptBatchError, BatchTooLargeError):
                found.damaged.append(range(header.base_offset, header.last_offset + 1))
                continue
            if batch is not None:
                yield batch

    def _reader(self, partition: TopicPartition, data: bytes | memoryview, first: int) -> ChunkReader:
        return ChunkReader(
            partition,
            data,
            first,
            check_crcs=self.check_crcs,
            max_batch_bytes=self.max_batch_bytes,
        )


def _check_ranges(partition: TopicPartition, ranges: Sequence[AcquiredRecords]) -> None:
    """Raise MalformedMessageError for what is no acquisition, or would take all memory."""
    spans = [part.last_offset - part.first_offset + 1 for part in ranges]
    if min(spans) < 1 or sum(spans) > _MOST_ACQUIRED or min(part.delivery_count for part in ranges) < 1:
        raise MalformedMessageError(
            f"{partition.topic}-{partition.partition}: {sum(spans)} offsets are said to be acquired, first "
            f"{ranges[0]}"
        )


def _rows_at(rows: Rows, places: list[int]) -> Rows:
    first, end = places[0], places[-1] + 1
    if end - first == len(places):
        return rows.part(first, end)
    return rows.at(places)
