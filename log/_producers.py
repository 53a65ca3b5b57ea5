"""Producers of one partition: sequence numbers, duplicates and open transactions (KIP-98, KIP-360), and their
snapshots, with which a start need not read the whole log.

The log remembers each producer's last five batches. A batch that equals one of them is a duplicate and gets
the same response as before; a batch that does not follow the last one is refused. An unknown producer may
begin with any sequence number, because retention may have deleted its records. A newer epoch begins at 0. A
producer whose first batch met a disk error has to begin with that batch, since later ones may be in flight.

A snapshot holds only the last batch of each producer. After a start from a snapshot the earlier batches are
searched for in the log, once, when a producer sends an unexpected sequence number: it may repeat one of them.

The file is that of Apache Kafka's ProducerStateManager. Numbers are big-endian, -1 is none:

======  ======  ===============================================
offset  type    field
======  ======  ===============================================
0       int16   version 1
2       uint32  CRC-32C of all that follows
6       int32   number of producers; then 46 bytes for each:
0       int64   producer id
8       int16   producer epoch
10      int32   sequence number of its last record
14      int64   offset of that record
22      int32   that offset minus the base offset of its batch
26      int64   newest timestamp of that batch, in milliseconds
34      int32   coordinator epoch of its last marker
38      int64   first offset of its open transaction
======  ======  ===============================================
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..protocol import BatchHeader, CorruptBatchError, ErrorCode, KafkaError, crc32c_function
from ..protocol.named_tuples import NamedTuple
from ._files import FileSystem, read_whole, write_whole
from ._indexes import AbortedTransaction
from ._names import SNAPSHOT, file_name
from ._records import Marker

#: Batches remembered for each producer; clients keep at most five requests in flight.
REMEMBERED_BATCHES = 5

#: Most producers that a step takes into a snapshot: less than a millisecond of work.
MOST_SAVED = 500

#: Most producers to remember whose first batch could not be written.
MAX_MISSED = 1_000

#: No producer id, epoch, offset or sequence number.
NONE = -1

_LAST_SEQUENCE = 2**31 - 1


class AppendedBatch(NamedTuple):
    """A remembered batch: sequence number and offset of its last record, and its last offset delta."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def base_offset(self) -> int:
        """Offset of the batch's first record."""
        return self.last_offset - self.offset_delta


@dataclass(slots=True, eq=False)
class ProducerEntry:
    """The state of one producer in a log; ``transaction_start`` is the first offset of its open transaction.

    ``from_snapshot``: batches before the remembered one are only in the log. ``seen_ms`` is the broker's time
    of the last write, not that of records, which may have any timestamp.
    """

    producer_id: int
    epoch: int = NONE
    coordinator_epoch: int = NONE
    last_timestamp_ms: int = NONE
    transaction_start: int = NONE
    seen_ms: int = NONE
    from_snapshot: bool = False
    batches: deque[AppendedBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))

    def find(self, header: BatchHeader) -> AppendedBatch | None:
        """The remembered batch of the same epoch and sequence numbers."""
        if header.producer_epoch != self.epoch:
            return None
        for batch in self.batches:
            if batch.last_sequence == header.last_sequence and batch.offset_delta == header.last_offset_delta:
                return batch
        return None

    def recall(self, headers: Iterable[BatchHeader]) -> None:
        """Add the producer's batches among ``headers``, which precede the remembered one in the log."""
        self.from_snapshot = False
        before = [
            _to_remember(each)
            for each in headers
            if each.producer_id == self.producer_id and each.producer_epoch == self.epoch and not each.control
        ]
        self.batches = deque([*before, *self.batches], maxlen=REMEMBERED_BATCHES)

    def adopt_epoch(self, epoch: int) -> None:
        """Take another epoch: batches of the last one cannot be repeated any more."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


class Saving:
    """A snapshot at ``offset`` that is made in steps, while producers go on: ``keep`` takes what one was."""

    __slots__ = ("_entries", "_left", "offset")

    def __init__(self, offset: int, producers: Mapping[int, ProducerEntry]) -> None:
        self.offset = offset
        self._left = dict(producers)
        self._entries: list[bytes] = []

    def __repr__(self) -> str:
        return f"Saving(at {self.offset}, {len(self._entries)} done, {len(self._left)} left)"

    def keep(self, producer_id: int) -> None:
        """Call before a producer changes."""
        if (producer := self._left.pop(producer_id, None)) is not None:
            self._entries.append(_encode_producer(producer))

    def step(self) -> bool:
        """Take some more producers; return whether there are others."""
        for _ in range(min(MOST_SAVED, len(self._left))):
            self._entries.append(_encode_producer(self._left.popitem()[1]))
        return bool(self._left)

    def data(self) -> bytes:
        """The file, once all producers are taken."""
        return _snapshot_of(self._entries)


class Producers:
    """All producers that wrote to a partition and have not expired."""

    __slots__ = ("_missed", "_open", "_producers", "saving")

    def __init__(self) -> None:
        #: The snapshot under way.
        self.saving: Saving | None = None
        # producer id: epoch and sequence number of a first batch that could not be written
        self._missed: dict[int, tuple[int, int]] = {}
        self._producers: dict[int, ProducerEntry] = {}
        # producer id: first offset; transactions are added in offset order, so the first is the oldest
        self._open: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"Producers({len(self._producers)} known, {len(self._open)} in a transaction)"

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._producers.values())

    def __len__(self) -> int:
        return len(self._producers)

    def restore(self, producers: Iterable[ProducerEntry], now_ms: int) -> None:
        """Start again from the producers of a snapshot; they count as seen now."""
        self._producers = {producer.producer_id: producer for producer in producers}
        for producer in self:
            producer.seen_ms = now_ms
            producer.from_snapshot = bool(producer.batches)
        self._find_open()

    def replace(self, changed: Mapping[int, ProducerEntry]) -> Producers:
        """The same producers, but for the ``changed`` ones."""
        made = Producers()
        made._missed = dict(self._missed)
        made._producers = {**self._producers, **changed}
        made._find_open()
        return made

    def begin_saving(self, offset: int) -> None:
        """Begin a snapshot of what they are now, in the place of any other."""
        self.saving = Saving(offset, self._producers)

    def _find_open(self) -> None:
        begun = ((p.transaction_start, p.producer_id) for p in self if p.transaction_start != NONE)
        self._open = {producer_id: start for start, producer_id in sorted(begun)}

    @property
    def first_open_offset(self) -> int | None:
        """First offset of the oldest open transaction."""
        return next(iter(self._open.values()), None)

    @property
    def oldest_open(self) -> ProducerEntry | None:
        """The producer of the oldest open transaction."""
        return self._producers.get(next(iter(self._open), NONE))

    def get(self, producer_id: int) -> ProducerEntry | None:
        """The state of a producer; None if it is unknown."""
        return self._producers.get(producer_id)

    def duplicate_of(self, header: BatchHeader) -> AppendedBatch | None:
        """The batch that was appended already, if this one repeats it."""
        producer = self._producers.get(header.producer_id)
        return producer.find(header) if producer is not None and header.base_sequence >= 0 else None

    def to_recall(self, header: BatchHeader) -> ProducerEntry | None:
        """The producer of a batch that may repeat one that its snapshot did not hold."""
        producer = self._producers.get(header.producer_id)
        if (
            producer is None
            or not producer.from_snapshot
            or header.producer_epoch != producer.epoch
            or not 0 <= header.base_sequence != _due_sequence(producer)
        ):
            return None
        return producer

    def check(self, header: BatchHeader, *, sequence: bool, marker: Marker | None = None) -> None:
        """Refuse a batch that its producer may not append now; with ``sequence`` check its sequence numbers
        too. ``marker`` is the content of a control batch.

        Raises KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED,
        OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            if sequence and self._missed:
                self._check_missed(header)
            return
        if header.producer_epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer.producer_id} is at epoch {producer.epoch}, not {header.producer_epoch}",
            )
        if marker is not None and marker.coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a marker of coordinator epoch {marker.coordinator_epoch} behind one of "
                f"{producer.coordinator_epoch}",
            )
        if sequence and not header.control:
            _check_sequence(producer, header)
        if producer.transaction_start != NONE and not header.transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer.producer_id} is in a transaction: end it before writing outside of it",
            )

    def on_missed(self, header: BatchHeader) -> None:
        """Record that a client's batch could not be written. Otherwise a later batch of an unknown producer
        would be taken for its first one: it would be stored before this one, or twice after both are retried.
        """
        if header.base_sequence >= 0 and header.producer_id not in self._producers:
            if len(self._missed) >= MAX_MISSED:
                del self._missed[next(iter(self._missed))]
            self._missed.setdefault(header.producer_id, (header.producer_epoch, header.base_sequence))

    def _check_missed(self, header: BatchHeader) -> None:
        epoch, expected = self._missed.get(header.producer_id, (NONE, NONE))
        if header.producer_epoch == epoch and header.base_sequence != expected:
            raise _out_of_order(header, expected)

    def ended_by(self, header: BatchHeader, marker: Marker) -> AbortedTransaction | None:
        """The entry for the transaction index if ``marker``, in ``header``'s batch, aborts a transaction."""
        start = self._open.get(header.producer_id)
        if start is None or marker.committed:
            return None
        others = (first for producer_id, first in self._open.items() if producer_id != header.producer_id)
        stable = next(others, header.last_offset + 1)
        return AbortedTransaction(header.producer_id, start, header.last_offset, stable)

    def note(self, header: BatchHeader, marker: Marker | None, now_ms: int) -> None:
        """Apply a batch that is in the log; ``marker`` is the content of a control batch."""
        producer_id = header.producer_id
        if producer_id < 0:
            return
        if self.saving is not None:
            self.saving.keep(producer_id)
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = ProducerEntry(producer_id)
            self._missed.pop(producer_id, None)
        producer.adopt_epoch(header.producer_epoch)
        producer.last_timestamp_ms = header.max_timestamp_ms
        producer.seen_ms = now_ms
        if marker is not None:
            producer.coordinator_epoch = marker.coordinator_epoch
            producer.transaction_start = NONE
            self._open.pop(producer_id, None)
        elif not header.control:
            self._note_data(producer, header)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that wrote nothing for ``expiration_ms`` and have no open transaction."""
        for producer in list(self):
            if producer.transaction_start == NONE and now_ms - producer.seen_ms >= expiration_ms:
                del self._producers[producer.producer_id]

    def _note_data(self, producer: ProducerEntry, header: BatchHeader) -> None:
        producer.batches.append(_to_remember(header))
        if header.transactional and producer.transaction_start == NONE:
            producer.transaction_start = header.base_offset
            self._open[producer.producer_id] = header.base_offset


def _to_remember(header: BatchHeader) -> AppendedBatch:
    fields = (header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp_ms)
    return AppendedBatch._make(fields)


def _due_sequence(producer: ProducerEntry) -> int:
    """The next sequence number of the producer's epoch."""
    last = producer.batches[-1].last_sequence if producer.batches else NONE
    return 0 if last == _LAST_SEQUENCE else last + 1


def _check_sequence(producer: ProducerEntry, header: BatchHeader) -> None:
    if producer.epoch == NONE:
        return
    expected = 0 if header.producer_epoch != producer.epoch else _due_sequence(producer)
    if header.base_sequence != expected:
        raise _out_of_order(header, expected)


def _out_of_order(header: BatchHeader, expected: int) -> KafkaError:
    return KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id} of epoch {header.producer_epoch} sent sequence number "
        f"{header.base_sequence}, {expected} is due: records before it are missing",
    )


_HEAD = struct.Struct(">hIi")
_CRC_END = 6
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1


def encode_snapshot(producers: Iterable[ProducerEntry]) -> bytes:
    """Return the content of a snapshot file."""
    return _snapshot_of([_encode_producer(producer) for producer in producers])


def _snapshot_of(entries: Sequence[bytes]) -> bytes:
    body = struct.pack(">i", len(entries)) + b"".join(entries)
    return _HEAD.pack(_VERSION, crc32c_function()(body), len(entries)) + body[4:]


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The producers of a snapshot file. Raises CorruptBatchError."""
    if len(data) < _HEAD.size:
        raise CorruptBatchError(f"producer snapshot of {len(data)} bytes")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptBatchError(f"producer snapshot of version {version}: only {_VERSION} is known")
    if crc != crc32c_function()(data[_CRC_END:]) or len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptBatchError("producer snapshot that does not match its checksum")
    return [_decode_producer(fields) for fields in _ENTRY.iter_unpack(data[_HEAD.size :])]


def write_snapshot(fs: FileSystem, folder: str, offset: int, producers: Iterable[ProducerEntry]) -> None:
    """Write ``<offset>.snapshot``. Raises OSError."""
    path = os.path.join(folder, file_name(offset, SNAPSHOT))
    write_whole(fs, path, encode_snapshot(producers), sync_folder=False)


def saving_path(folder: str, saving: Saving) -> str:
    """Return where a snapshot is written before it takes its place: the next start removes what is left."""
    return os.path.join(folder, f"{file_name(saving.offset, SNAPSHOT)}.saving.tmp")


def finish_saving(fs: FileSystem, folder: str, saving: Saving) -> None:
    """Write the snapshot now. Raises OSError."""
    while saving.step():
        pass
    path = os.path.join(folder, file_name(saving.offset, SNAPSHOT))
    write_whole(fs, path, saving.data(), sync_folder=False)


def write_saving(fs: FileSystem, folder: str, saving: Saving) -> None:
    """Write a snapshot whose producers are all taken, in any thread. Raises OSError."""
    path = saving_path(folder, saving)
    fs.remove(path)
    file = fs.file(path)
    try:
        file.write(0, saving.data())
        file.sync()
    finally:
        file.close()


def read_snapshot(fs: FileSystem, folder: str, offset: int) -> list[ProducerEntry]:
    """Read ``<offset>.snapshot``. Raises CorruptBatchError."""
    return decode_snapshot(read_whole(fs, os.path.join(folder, file_name(offset, SNAPSHOT))) or b"")


def remove_snapshot(fs: FileSystem, folder: str, offset: int) -> None:
    """Remove ``<offset>.snapshot``, if it is there. Raises OSError."""
    fs.remove(os.path.join(folder, file_name(offset, SNAPSHOT)))


def stray_snapshots(offsets: Iterable[int], bases: Iterable[int]) -> list[int]:
    """Return the offsets of snapshots that no recovery needs: neither at a segment's base nor the newest."""
    offsets = sorted(offsets)
    return sorted(set(offsets[:-1]).difference(bases))


def _encode_producer(one: ProducerEntry) -> bytes:
    last = one.batches[-1] if one.batches else AppendedBatch(-1, -1, 0, -1)
    ids = (one.producer_id, one.epoch)
    return _ENTRY.pack(*ids, *last[:3], one.last_timestamp_ms, one.coordinator_epoch, one.transaction_start)


def _decode_producer(fields: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp_ms, coordinator_epoch, transaction_start = fields
    producer = ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp_ms, transaction_start)
    batch = AppendedBatch(sequence, offset, delta, timestamp_ms)
    if batch.last_offset >= 0:
        producer.batches.append(batch)
    return producer
