"""Records of a ShareFetch response: whole record batches, of which some offsets are acquired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

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
from ..record import RecordBatch
from .records import Judge, PartitionId, RecordLock, ShareRecord
from .verdicts import Gap

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

    def set_aside(self, offsets: Iterable[int], verdict: AcknowledgeType) -> None:
        """Acknowledge offsets that have no record to deliver."""
        self.rest += [Gap(offset, verdict, self.lock.deadline_ms) for offset in offsets]


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
        counts = {
            offset: part.delivery_count
            for part in ranges
            for offset in range(part.first_offset, part.last_offset + 1)
        }
        for batch in self._batches(partition, data, counts, found):
            rows = batch.rows
            headers = rows.headers
            for at, offset in enumerate(rows.offsets):
                count = counts.pop(offset, 0)
                if count:
                    found.records.append(
                        ShareRecord(
                            self.judge,
                            place,
                            lock,
                            topic,
                            offset,
                            rows.timestamps_ms[at],
                            rows.keys[at],
                            rows.values[at],
                            () if headers is None else headers[at],
                            count,
                        )
                    )
        found.set_aside(counts, AcknowledgeType.GAP)
        return found

    def _batches(
        self, partition: TopicPartition, data: bytes | memoryview, counts: dict[int, int], found: Acquired
    ) -> Iterator[RecordBatch]:
        first = next(iter(counts))
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
                found.set_aside(counts, AcknowledgeType.RELEASE)
                counts.clear()
                return
            one, rest = rest[: header.size], rest[header.size :]
            try:
                batch = self._reader(partition, one, first).read_batch()
            except (CorruptBatchError, BatchTooLargeError):
                damaged = [at for at in counts if header.base_offset <= at <= header.last_offset]
                for offset in damaged:
                    del counts[offset]
                found.set_aside(damaged, AcknowledgeType.RELEASE)
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
