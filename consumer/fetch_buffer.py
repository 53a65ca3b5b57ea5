"""What buffered records keep in memory: whole answers, of which they may be a small part. No I/O."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ..protocol import TopicPartition
from .decode import ChunkReader
from .partition_session import PartitionSession
from .positions import Position
from .record import RecordBatch, Rows

NOTHING = RecordBatch(TopicPartition("", -1), Rows((), (), (), (), None))

#: Of the limit, what answers may hold beyond what is unread of them before the unread part is copied out.
_WASTE_SHARE = 1 / 4
#: An answer is let go by copying out what is unread once that is no more than this share of it.
_UNREAD_SHARE = 1 / 2


@dataclass(slots=True, eq=False)
class FetchBuffer:
    """What is fetched of a partition and not delivered: ``batch`` from ``index`` on, then ``readers``."""

    position: Position
    session: PartitionSession
    readers: deque[ChunkReader] = field(default_factory=deque)
    batch: RecordBatch = NOTHING
    index: int = 0
    full: bool = False

    @property
    def buffered_bytes(self) -> int:
        return sum(reader.size for reader in self.readers)


@dataclass(slots=True, eq=False)
class _Answer:
    """An answer's bytes, and the readers that hold it by theirs."""

    size: int
    readers: dict[int, ChunkReader] = field(default_factory=dict)

    @property
    def unread(self) -> int:
        return sum(reader.size for reader in self.readers.values())


class HeldBytes:
    """Counts ``unread`` bytes, and ``total``: those of whole answers, and of batches that were taken apart.

    A long answer is read where the socket wrote it, by all its partitions. While one of them waits, all of it
    stays in memory: when that comes to a share of ``limit_bytes``, what waits is copied out.
    """

    def __init__(self, limit_bytes: float) -> None:
        self.unread = 0
        #: Of batches taken apart and not delivered to their end.
        self.decoded = 0
        self._limit = limit_bytes * _WASTE_SHARE
        self._answers: dict[int, _Answer] = {}
        self._in_answers = 0

    def __repr__(self) -> str:
        return f"HeldBytes({self.unread} unread, {self.total} in all)"

    @property
    def total(self) -> int:
        return self._in_answers + self.decoded

    def add(self, reader: ChunkReader) -> None:
        self.unread += reader.size
        self._keep(reader)
        if self._in_answers - self.unread > self._limit:
            self._copy_out()

    def read(self, count: int) -> None:
        """So many bytes of some reader were read."""
        self.unread -= count

    def remove(self, reader: ChunkReader) -> None:
        """The reader is at its end, or forgotten."""
        self.unread -= reader.size
        self._release(reader)

    def _keep(self, reader: ChunkReader) -> None:
        memory = reader.memory
        answer = self._answers.get(id(memory))
        if answer is None:
            answer = self._answers[id(memory)] = _Answer(len(memory))
            self._in_answers += answer.size
        answer.readers[id(reader)] = reader

    def _release(self, reader: ChunkReader) -> None:
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
                    self._release(reader)
                    reader.copy_out()
                    self._keep(reader)
