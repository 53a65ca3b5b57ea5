"""The store of ``__consumer_offsets``: appends record batches to its partitions and loads them.

An append is one batch, so that either all of its records are in the log or none.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from ..log import CorruptLogError, ReadInfo, Salvaged, decode_records, is_full
from ..protocol import (
    BATCH_OVERHEAD,
    BatchHeader,
    CorruptBatchError,
    ErrorCode,
    KafkaError,
    KohortError,
    build_batch,
    decompress,
    iter_batches,
    parse_batch_header,
    verify_batch,
)
from ._encoded import Commits, Known, OtherRecord, load_commits

#: Bytes read at a time while a partition is loaded: Kafka's default of offsets.load.buffer.size.
LOAD_BYTES = 5 * 1024 * 1024

#: Producer id, epoch and sequence number of a batch without a producer.
NO_PRODUCER = -1

_MARKER_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")

#: Key and value of a record to write; a value of None is a tombstone.
KeyValue = tuple[bytes, bytes | None]


class FullDiskError(KohortError):
    """A partition has to be recovered before it is read, and the disk has no room for that now."""


@dataclass(slots=True, eq=False)
class StoredBatch:
    """One batch of the log with a right checksum, or a damaged place.

    Records are decoded when they are requested. A control batch has one record, whose key says whether the
    transaction of the header's producer was committed. For a damaged place, ``damage`` is the reason, there
    are no records, and ``base_offset`` is the offset that was expected.
    """

    base_offset: int
    file: str = ""
    position: int = 0
    damage: str = ""
    header: BatchHeader | None = None
    data: bytes = field(default=b"", repr=False)
    at: int = 0

    @property
    def records(self) -> list[tuple[int, int, bytes | None, bytes | None]]:
        """Return (offset, timestamp in milliseconds, key, value) of each record. Raises CorruptBatchError."""
        if self.header is None:
            return []
        with self._locate_error():
            return decode_records(self.data, self.header, self.at)

    def load_commits(self, by_group: Commits, known: Known) -> Iterator[OtherRecord]:
        """Enter plain commits into ``by_group``, not decoded, and yield the other records. Raises
        CorruptBatchError.
        """
        if self.header is not None:
            payload = self.data[self.at + BATCH_OVERHEAD : self.at + self.header.size]
            with self._locate_error():
                plain = bytes(decompress(self.header.codec, payload))
                yield from load_commits(plain, self.header.record_count, by_group, known)

    @contextmanager
    def _locate_error(self) -> Iterator[None]:
        try:
            yield
        except CorruptBatchError as error:
            raise CorruptLogError(self.file, self.position, str(error)) from error


class Log(Protocol):
    """The methods of a partition's log that the store uses; ``PartitionLog`` has them."""

    @property
    def log_start_offset(self) -> int:
        """First offset of the log."""

    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""

    def append_built(self, batch: bytearray, *, now_ms: int) -> int:
        """Append a batch that this process has built and that needs no check; return its offset."""

    def read(self, offset: int, max_bytes: int, *, to_log_end: bool) -> ReadInfo:
        """See PartitionLog.read."""

    def salvage(self, offset: int) -> Iterator[Salvaged]:
        """See PartitionLog.salvage."""

    def flush(self) -> None:
        """Sync what was appended."""


class OffsetsStore:
    """Appends to and loads the partitions of the topic whose ``logs`` are open.

    ``logs`` are by partition number and may change later. ``partition_count`` returns the topic's number of
    partitions, by default that of the logs. ``load_bytes`` are read at a time while a partition is loaded, or
    one batch if that is larger.
    """

    def __init__(
        self,
        logs: Mapping[int, Log],
        partition_count: Callable[[], int] | None = None,
        *,
        load_bytes: int = LOAD_BYTES,
    ) -> None:
        self._logs = logs
        self._partition_count = partition_count
        self._load_bytes = load_bytes

    def __repr__(self) -> str:
        return f"OffsetsStore({len(self._logs)} of {self.partition_count} partitions open)"

    @property
    def partition_count(self) -> int:
        """Number of the topic's partitions."""
        return len(self._logs) if self._partition_count is None else self._partition_count()

    def append(
        self,
        partition: int,
        records: Sequence[KeyValue],
        now_ms: int,
        *,
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = NO_PRODUCER,
        marker: tuple[bool, int] | None = None,
    ) -> int:
        """Append ``records`` as one batch, without a sync to disk (``flush``), and return its base offset.

        With a producer id the batch is part of that producer's transaction. With a ``marker``, (committed,
        epoch of the transaction's coordinator), it is the control batch that ends the transaction, and
        ``records`` are ignored. Raises KafkaError: INVALID_PRODUCER_EPOCH, MESSAGE_TOO_LARGE,
        RECORD_LIST_TOO_LARGE, KAFKA_STORAGE_ERROR, or UNKNOWN_TOPIC_OR_PARTITION if the partition's log is
        not open.
        """
        if marker is not None:
            # key: version, type; value: version, coordinator epoch
            records = [(_MARKER_KEY.pack(0, marker[0]), _MARKER_VALUE.pack(0, marker[1]))]
        batch = build_batch(
            records,
            timestamp_ms=now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0 if producer_id != NO_PRODUCER and marker is None else NO_PRODUCER,
            transactional=producer_id != NO_PRODUCER,
            control=marker is not None,
        )
        return self._require_log(partition).append_built(batch, now_ms=now_ms)

    def load(self, partition: int) -> Iterator[StoredBatch]:
        """Yield every batch from the log start to the log end, also above the high watermark.

        A damaged place is a StoredBatch with ``damage``; the batches after it are searched for. Raises
        FullDiskError before the first, and KafkaError KAFKA_STORAGE_ERROR if the partition cannot be read at
        all.
        """
        log = self._require_log(partition)
        try:
            due = log.log_start_offset
        except KafkaError as error:
            if is_full(error):
                raise FullDiskError(str(error)) from error
            raise
        try:
            for batch, behind in self._whole_batches(log, due):
                due = behind
                yield batch
        except (CorruptBatchError, KafkaError):
            for piece in log.salvage(due):
                yield _salvaged_batch(piece)

    def _whole_batches(self, log: Log, offset: int) -> Iterator[tuple[StoredBatch, int]]:
        """Yield each batch, and the offset after it. Raises CorruptLogError, CorruptBatchError for other
        bytes.
        """
        while (run := log.read(offset, self._load_bytes, to_log_end=True)).records:
            for position, header in iter_batches(run.records):
                if not offset <= header.last_offset < log.log_end_offset:
                    reason = f"a batch that ends at offset {header.last_offset} where {offset} is due"
                    raise CorruptLogError(run.file, run.position + position, reason)
                offset = header.next_offset
                verify_batch(run.records, header, position)
                place = run.position + position
                yield (
                    StoredBatch(
                        header.base_offset, run.file, place, header=header, data=run.records, at=position
                    ),
                    offset,
                )

    def flush(self, partition: int) -> None:
        """Sync the partition's log to disk. Raises KafkaError KAFKA_STORAGE_ERROR."""
        self._require_log(partition).flush()

    def _require_log(self, partition: int) -> Log:
        try:
            return self._logs[partition]
        except KeyError:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {partition} of the offsets topic is closed"
            ) from None


def _salvaged_batch(piece: Salvaged) -> StoredBatch:
    if piece.damage:
        where = f"{piece.file}, position {piece.position}: {piece.damage}"
        return StoredBatch(piece.offset, piece.file, piece.position, where)
    header = parse_batch_header(piece.records)
    return StoredBatch(piece.offset, piece.file, piece.position, header=header, data=piece.records)
