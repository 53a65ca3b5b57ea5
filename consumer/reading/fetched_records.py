"""Records from fetched bytes: checksums, codecs, control batches, aborted transactions (KIP-98).

The key of the one record of a transaction's marker is an int16 version and an int16 type: 0 aborted,
1 committed.
"""

from __future__ import annotations

import asyncio
import struct
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import NamedTuple, TypeVar

from ...protocol import (
    BATCH_OVERHEAD,
    MAX_DECOMPRESSED_BYTES,
    BatchHeader,
    CorruptBatchError,
    TopicPartition,
    batch_extent,
    crc32c_function,
    decompress,
    parse_batch_header,
    verify_batch,
)
from ...protocol.messages.fetch import AbortedTransaction
from ...protocol.records import RecordColumns, iter_records, read_records
from ..errors import BatchTooLargeError
from ..record import Record, RecordBatch, Rows

T = TypeVar("T")

#: About this many records, or bytes, are decoded at once: small batches together, so that each costs little.
RUN_RECORDS = 4_000
RUN_BYTES = 4 * 1024 * 1024

_MAGIC, _MAGIC_AT = 2, 16
#: Key of a record that ends a transaction: version, and what became of it.
_MARKER = struct.Struct(">hh")
_ABORT_MARKER = 0


class FetchedBatch(NamedTuple):
    """A batch to deliver: ``payload`` is decompressed. The last two are the reader's before the batch."""

    header: BatchHeader
    payload: bytes | memoryview
    position: int
    next_offset: int


@dataclass(slots=True, eq=False)
class ChunkReader:
    """Reads the records of one partition's part of a Fetch response, some batches at a time.

    ``next_offset`` is the one after what was read. It passes control batches and, under read_committed,
    aborted records, which are not returned. A batch cut short at the end is left for the next fetch.
    ``leader_epoch`` is that of the last batch read. ``damage`` is the error after the last readable batch; it
    is raised when reading gets there.
    """

    partition: TopicPartition
    data: InitVar[bytes | memoryview]
    next_offset: int
    _: KW_ONLY
    aborted: Sequence[AbortedTransaction] = ()
    check_crcs: bool = True
    max_batch_bytes: int = MAX_DECOMPRESSED_BYTES
    damage: CorruptBatchError | BatchTooLargeError | None = None
    generation: int = -1
    session_id: int = 0
    leader_epoch: int = -1
    _data: memoryview = field(init=False)
    _position: int = 0
    _aborted: list[AbortedTransaction] = field(init=False)
    _aborting: set[int] = field(default_factory=set)

    def __post_init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._aborted = sorted(self.aborted, key=lambda a: a.first_offset, reverse=True)

    def __repr__(self) -> str:
        return f"ChunkReader({self.partition}, at {self.next_offset}, {self.size} bytes left)"

    @property
    def memory(self) -> bytes | bytearray:
        """The buffer that these bytes are in, perhaps a small part of it."""
        memory: bytes | bytearray = self._data.obj  # type: ignore[assignment]
        return memory

    def copy_out(self) -> None:
        """Copy the unread bytes, so that the rest of the buffer can be freed."""
        self._data = memoryview(bytes(self._data[self._position :]))
        self._position = 0

    @property
    def size(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._position

    @property
    def unread(self) -> memoryview:
        """The bytes that are not read yet, from the batch on at which reading has failed."""
        return self._data[self._position :]

    def read(self) -> list[Record]:
        """The records of the next batch that has any; empty at the end. Raises what ``read_batch`` raises."""
        batch = self.read_batch()
        return [] if batch is None else batch.records()

    def read_batch(self) -> RecordBatch | None:
        """The records of the next run that has any; None at the end. Raises what ``next_run`` raises."""
        while run := self.next_run():
            if (rows := self._rows_of(run)).offsets:
                size = sum(len(batch.payload) for batch in run)
                return RecordBatch(self.partition, rows, self.generation, self.session_id, size)
        return None

    def next_run(self, most: int = RUN_RECORDS, end: int | None = None) -> list[FetchedBatch]:
        """The next batches: ``most`` records or RUN_BYTES, or a few more. [] at the end, or at offset
        ``end``.

        Raises ``damage``, or CorruptBatchError with the position in these bytes, if the next batch is bad;
        batches before it are returned first.
        """
        run: list[FetchedBatch] = []
        records = size = 0
        # small batches come by the thousand: nothing here is asked twice
        while records < most and size < RUN_BYTES and (self._position < len(self._data) or self.damage):
            try:
                header = self._next_header()
                if header is None and self.damage is not None:
                    raise self.damage
                if header is None or (end is not None and header.base_offset >= end):
                    self._position = len(self._data)
                    break
                batch = self._find_batch(header)
            except CorruptBatchError:
                if run:
                    break
                raise
            if batch is not None:
                run.append(batch)
                records += header.record_count
                size += len(batch.payload)
            self._position += header.size
            if (after := header.next_offset) > self.next_offset:
                self.next_offset = after
            self.leader_epoch = header.leader_epoch
        return run

    def _next_header(self) -> BatchHeader | None:
        left = len(self._data) - self._position
        if left < BATCH_OVERHEAD:
            return None
        header = parse_batch_header(self._data, self._position)
        return header if header.size <= left else None

    def _find_batch(self, header: BatchHeader) -> FetchedBatch | None:
        """The batch at this position, decompressed; None if nothing of it is to be delivered."""
        if self.check_crcs:
            verify_batch(self._data, header, self._position)
        last_offset = header.last_offset
        while self._aborted and self._aborted[-1].first_offset <= last_offset:
            self._aborting.add(self._aborted.pop().producer_id)
        if header.control:
            # compaction removes the marker, but keeps the batch as long as its producer may return
            if header.record_count and self._is_abort(self._unpack_batch(header)):
                self._aborting.discard(header.producer_id)
            return None
        aborted = self._aborting and header.transactional and header.producer_id in self._aborting
        if aborted or last_offset < self.next_offset or not header.record_count:
            return None
        return self._unpack_batch(header)

    def _unpack_batch(self, header: BatchHeader) -> FetchedBatch:
        if header.record_count < 0:
            raise CorruptBatchError(f"a batch of {header.record_count} records", self._position)
        position = self._position
        payload: bytes | memoryview = self._data[position + BATCH_OVERHEAD : position + header.size]
        if codec := header.codec:
            try:
                payload = decompress(codec, payload, self.max_batch_bytes)
            except Exception as error:
                raise self._unreadable_error(header, position, error) from error
        return FetchedBatch(header, payload, position, self.next_offset)

    def _rows_of(self, run: list[FetchedBatch]) -> Rows:
        start = run[0].next_offset
        columns = RecordColumns([], [], [], [], [])
        for batch in run:
            try:
                read_records(batch.payload, batch.header, columns)
            except CorruptBatchError as error:
                unreadable = self._unreadable_error(batch.header, batch.position, error)
                self._position, self.next_offset = batch.position, batch.next_offset
                if not columns.offsets:
                    raise unreadable from error
                break
            self.leader_epoch = batch.header.leader_epoch
        offsets, headers = columns.offsets, columns.headers
        if headers:
            headers += [()] * (len(offsets) - len(headers))
        rows = Rows(*columns[:-1], headers or None)
        return rows if offsets[0] >= start else rows.part(bisect_left(offsets, start))

    def _unreadable_error(self, header: BatchHeader, position: int, error: Exception) -> CorruptBatchError:
        """One error for all that keeps a batch from being read."""
        return CorruptBatchError(
            f"records of {self.partition.topic}-{self.partition.partition} from offset "
            f"{header.base_offset} cannot be read: {error}",
            position,
        )

    def _is_abort(self, marker: FetchedBatch) -> bool:
        try:
            _, _, key, _, _ = next(iter_records(bytes(marker.payload), marker.header))
            return bool(_MARKER.unpack_from(key or b"")[1] == _ABORT_MARKER)
        except Exception as error:
            raise self._unreadable_error(marker.header, marker.position, error) from error


def prepare_checksum() -> None:
    """Load the checksum, which takes long, before the first records come."""
    crc32c_function()


async def off_the_loop(load: Callable[[], T]) -> T:
    """Run ``load`` in a thread, so that heartbeats do not wait for it, and return its result."""
    with ThreadPoolExecutor(1) as other:
        return await asyncio.get_running_loop().run_in_executor(other, load)


def end_of_run(
    data: bytes | memoryview, offset: int, leader_epoch: int = -1
) -> tuple[int, int, CorruptBatchError | None]:
    """The offset to fetch after these bytes, after the last whole batch, and that batch's leader epoch.

    Both are the given ones if no batch is whole. The third value is the error of the bytes after it: they are
    not a batch, or there is no whole batch at all, although brokers always send one.
    """
    position = 0
    damage: CorruptBatchError | None = None
    while len(data) - position >= BATCH_OVERHEAD:
        try:
            size, after, epoch = batch_extent(data, position)
        except CorruptBatchError as error:
            damage = error
            break
        if position + size > len(data):
            break
        position += size
        if after > offset:
            offset = after
        leader_epoch = epoch
    if not position and damage is None:
        old = len(data) > _MAGIC_AT and data[_MAGIC_AT] < _MAGIC
        damage = CorruptBatchError(
            f"a record of the old format, magic {data[_MAGIC_AT]}: only 2 is known"
            if old
            else f"no whole record batch in {len(data)} bytes",
            0,
        )
    return offset, leader_epoch, damage
