"""Loading a shard from its log: every batch, in order; the last record of each key wins.

Unreadable records are skipped and reported; the rest are loaded. A single broker cannot move the shard to
another, so one bad record must not make all groups unavailable.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol

from ...offsets_topic import FullDiskError
from ...protocol import BatchHeader, CorruptBatchError, KohortError
from .effects import NO_PRODUCER
from .events import CoordinatorEvent, RecordSkipped
from .shard import S, Shard

_CONTROL_KEY = struct.Struct(">hh")
_ABORT, _COMMIT = 0, 1


class LoadedBatch(Protocol):
    """One batch of the log; ``records`` are (offset, timestamp in ms, key, value), and reading them may raise
    CorruptBatchError. Without a header there is no batch at ``base_offset``, and ``damage`` says what is
    wrong there.
    """

    @property
    def base_offset(self) -> int:
        """Offset of the batch's first record."""

    @property
    def header(self) -> BatchHeader | None:
        """The batch's header; None for damage."""

    @property
    def records(self) -> Sequence[tuple[int, int, bytes | None, bytes | None]]:
        """Offset, timestamp in ms, key and value of each record."""

    @property
    def damage(self) -> str:
        """What is wrong, in words; "" for a batch."""


class Loader(Generic[S]):
    """Loads the batches of one partition into its shard, and counts."""

    def __init__(self, shard: Shard[S], partition: int, on_event: Callable[[CoordinatorEvent], None]) -> None:
        self.records = 0
        self.skipped = 0
        #: Set when the log cannot be read: then the loaded state is incomplete.
        self.failed = False
        self._shard = shard
        self._partition = partition
        self._on_event = on_event

    def run(self, batches: Iterable[LoadedBatch]) -> Iterator[int]:
        """Load everything; yield the number of records after each batch. Raises FullDiskError before the
        first.
        """
        offset = 0
        try:
            for batch in batches:
                offset, header = batch.base_offset, batch.header
                count = 0 if header is None else header.record_count
                if header is None:
                    self._log_skipped(offset, batch.damage)
                elif count:
                    self._load_batch(batch, header)
                self.records += count
                yield count
        except FullDiskError:
            raise
        except KohortError as error:
            self.failed = True
            self._log_skipped(offset, f"the partition is not served: {error}")

    def _load_batch(self, batch: LoadedBatch, header: BatchHeader) -> None:
        """Load a batch with records. Compaction also leaves batches without any, for their producers'
        state.
        """
        shard = self._shard
        try:
            if header.control:
                self._load_marker(batch, header.producer_id)
            elif header.transactional:
                for offset, _, key, value in batch.records:
                    self._load_record(offset, key, value, header.producer_id)
            else:
                for offset, key, value in shard.topic.load(shard.state, batch):
                    self._load_record(offset, key, value, NO_PRODUCER)
        except CorruptBatchError as error:
            # the checksum is right, so it was written like this: its readable records are loaded
            self._log_skipped(batch.base_offset, str(error))

    def _load_record(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int) -> None:
        try:
            record: object = self._shard.topic.decode(key, value)
        except KohortError as error:
            self._log_skipped(offset, str(error))
        else:
            self._shard.apply((record,), offset, producer_id)

    def _load_marker(self, batch: LoadedBatch, producer_id: int) -> None:
        for offset, _, key, _ in batch.records:
            if key is None or len(key) < _CONTROL_KEY.size:
                self._log_skipped(offset, "a control record without its type")
                continue
            _, kind = _CONTROL_KEY.unpack_from(key)
            if kind in (_ABORT, _COMMIT):
                self._shard.end_transaction(producer_id, committed=kind == _COMMIT)

    def _log_skipped(self, offset: int, reason: str) -> None:
        self.skipped += 1
        self._on_event(RecordSkipped("", self._partition, offset, reason))
