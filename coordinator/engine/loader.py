"""Reading a shard back from its log: every batch, in order, the last word on each key wins.

What cannot be read is left out and reported; the rest is loaded. One broker has nobody to hand the shard to,
so a single bad record must not take all groups with it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Protocol, cast

from ...offsets_topic import NONE, CorruptRecordError, EncodedCommit, OtherRecord, decode
from ...protocol import CorruptBatchError, KohortError, TopicPartition
from ..events import RecordSkipped
from .effects import Note
from .shard import Shard

_CONTROL_KEY = struct.Struct(">hh")
_ABORT, _COMMIT = 0, 1


class LoadError(KohortError):
    """Records of the offsets topic could not be read, and the settings say not to go on without them."""

    def __init__(self, skipped: Mapping[int, int]) -> None:
        where = ", ".join(f"{count} in partition {partition}" for partition, count in skipped.items())
        super().__init__(
            f"what cannot be read of __consumer_offsets: {where}. Restore the files from a copy, or set "
            "kohort.offsets.load.strict=false to leave it out"
        )
        self.skipped = dict(skipped)


class LoadedBatch(Protocol):
    """One batch of the log; ``records`` are (offset, timestamp in ms, key, value). If ``damage`` says what is
    wrong there is no batch, and no records, where ``base_offset`` was due.

    ``pieces`` are the same records with the plain commits undecoded; both raise CorruptBatchError.
    """

    @property
    def base_offset(self) -> int: ...
    @property
    def records(self) -> Sequence[tuple[int, int, bytes | None, bytes | None]]: ...
    @property
    def record_count(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def transactional(self) -> bool: ...
    @property
    def control(self) -> bool: ...
    @property
    def damage(self) -> str: ...
    def pieces(
        self, known: MutableMapping[bytes, TopicPartition], /
    ) -> Iterator[Iterable[EncodedCommit] | OtherRecord]: ...


class Loader:
    """Replays the batches of one partition into its shard and counts."""

    def __init__(self, shard: Shard, partition: int, on_note: Callable[[Note], None]) -> None:
        self.records = 0
        self.skipped = 0
        #: The log cannot be read: what was replayed of it is not what was written.
        self.failed = False
        self._shard = shard
        self._partition = partition
        self._on_note = on_note

    def run(self, batches: Iterable[LoadedBatch]) -> Iterator[int]:
        """Replay all; gives way after each batch, with the number of its records."""
        offset = 0
        try:
            for batch in batches:
                offset = batch.base_offset
                count = batch.record_count
                if batch.damage:
                    self._skip(offset, batch.damage)
                elif count:
                    self._batch(batch)
                self.records += count
                yield count
        except KohortError as error:
            self.failed = True
            self._skip(offset, f"the partition is not served: {error}")
        finally:
            self._shard.durable.loaded()

    def _batch(self, batch: LoadedBatch) -> None:
        """Take in a batch. One without records, left by compaction for its producer, never comes here."""
        try:
            if batch.control:
                self._marker(batch)
            elif batch.transactional or self._shard.durable.pending:
                self._records(batch)
            else:
                self._encoded(batch)
        except CorruptBatchError as error:
            # its checksum is right: it was written so, and what could be read of it was
            self._skip(batch.base_offset, str(error))

    def _encoded(self, batch: LoadedBatch) -> None:
        """The fast way, for records whose places in the log decide nothing."""
        durable = self._shard.durable
        for piece in batch.pieces(durable.encoded_keys):
            if type(piece) is OtherRecord:
                self._record(batch.base_offset + piece.delta, piece.key, piece.value, NONE)
            else:
                durable.apply_encoded(cast("Iterable[EncodedCommit]", piece))

    def _records(self, batch: LoadedBatch) -> None:
        producer_id = batch.producer_id if batch.transactional else NONE
        for offset, _, key, value in batch.records:
            self._record(offset, key, value, producer_id)

    def _record(self, offset: int, key: bytes | None, value: bytes | None, producer_id: int) -> None:
        try:
            record = decode(key, value)
        except CorruptRecordError as error:
            self._skip(offset, str(error))
        else:
            self._shard.replay(record, offset, producer_id)

    def _marker(self, batch: LoadedBatch) -> None:
        for offset, _, key, _ in batch.records:
            if key is None or len(key) < _CONTROL_KEY.size:
                self._skip(offset, "a control record without its type")
                continue
            _, kind = _CONTROL_KEY.unpack_from(key)
            if kind in (_ABORT, _COMMIT):
                self._shard.replay_marker(batch.producer_id, committed=kind == _COMMIT)

    def _skip(self, offset: int, reason: str) -> None:
        self.skipped += 1
        self._on_note(RecordSkipped("", self._partition, offset, reason))
