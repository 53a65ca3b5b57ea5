"""The store of ``__consumer_offsets``: appends record batches to its partitions and reads them back.

One append is one batch, so its records are in the log together or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..log import CorruptLogError, PartitionLog, decode_records
from ..protocol import (
    BatchHeader,
    CorruptBatchError,
    ErrorCode,
    KafkaError,
    build_batch,
    iter_batches,
    verify_batch,
)

#: Bytes read from a log at a time while it is loaded.
LOAD_BYTES = 4 << 20

#: Producer id, epoch and sequence number of a batch that no producer numbers.
NO_PRODUCER = -1

#: Key and value of a record to write; a value of None is a tombstone.
KeyValue = tuple[bytes, bytes | None]


class StoredBatch(NamedTuple):
    """One batch of the log.

    ``records`` are (offset, timestamp in milliseconds, key, value); a control batch has one, whose key says
    whether the transaction of ``producer_id`` was committed.
    """

    base_offset: int
    records: list[tuple[int, int, bytes | None, bytes | None]]
    producer_id: int
    transactional: bool
    control: bool

    @property
    def next_offset(self) -> int:
        """The offset behind the last record; a batch emptied by compaction has none: its base offset."""
        return self.records[-1][0] + 1 if self.records else self.base_offset


class OffsetsStore:
    """Over the open logs of the topic, by partition number; the mapping may grow while the store is used.

    ``partition_count`` is the topic's, the number of logs unless given.
    """

    def __init__(self, logs: Mapping[int, PartitionLog], partition_count: int | None = None) -> None:
        self._logs = logs
        self._partition_count = partition_count

    def __repr__(self) -> str:
        return f"OffsetsStore({len(self._logs)} of {self.partition_count} partitions open)"

    @property
    def partition_count(self) -> int:
        return len(self._logs) if self._partition_count is None else self._partition_count

    def append(
        self,
        partition: int,
        records: Sequence[KeyValue],
        now_ms: int,
        *,
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = NO_PRODUCER,
        transactional: bool = False,
    ) -> int:
        """Write ``records`` as one batch and return its base offset; ``flush`` puts it on the disk.

        With a producer it is part of that producer's transaction if ``transactional``. Raises KafkaError:
        INVALID_PRODUCER_EPOCH, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, KAFKA_STORAGE_ERROR, or
        UNKNOWN_TOPIC_OR_PARTITION for a partition that is not open.
        """
        batch = build_batch(
            [(key, value, ()) for key, value in records],
            timestamp_ms=now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0 if producer_id != NO_PRODUCER else NO_PRODUCER,
            transactional=transactional,
        )
        return self._log(partition).append(batch, now_ms=now_ms, from_client=False).base_offset

    def append_marker(
        self, partition: int, now_ms: int, *, producer_id: int, producer_epoch: int, committed: bool
    ) -> int:
        """End a producer's transaction; the marker's offset. Raises KafkaError as ``append`` does."""
        batch = build_batch(
            [(b"\x00\x00" + int(committed).to_bytes(2, "big"), bytes(6), ())],
            timestamp_ms=now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=True,
            control=True,
        )
        return self._log(partition).append(batch, now_ms=now_ms, from_client=False).base_offset

    def load(self, partition: int) -> Iterator[StoredBatch]:
        """Every batch from the log start to the log end, beyond the high watermark too.

        Raises CorruptBatchError with file and position for a batch that does not match its checksum or cannot be
        decoded, and KafkaError KAFKA_STORAGE_ERROR.
        """
        log = self._log(partition)
        offset = log.log_start_offset
        while records := log.read(offset, LOAD_BYTES, to_log_end=True).records:
            for position, header in iter_batches(records):
                yield _stored(log, records, position, header)
                offset = header.next_offset

    def flush(self, partition: int) -> None:
        """Return once the partition is on the disk. Raises KafkaError KAFKA_STORAGE_ERROR."""
        self._log(partition).flush()

    def _log(self, partition: int) -> PartitionLog:
        try:
            return self._logs[partition]
        except KeyError:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"partition {partition} of the offsets topic is not open",
            ) from None


def _stored(log: PartitionLog, data: bytes, position: int, header: BatchHeader) -> StoredBatch:
    try:
        verify_batch(data, header, position)
        records = decode_records(data, header, position)
    except CorruptBatchError as error:
        path, at = log.locate(header.base_offset)
        raise CorruptLogError(path, at, f"the batch at offset {header.base_offset}: {error}") from error
    return StoredBatch(header.base_offset, records, header.producer_id, header.transactional, header.control)
