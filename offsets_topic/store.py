"""The store of ``__consumer_offsets``: appends record batches to its partitions and reads them back.

One append is one batch, so its records are in the log together or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ..log import AppendInfo, CorruptLogError, ReadInfo, decode_records
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


class Log(Protocol):
    """What the store needs of a partition's log; ``PartitionLog`` has it."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    def append(self, records: bytes, *, now_ms: int, from_client: bool) -> AppendInfo: ...

    def read(self, offset: int, max_bytes: int, *, to_log_end: bool) -> ReadInfo: ...

    def flush(self) -> None: ...


class OffsetsStore:
    """Over the open logs of the topic, by partition number; the mapping may grow while the store is used.

    ``partition_count`` is the topic's, the number of logs unless given.
    """

    def __init__(self, logs: Mapping[int, Log], partition_count: int | None = None) -> None:
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
        return self._log(partition).append(bytes(batch), now_ms=now_ms, from_client=False).base_offset

    def load(self, partition: int) -> Iterator[StoredBatch]:
        """Every batch from the log start to the log end, beyond the high watermark too.

        Raises CorruptBatchError with file and position for a batch that does not match its checksum or cannot
        be decoded, and KafkaError KAFKA_STORAGE_ERROR.
        """
        log = self._log(partition)
        offset = log.log_start_offset
        while (run := log.read(offset, LOAD_BYTES, to_log_end=True)).records:
            for position, header in iter_batches(run.records):
                if not offset <= header.last_offset < log.log_end_offset:
                    reason = f"a batch that ends at offset {header.last_offset} where {offset} is due"
                    raise CorruptLogError(run.file, run.position + position, reason)
                yield _stored(run, position, header)
                offset = header.next_offset

    def flush(self, partition: int) -> None:
        """Return once the partition is on the disk. Raises KafkaError KAFKA_STORAGE_ERROR."""
        self._log(partition).flush()

    def _log(self, partition: int) -> Log:
        try:
            return self._logs[partition]
        except KeyError:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {partition} of the offsets topic is closed"
            ) from None


def _stored(run: ReadInfo, position: int, header: BatchHeader) -> StoredBatch:
    try:
        verify_batch(run.records, header, position)
        records = decode_records(run.records, header, position)
    except CorruptBatchError as error:
        reason = f"the batch at offset {header.base_offset}: {error}"
        raise CorruptLogError(run.file, run.position + position, reason) from error
    return StoredBatch(header.base_offset, records, header.producer_id, header.transactional, header.control)
