"""Fetched and undelivered data of a partition, and the memory that all of it holds. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...protocol import TopicPartition
from ..done.partition_session import PartitionSession
from ..record import RecordBatch, Rows
from .fetched_records import ChunkReader
from .positions import Position

NOTHING = RecordBatch(TopicPartition("", -1), Rows((), (), (), (), None))

#: Share of the limit that responses may hold beyond their unread parts, before these are copied out.
_WASTE_SHARE = 1 / 4
#: The unread part of a response is copied out if it is at most this share of it.
_UNREAD_SHARE = 1 / 2


class ArrowForm(NamedTuple):
    """How Arrow batches are made."""

    include_headers: bool
    max_rows: int


class Made(NamedTuple):
    """An Arrow batch that is not delivered: its records are in ``runs`` of offsets, and before ``end`` there
    are no others.
    """

    batch: Any
    runs: Sequence[range]
    end: int


@dataclass(slots=True, eq=False)
class FetchBuffer:
    """Data of a partition that is not delivered: ``made`` in ``form``, or ``batch`` from ``index`` on; then
    ``readers``.
    """

    position: Position
    session: PartitionSession
    readers: deque[ChunkReader] = field(default_factory=deque)
    batch: RecordBatch = NOTHING
    index: int = 0
    made: deque[Made] = field(default_factory=deque)
    form: ArrowForm | None = None
    full: bool = False

    @property
    def buffered_bytes(self) -> int:
        """Bytes fetched and not delivered."""
        return sum(reader.size for reader in self.readers)


@dataclass(slots=True, eq=False)
class _Answer:
    """A response, and the readers whose bytes are parts of it."""

    size: int
    readers: dict[int, ChunkReader] = field(default_factory=dict)

    @property
    def unread(self) -> int:
        return sum(reader.size for reader in self.readers.values())


class HeldBytes:
    """Counts ``unread`` bytes, and ``total`` bytes in memory: whole responses, and decoded batches.

    The readers of all partitions in a response share its buffer, which stays in memory until the last one is
    read. When that wastes a share of ``limit_bytes``, unread parts are copied out.
    """

    def __init__(self, limit_bytes: float) -> None:
        self.unread = 0
        #: Bytes of decoded batches that are not fully delivered.
        self.decoded = 0
        self._limit = limit_bytes * _WASTE_SHARE
        self._answers: dict[int, _Answer] = {}
        self._in_answers = 0

    def __repr__(self) -> str:
        return f"HeldBytes({self.unread} unread, {self.total} in all)"

    @property
    def total(self) -> int:
        """Bytes of all responses that something still refers to, and of decoded records."""
        return self._in_answers + self.decoded

    def add(self, reader: ChunkReader) -> None:
        """Count a reader's bytes, and its response's buffer."""
        self.unread += reader.size
        self._keep_reader(reader)
        if self._in_answers - self.unread > self._limit:
            self._copy_out()

    def count_read(self, count: int) -> None:
        """Count bytes of a reader as read."""
        self.unread -= count

    def remove(self, reader: ChunkReader) -> None:
        """Stop counting a reader that is at its end, or dropped."""
        self.unread -= reader.size
        self._release_reader(reader)

    def _keep_reader(self, reader: ChunkReader) -> None:
        memory = reader.memory
        answer = self._answers.get(id(memory))
        if answer is None:
            answer = self._answers[id(memory)] = _Answer(len(memory))
            self._in_answers += answer.size
        answer.readers[id(reader)] = reader

    def _release_reader(self, reader: ChunkReader) -> None:
        key = id(reader.memory)
        answer = self._answers[key]
        del answer.readers[id(reader)]
        if not answer.readers:
            self._in_answers -= answer.size
            del self._answers[key]

    def _copy_out(self) -> None:
        for answer in list(self._answers.values()):
            if answer.unread <= answer.size * _UNREAD_SHARE:
                for reader in list(answer.readers.values()):
                    self._release_reader(reader)
                    reader.copy_out()
                    self._keep_reader(reader)
