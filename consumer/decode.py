"""Records from fetched bytes: checksums, codecs, control batches, aborted transactions (KIP-98).

aiokafka's compiled reader does the work where it is installed, kafka-python's otherwise.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from ..protocol import (
    BATCH_OVERHEAD,
    BatchHeader,
    Codec,
    CorruptBatchError,
    TopicPartition,
    decompress,
    parse_batch_header,
    verify_batch,
)
from .fetch_requests import AbortedTransaction
from .record import Record

_ATTRIBUTES_AT = 21
_CODEC_MASK = 0x07
_MARKER = struct.Struct(">hh")
_ABORT_MARKER = 0


class ChunkReader:
    """Reads the records of one partition's part of a Fetch response, a batch at a time.

    ``next_offset`` is where reading goes on after what was read; it passes control batches and aborted
    records, which are not given out under read_committed (control batches never are). A batch that is cut
    short at the end is left for the next fetch. ``leader_epoch`` is the one of the last batch read.
    """

    __slots__ = (
        "_aborted",
        "_aborting",
        "_check_crcs",
        "_data",
        "_epoch",
        "_generation",
        "_position",
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
        generation: int = -1,
        epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.next_offset = start_offset
        self.leader_epoch = -1
        self._data = memoryview(data)
        self._position = 0
        self._check_crcs = check_crcs
        self._generation = generation
        self._epoch = epoch
        self._aborted = sorted(aborted, key=lambda a: a.first_offset, reverse=True)
        self._aborting: set[int] = set()

    def __repr__(self) -> str:
        return f"ChunkReader({self.partition}, at {self.next_offset}, {self.size} bytes left)"

    @property
    def rest(self) -> memoryview:
        """The bytes not read yet."""
        return self._data[self._position :]

    @property
    def transactions(self) -> list[AbortedTransaction]:
        """The aborted transactions that matter to the bytes not read yet."""
        begun = [AbortedTransaction(producer, 0) for producer in self._aborting]
        return begun + list(reversed(self._aborted))

    @property
    def size(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._position

    def read(self) -> list[Record]:
        """The records of the next batch that has any; empty at the end.

        Raises CorruptBatchError, with its position in these bytes; reading stays where it was.
        """
        while (header := self._next_header()) is not None:
            start = self.next_offset
            records = self._records(header)
            self._position += header.size
            self.next_offset = max(start, header.next_offset)
            self.leader_epoch = header.leader_epoch
            if records:
                return records
        self._position = len(self._data)
        return []

    def _next_header(self) -> BatchHeader | None:
        if self.size < BATCH_OVERHEAD:
            return None
        header = parse_batch_header(self._data, self._position)
        if self.size < header.size:
            return None
        if self._check_crcs:
            verify_batch(self._data, header, self._position)
        return header

    def _records(self, header: BatchHeader) -> list[Record]:
        self._begin_aborts(header.last_offset)
        if header.last_offset < self.next_offset and not header.control:
            return []
        if header.control:
            self._end_abort(header)
            return []
        if header.transactional and header.producer_id in self._aborting:
            return []
        topic, number = self.partition
        generation, epoch = self._generation, self._epoch
        try:
            records = [
                Record(topic, number, r.offset, r.timestamp, r.key, r.value, r.headers, generation, epoch)
                for r in self._rows(header)
            ]
        except Exception as error:
            raise self._unreadable(header, error) from error
        if header.base_offset < self.next_offset:
            records = [record for record in records if record.offset >= self.next_offset]
        return records

    def _unreadable(self, header: BatchHeader, error: Exception) -> CorruptBatchError:
        """The readers trip over bytes in their own ways: all of them mean the same."""
        return CorruptBatchError(
            f"records of {self.partition} from offset {header.base_offset} cannot be read: {error!r}",
            self._position,
        )

    def _rows(self, header: BatchHeader) -> Iterable[Any]:
        raw = self._data[self._position : self._position + header.size]
        if header.codec == Codec.NONE:
            return _reader()(bytes(raw))
        plain = bytearray(raw[:BATCH_OVERHEAD])
        plain[_ATTRIBUTES_AT + 1] &= ~_CODEC_MASK
        plain += decompress(header.codec, raw[BATCH_OVERHEAD:])
        return _reader()(bytes(plain))

    def _begin_aborts(self, last_offset: int) -> None:
        while self._aborted and self._aborted[-1].first_offset <= last_offset:
            self._aborting.add(self._aborted.pop().producer_id)

    def _end_abort(self, header: BatchHeader) -> None:
        try:
            keys = [row.key for row in self._rows(header)]
        except Exception as error:
            raise self._unreadable(header, error) from error
        for key in keys:
            if key is not None and len(key) >= _MARKER.size:
                _, kind = _MARKER.unpack_from(key)
                if kind == _ABORT_MARKER:
                    self._aborting.discard(header.producer_id)


@cache
def _reader() -> Callable[[bytes], Iterable[Any]]:
    """The batch reader: from whole batch bytes, not compressed, to its records."""
    try:
        from aiokafka.record._crecords.default_records import DefaultRecordBatch
    except ImportError:
        from kafka.record.default_records import DefaultRecordBatch
    reader: Callable[[bytes], Iterable[Any]] = DefaultRecordBatch
    return reader


def end_of_run(data: bytes | memoryview, offset: int, leader_epoch: int = -1) -> tuple[int, int]:
    """The offset to fetch after these bytes, behind the last whole batch, and that batch's leader epoch.

    What was given, if no batch is whole. Raises CorruptBatchError for bytes that are no batches.
    """
    position = 0
    while len(data) - position >= BATCH_OVERHEAD:
        header = parse_batch_header(data, position)
        position += header.size
        if position > len(data):
            break
        offset = max(offset, header.next_offset)
        leader_epoch = header.leader_epoch
    return offset, leader_epoch
