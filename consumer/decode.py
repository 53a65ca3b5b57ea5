"""Records from fetched bytes: checksums, codecs, control batches, aborted transactions (KIP-98).

Larger batches are decoded by numpy if it is installed, others by aiokafka's compiled reader if that is, and
by kafka-python's otherwise.
"""

from __future__ import annotations

import asyncio
import importlib
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from ..protocol import (
    BATCH_OVERHEAD,
    MAX_DECOMPRESSED_BYTES,
    BatchHeader,
    CorruptBatchError,
    TopicPartition,
    decompress,
    kafka_module,
    parse_batch_header,
    verify_batch,
)
from ..protocol.messages.fetch import AbortedTransaction
from .record import Record, RecordBatch, Rows

T = TypeVar("T")

#: From this number of records on, the fixed cost of columns pays.
COLUMNS_FROM = 64

#: About this many records, or bytes, are decoded at once: small batches together, so that each costs little.
RUN_RECORDS = 4_000
RUN_BYTES = 4 * 1024 * 1024

_ATTRIBUTES_AT = 21
_CODEC_MASK = 0x07
_MARKER = struct.Struct(">hh")
_ABORT_MARKER = 0


_MAX_VARINT_BYTES = 10


class _Found(NamedTuple):
    """A batch to deliver: its header, its decompressed records, and the position before it."""

    header: BatchHeader
    overhead: bytes
    payload: bytes | memoryview
    position: int
    next_offset: int


class ChunkReader:
    """Reads the records of one partition's part of a Fetch response, some batches at a time.

    ``next_offset`` is the one after what was read. It passes control batches and, under read_committed,
    aborted records, which are not returned. A batch cut short at the end is left for the next fetch.
    ``leader_epoch`` is that of the last batch read. ``damage`` is the error behind the last readable batch;
    it is raised when reading gets there.
    """

    __slots__ = (
        "_aborted",
        "_aborting",
        "_check_crcs",
        "_damage",
        "_data",
        "_generation",
        "_max_batch_bytes",
        "_position",
        "_session_id",
        "leader_epoch",
        "next_offset",
        "partition",
    )

    def __init__(
        self,
        partition: TopicPartition,
        data: bytes | memoryview,
        start_offset: int,
        *,
        aborted: Sequence[AbortedTransaction] = (),
        check_crcs: bool = True,
        max_batch_bytes: int = MAX_DECOMPRESSED_BYTES,
        damage: CorruptBatchError | None = None,
        generation: int = -1,
        session_id: int = 0,
    ) -> None:
        self.partition = partition
        self.next_offset = start_offset
        self.leader_epoch = -1
        self._data = memoryview(data)
        self._position = 0
        self._check_crcs = check_crcs
        self._max_batch_bytes = max_batch_bytes
        self._damage = damage
        self._generation = generation
        self._session_id = session_id
        self._aborted = sorted(aborted, key=lambda a: a.first_offset, reverse=True)
        self._aborting: set[int] = set()

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
    def rest(self) -> memoryview:
        """The unread bytes, for another reader; call ``pass_over`` afterwards."""
        return self._data[self._position :]

    def pass_over(self, size: int) -> None:
        """Another reader has read this many bytes of ``rest``, whole batches; 0 if there was no whole one.

        In that case the rest is passed, or ``damage`` raised if it is known.
        """
        end = self._position + size if size else len(self._data)
        if not size and self._damage is not None:
            raise self._damage
        while self._position < end and size:
            header = parse_batch_header(self._data, self._position)
            self._begin_aborts(header.last_offset)
            if header.control and self._aborting:
                self._end_abort(self._found(header))
            self._go_on(header)
        self._position = end

    @property
    def max_batch_bytes(self) -> int:
        """Limit of the size of a decompressed batch."""
        return self._max_batch_bytes

    @property
    def transactions(self) -> list[AbortedTransaction]:
        """The aborted transactions that concern the unread bytes."""
        begun = [AbortedTransaction(producer, 0) for producer in self._aborting]
        return begun + list(reversed(self._aborted))

    @property
    def size(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._position

    def read(self) -> list[Record]:
        """The records of the next batch that has any; empty at the end. Raises what ``read_batch`` raises."""
        batch = self.read_batch()
        return [] if batch is None else batch.records()

    def read_batch(self) -> RecordBatch | None:
        """The records of the next batches, RUN_RECORDS, RUN_BYTES or a few more; None at the end.

        Raises CorruptBatchError, with its position in these bytes; reading stays where it was, before the bad
        batch: what is before that is given first.
        """
        while self.size:
            start, run = self.next_offset, self._next_run()
            if run and (rows := self._rows(run, start)).offsets:
                size = sum(len(found.payload) for found in run)
                return RecordBatch(self.partition, rows, self._generation, self._session_id, size)
        return None

    def _next_run(self) -> list[_Found]:
        run: list[_Found] = []
        records = size = 0
        while records < RUN_RECORDS and size < RUN_BYTES:
            try:
                header = self._next_header()
                if header is None:
                    if self._damage is not None:
                        raise self._damage
                    self._position = len(self._data)
                    break
                found = self._find(header)
            except CorruptBatchError:
                if run:
                    break
                raise
            if found is not None:
                run.append(found)
                records += header.record_count
                size += len(found.payload)
            self._go_on(header)
        return run

    def _go_on(self, header: BatchHeader) -> None:
        self._position += header.size
        self.next_offset = max(self.next_offset, header.next_offset)
        self.leader_epoch = header.leader_epoch

    def _next_header(self) -> BatchHeader | None:
        if self.size < BATCH_OVERHEAD:
            return None
        header = parse_batch_header(self._data, self._position)
        if self.size < header.size:
            return None
        if self._check_crcs:
            verify_batch(self._data, header, self._position)
        return header

    def _find(self, header: BatchHeader) -> _Found | None:
        """The batch at this position, decompressed; None if nothing of it is to be delivered."""
        self._begin_aborts(header.last_offset)
        if header.last_offset < self.next_offset and not header.control:
            return None
        if header.transactional and not header.control and header.producer_id in self._aborting:
            return None
        found = self._found(header)
        if header.control:
            self._end_abort(found)
            return None
        return found

    def _found(self, header: BatchHeader) -> _Found:
        if header.record_count < 0:
            raise CorruptBatchError(f"a batch of {header.record_count} records", self._position)
        raw = self._data[self._position : self._position + header.size]
        try:
            payload = decompress(header.codec, raw[BATCH_OVERHEAD:], self._max_batch_bytes)
        except Exception as error:
            raise self._unreadable(header, self._position, error) from error
        return _Found(header, bytes(raw[:BATCH_OVERHEAD]), payload, self._position, self.next_offset)

    def _rows(self, run: list[_Found], start: int) -> Rows:
        records = sum(found.header.record_count for found in run)
        if records >= COLUMNS_FROM and (plain_rows := _by_columns()) is not None:
            rows = plain_rows([(found.header, found.payload) for found in run])
            if rows is not None:
                return rows if rows.offsets[0] >= start else rows.part(bisect_left(rows.offsets, start))
        fields: list[tuple[Any, ...]] = []
        for found in run:
            try:
                fields += _fields(found)
            except Exception as error:
                unreadable = self._unreadable(found.header, found.position, error)
                self._position, self.next_offset = found.position, found.next_offset
                if not fields:
                    raise unreadable from error
                break
            self.leader_epoch = found.header.leader_epoch
        fields = fields[bisect_left(fields, start, key=itemgetter(0)) :]
        return Rows(*zip(*fields, strict=True)) if fields else Rows((), (), (), (), None)

    def _unreadable(self, header: BatchHeader, position: int, error: Exception) -> CorruptBatchError:
        """One error for all the errors that the readers raise."""
        return CorruptBatchError(
            f"records of {self.partition.topic}-{self.partition.partition} from offset "
            f"{header.base_offset} cannot be read: {error}",
            position,
        )

    def _begin_aborts(self, last_offset: int) -> None:
        while self._aborted and self._aborted[-1].first_offset <= last_offset:
            self._aborting.add(self._aborted.pop().producer_id)

    def _end_abort(self, found: _Found) -> None:
        try:
            keys = [row.key for row in _each(found)]
        except Exception as error:
            raise self._unreadable(found.header, found.position, error) from error
        for key in keys:
            if key is not None and len(key) >= _MARKER.size:
                _, kind = _MARKER.unpack_from(key)
                if kind == _ABORT_MARKER:
                    self._aborting.discard(found.header.producer_id)


def _fields(found: _Found) -> list[tuple[Any, ...]]:
    try:
        return [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in _each(found)]
    except UnicodeDecodeError:
        return list(_read_records(found.header, found.payload))


def _each(found: _Found) -> Iterable[Any]:
    """The records of a batch, one by one."""
    plain = bytearray(found.overhead)
    plain[_ATTRIBUTES_AT + 1] &= ~_CODEC_MASK
    return _reader()(bytes(plain + found.payload))


def prepare() -> None:
    """Load the readers, which takes long, before the first records come.

    Not kafka-python's: other threads may be loading parts of it, and its imports are not safe then.
    """
    _by_columns()
    with suppress(ImportError):
        importlib.import_module("aiokafka.record._crecords.default_records")


async def off_the_loop(load: Callable[[], T]) -> T:
    """Run ``load`` in a thread, so that heartbeats do not wait for it, and return its result."""
    with ThreadPoolExecutor(1) as other:
        return await asyncio.get_running_loop().run_in_executor(other, load)


@cache
def _by_columns() -> Callable[[Sequence[tuple[BatchHeader, bytes | memoryview]]], Rows | None] | None:
    try:
        from .columns import plain_rows
    except ImportError:
        return None
    return plain_rows


@cache
def _reader() -> Callable[[bytes], Iterable[Any]]:
    """The batch reader: from whole batch bytes, not compressed, to its records."""
    try:
        from aiokafka.record._crecords.default_records import DefaultRecordBatch
    except ImportError:
        DefaultRecordBatch = kafka_module("kafka.record.default_records").DefaultRecordBatch  # noqa: N806
    reader: Callable[[bytes], Iterable[Any]] = DefaultRecordBatch
    return reader


def end_of_run(
    data: bytes | memoryview, offset: int, leader_epoch: int = -1
) -> tuple[int, int, CorruptBatchError | None]:
    """The offset to fetch after these bytes, behind the last whole batch, and that batch's leader epoch.

    Both are the given ones if no batch is whole. The third value is the error of the bytes behind: they are
    no batch, or there is not one whole batch, which a broker always sends.
    """
    position = 0
    damage: CorruptBatchError | None = None
    while len(data) - position >= BATCH_OVERHEAD:
        try:
            header = parse_batch_header(data, position)
        except CorruptBatchError as error:
            damage = error
            break
        if position + header.size > len(data):
            break
        position += header.size
        offset = max(offset, header.next_offset)
        leader_epoch = header.leader_epoch
    if not position and damage is None:
        damage = CorruptBatchError(f"no whole record batch in {len(data)} bytes", 0)
    return offset, leader_epoch, damage


def _read_records(header: BatchHeader, data: bytes | memoryview) -> Iterator[tuple[Any, ...]]:
    """Offset, time, key, value and headers of each record, for batches that compiled readers refuse.

    Those are batches with header names that are not UTF-8, which are replaced as Java's clients do. ``data``
    is decompressed. Raises CorruptBatchError, or IndexError, for bytes that are no records.
    """
    reader = _Reader(data)
    for _ in range(header.record_count):
        end = reader.varint() + reader.at
        reader.at += 1  # attributes, of which there are none
        timestamp = header.base_timestamp_ms + reader.varint()
        offset = header.base_offset + reader.varint()
        key, value = reader.piece(), reader.piece()
        headers = tuple(reader.header() for _ in range(reader.varint()))
        if reader.at != end:
            raise CorruptBatchError(f"the record at offset {offset} does not end where its length says")
        yield offset, header.max_timestamp_ms if header.log_append_time else timestamp, key, value, headers


class _Reader:
    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self.at = 0

    def varint(self) -> int:
        value = 0
        for nth in range(_MAX_VARINT_BYTES):
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << (7 * nth)
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise CorruptBatchError("a number of more than ten bytes")

    def piece(self) -> bytes | None:
        """Bytes behind their length; None for null."""
        size = self.varint()
        if size < 0:
            return None
        begin, self.at = self.at, self.at + size
        if self.at > len(self._data):
            raise CorruptBatchError(f"a field of {size} bytes with {len(self._data) - begin} left")
        return bytes(self._data[begin : self.at])

    def header(self) -> tuple[str, bytes | None]:
        return (self.piece() or b"").decode("utf-8", "replace"), self.piece()
