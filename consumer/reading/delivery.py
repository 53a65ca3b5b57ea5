"""From fetched bytes to the user: a fetch buffer for each partition, taken in turn. No I/O.

Data is decoded when it is taken, a record batch at a time, so that what is buffered stays small and what is
given up costs nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import Any, NamedTuple

from ...protocol import CorruptBatchError, TopicPartition
from ..done.partition_session import PartitionSession
from ..done.tracker import Tracker
from ..errors import UNREADABLE, BatchTooLargeError
from ..events import Event, PartitionFailed, WindowFull
from ..record import Record, RecordBatch, Run
from .fetch_buffer import NOTHING, ArrowForm, FetchBuffer, HeldBytes, Made
from .fetched_records import ChunkReader
from .positions import Position, Positions

#: A batch that cannot be decoded is fetched this often, in case the network damaged it.
DECODE_TRIES = 3

#: Default for the bytes of one poll; records decoded together with its last record come on top. More would
#: keep the event loop, and so heartbeats, waiting.
POLL_BYTES = 16 * 1024 * 1024

#: Most records of a run: usually all that were decoded together.
RUN = 10_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """A partition's next data: ``reader`` is at its start, or ``records`` were already decoded."""

    session: PartitionSession
    reader: ChunkReader | None
    records: list[Record]


#: Makes Arrow batches of a chunk; raises CorruptBatchError.
MakeBatches = Callable[[Chunk, ArrowForm], list[Made]]


class Taken(NamedTuple):
    """Records that were taken together, and their ranges: session, first offset, end offset."""

    records: list[Record]
    parts: list[tuple[PartitionSession, int, int]]


@dataclass(slots=True, eq=False)
class Delivery:
    """``take`` returns records. Calls ``wake`` when there may be some, ``on_room`` when some were read, and
    ``on_jump`` when a partition is to be fetched from another offset than the next one.
    """

    positions: Positions
    tracker: Tracker
    _: KW_ONLY
    max_undone: int
    held_limit_bytes: InitVar[float] = math.inf
    wake: Callable[[], None]
    report: Callable[[Event], None]
    on_room: Callable[[], None] = lambda: None
    on_jump: Callable[[], None] = lambda: None
    halted: bool = False
    #: Called with each change of ``halted``: for those who hold delivered records that were not begun.
    halting: Callable[[bool], None] = lambda _: None
    #: The buffered bytes, and the memory that they hold.
    held: HeldBytes = field(init=False)
    #: Result of the last ``take``.
    last_taken: Taken = field(default_factory=lambda: Taken([], []))
    #: The run under way, and the buffer that it is from.
    _run: tuple[Run, FetchBuffer] | None = None
    _given: int = 0
    _buffers: dict[TopicPartition, FetchBuffer] = field(default_factory=dict)
    _turn: deque[FetchBuffer] = field(default_factory=deque)

    def __post_init__(self, held_limit_bytes: float) -> None:
        self.held = HeldBytes(held_limit_bytes)
        self.positions.disturbed = self.recall

    @property
    def buffered_bytes(self) -> int:
        """Bytes fetched and not decoded."""
        return self.held.unread

    def __repr__(self) -> str:
        return f"Delivery({len(self._buffers)} buffers, {self.held!r})"

    # from the fetcher

    def start(self, position: Position, *, moved_by_reset: bool = False) -> None:
        """Read on from a position that was set, in a new session unless a reset only went forward."""
        self.recall()
        partition = position.partition
        buffer = self._buffers.get(partition)
        if buffer is not None and moved_by_reset and position.fetch_offset >= buffer.session.position:
            return
        self.drop([partition])
        session = self.tracker.begin_session(
            partition,
            position.fetch_offset,
            committed=position.committed,
            leader_epoch=position.leader_epoch,
        )
        position.committed = None
        self._buffers[partition] = buffer = FetchBuffer(position, session)
        self._turn.append(buffer)

    def session(self, partition: TopicPartition) -> PartitionSession | None:
        """The partition's session; None before ``start``."""
        return self._buffers[partition].session if partition in self._buffers else None

    def delivered_to(self, partition: TopicPartition) -> int | None:
        """The next offset to deliver; None before ``start``."""
        self.recall()
        session = self.session(partition)
        return None if session is None else session.position

    def cut(self, position: Position) -> None:
        """The log was truncated at the position: drop what is buffered.

        The session goes on if no record behind the cut was delivered; otherwise it is over.
        """
        self.recall()
        buffer = self._buffers.get(position.partition)
        if buffer is not None and buffer.session.position <= position.fetch_offset:
            self._forget_buffered(buffer)
        else:
            self.drop([position.partition])

    def known_to(self, partition: TopicPartition, offset: int) -> None:
        """The log is known to be unchanged up to this offset, which is not before the next one to deliver."""
        if (session := self.session(partition)) is not None:
            session.cut(offset)

    def session_id(self, partition: TopicPartition) -> int:
        """Id of the partition's session, to stamp its records with."""
        return self._buffers[partition].session.session_id

    def undelivered_bytes(self, partition: TopicPartition) -> int:
        """Bytes fetched and not delivered."""
        return self._buffers[partition].buffered_bytes if partition in self._buffers else 0

    def put(self, reader: ChunkReader) -> None:
        """More data of a partition that was started."""
        buffer = self._buffers[reader.partition]
        buffer.readers.append(reader)
        self.held.add(reader)
        self.wake()

    # stopping

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop what is buffered; it will not be delivered from here."""
        self.recall()
        for partition in partitions:
            buffer = self._buffers.pop(partition, None)
            if buffer is not None:
                self._forget_buffered(buffer)
                self._set_full(buffer, False)
                self._turn.remove(buffer)

    def end(self, partition: TopicPartition) -> None:
        """``drop``, and end the session: its records can no longer be marked done, nor be committed."""
        self.drop([partition])
        self.tracker.end_session(partition)

    def halt(self, halted: bool) -> None:
        """Deliver nothing at all, or go on."""
        self.halted = halted
        self.halting(halted)
        self.recall()
        if not halted:
            self.wake()

    # to the user

    def take(self, limit: int, max_bytes: int | None = POLL_BYTES) -> list[Record]:
        """Up to ``limit`` records, of as many partitions as needed; empty when there are none now.

        Takes no further batch once those taken have ``max_bytes``, decompressed (None: without limit).
        """
        self.recall()
        taken_bytes = 0.0
        taken: list[Record] = []
        parts: list[tuple[PartitionSession, int, int]] = []
        for _ in range(len(self._turn)):
            if self.halted:
                break
            buffer = self._turn[0]
            while len(taken) < limit and self._is_ready(buffer):
                mean = buffer.batch.size / len(buffer.batch)
                records = self._take_from(buffer, limit - len(taken))
                taken += records
                parts.append((buffer.session, records[0].offset, records[-1].offset + 1))
                taken_bytes += mean * len(records)
                if max_bytes is not None and taken_bytes >= max_bytes:
                    limit = len(taken)
            if len(buffer.batch) and len(taken) >= limit:
                break
            # after a batch, or all that it has, it is the next buffer's turn
            self._turn.rotate(-1)
            if len(taken) >= limit:
                break
        self.tracker.given_out += bool(taken)
        self.last_taken = Taken(taken.copy(), parts)
        return taken

    def take_made(self, form: ArrowForm, make: MakeBatches) -> list[Any]:
        """The next batch that ``make`` makes of a partition's next chunk; empty when there is none now.

        The chunk's other batches wait, undelivered, for the next call with the same ``form``; any other way
        of reading has their records fetched again.
        """
        self.recall()
        for _ in range(len(self._turn)):
            buffer = self._turn[0]
            if buffer.made and buffer.form != form:
                self._fetch_again(buffer)
            while not self.halted and buffer.position.readable and not self._window_full(buffer):
                if buffer.made:
                    return [self._deliver_made(buffer)]
                if not self._make_batches(buffer, form, make):
                    break
            self._turn.rotate(-1)
        return []

    def _make_batches(self, buffer: FetchBuffer, form: ArrowForm, make: MakeBatches) -> bool:
        """Make batches of the next chunk; returns whether there was one."""
        if buffer.index < len(buffer.batch):
            made = make(Chunk(buffer.session, None, buffer.batch.records(buffer.index)), form)
            self._set_batch(buffer, NOTHING)
        elif buffer.readers:
            made = self._make_of_reader(buffer, form, make)
        else:
            return False
        buffer.form, buffer.made = form, deque(made)
        self.held.decoded += sum(each.batch.nbytes for each in made)
        return True

    def _make_of_reader(self, buffer: FetchBuffer, form: ArrowForm, make: MakeBatches) -> list[Made]:
        reader = buffer.readers[0]
        before = reader.size
        try:
            made = make(Chunk(buffer.session, reader, []), form)
        except UNREADABLE as error:
            # batches before the bad one that hold no records were passed
            self.held.count_read(before - reader.size)
            self._on_corrupt(buffer, error)
            return []
        self.held.count_read(before - reader.size)
        buffer.position.unreadable = 0
        if not reader.size:
            self.held.remove(buffer.readers.popleft())
        self.on_room()
        return made

    def _deliver_made(self, buffer: FetchBuffer) -> object:
        made = buffer.made.popleft()
        self.held.decoded -= made.batch.nbytes
        for run in made.runs:
            buffer.session.delivered_all(run)
        buffer.session.pass_by(made.end)
        self.tracker.given_out += 1
        if not buffer.made:
            # after a chunk it is the next buffer's turn
            self._turn.rotate(-1)
        return made.batch

    def deliver_again(self) -> None:
        """Nobody has the records that are delivered and not done: fetch and deliver them again."""
        self.recall()
        for session in self.tracker.sessions.values():
            if session.undone:
                session.taken_back(session.first)
                buffer = self._buffers.get(session.partition)
                if buffer is not None and buffer.session is session:
                    self._fetch_again(buffer)

    def run(self) -> Run | None:
        """Records of the next buffer, made one by one as they are taken; None when there are none now.

        All count as delivered until ``recall`` takes back those that were not taken. Every other call that
        changes anything recalls them first.
        """
        self.recall()
        buffer = self._next_buffer()
        if buffer is None:
            return None
        first = buffer.index
        room = min(RUN, self.max_undone - buffer.session.undone)
        buffer.index = end = min(first + room, len(buffer.batch))
        buffer.session.delivered_all(buffer.batch.rows.offsets[first:end])
        self.tracker.given_out += 1
        run = Run(buffer.batch, first, end)
        self._run = run, buffer
        return run

    def recall(self) -> None:
        """Take back the records of the last run that were not taken: they do not count as delivered."""
        under_way, self._run = self._run, None
        if under_way is None:
            return
        run, buffer = under_way
        given = run.recall()
        self._given += given
        if given < run.count:
            buffer.index -= run.count - given
            buffer.session.taken_back(buffer.batch.rows.offsets[buffer.index])
        elif buffer.index == len(buffer.batch):
            self._end_batch(buffer)
            self._turn.rotate(-1)

    def give_back(self, record: Record) -> None:
        """This record and all later ones of its partition count as not delivered: they are fetched again.

        Nothing happens if its session is over. None of them may be done.
        """
        self.recall()
        buffer = self._buffers.get(record.topic_partition)
        if buffer is None or buffer.session.session_id != record.session_id:
            return
        buffer.session.taken_back(record.offset)
        self._fetch_again(buffer)

    @property
    def not_taken(self) -> int:
        """Records of the current run that count as delivered and are not taken yet."""
        if self._run is None:
            return 0
        run, _ = self._run
        return run.count - run.given_count

    def next_offset(self, session: PartitionSession) -> int:
        """Offset of the next record to be taken of this session."""
        offset = None
        if self._run is not None:
            run, buffer = self._run
            offset = run.next_offset if buffer.session is session else None
        return session.position if offset is None else offset

    @property
    def taken_one_by_one(self) -> int:
        """Number of records taken from runs so far."""
        return self._given + (self._run[0].given_count if self._run is not None else 0)

    def _next_buffer(self) -> FetchBuffer | None:
        """The next buffer with a record to deliver now; it gets the turn."""
        for _ in range(0 if self.halted else len(self._turn)):
            if self._is_ready(self._turn[0]):
                return self._turn[0]
            self._turn.rotate(-1)
        return None

    def _take_from(self, buffer: FetchBuffer, limit: int) -> list[Record]:
        room = self.max_undone - buffer.session.undone
        first, last = buffer.index, min(buffer.index + min(limit, room), len(buffer.batch))
        buffer.index = last
        buffer.session.delivered_all(buffer.batch.rows.offsets[first:last])
        some = buffer.batch.records(first, last)
        if last == len(buffer.batch):
            self._end_batch(buffer)
        return some

    def _is_ready(self, buffer: FetchBuffer) -> bool:
        """Return whether the buffer has a record to deliver now; decodes the next batch if necessary."""
        if not buffer.position.readable or self._window_full(buffer):
            return False
        if buffer.made:
            self._fetch_again(buffer)
        while buffer.index >= len(buffer.batch):
            if not buffer.readers:
                return False
            self._decode_next(buffer)
        return True

    def _window_full(self, buffer: FetchBuffer) -> bool:
        full = buffer.session.undone >= self.max_undone
        if full and not buffer.full:
            session = buffer.session
            self.report(WindowFull(session.partition, session.undone, session.first))
        self._set_full(buffer, full)
        return full

    def _set_full(self, buffer: FetchBuffer, full: bool) -> None:
        self.tracker.awaited += full - buffer.full
        buffer.full = full

    def _decode_next(self, buffer: FetchBuffer) -> None:
        reader = buffer.readers[0]
        before = reader.size
        try:
            batch = reader.read_batch()
        except UNREADABLE as error:
            self.held.count_read(before - reader.size)
            self._on_corrupt(buffer, error)
            return
        self.held.count_read(before - reader.size)
        buffer.index = 0
        buffer.position.unreadable = 0
        buffer.session.read_under(reader.leader_epoch)
        if batch is not None:
            fresh = buffer.session.fresh_indexes(batch.rows.offsets)
            if fresh:
                self._set_batch(buffer, batch if len(fresh) == len(batch) else batch.only(fresh))
        if not len(buffer.batch):
            self._end_batch(buffer)
        self.on_room()

    def _end_batch(self, buffer: FetchBuffer) -> None:
        """A batch is delivered: pass the offsets up to the next one, and drop a finished reader."""
        self._set_batch(buffer, NOTHING)
        if buffer.readers:
            buffer.session.pass_by(buffer.readers[0].next_offset)
            if not buffer.readers[0].size:
                self.held.remove(buffer.readers.popleft())

    def _set_batch(self, buffer: FetchBuffer, batch: RecordBatch) -> None:
        self.held.decoded += batch.size - buffer.batch.size
        buffer.batch, buffer.index = batch, 0

    def _on_corrupt(self, buffer: FetchBuffer, error: CorruptBatchError | BatchTooLargeError) -> None:
        """Fetch the same offset again; after DECODE_TRIES times the partition fails.

        What is over a limit is so each time, and fails at once.
        """
        position = buffer.position
        self._fetch_again(buffer)
        position.unreadable += 1
        self.report(PartitionFailed(position.partition, error))
        if position.unreadable >= DECODE_TRIES or isinstance(error, BatchTooLargeError):
            self.positions.fail_position(position, error)

    def _fetch_again(self, buffer: FetchBuffer) -> None:
        """Drop what is buffered, and fetch from the next record to deliver on."""
        position = buffer.position
        self._forget_buffered(buffer)
        position.fetch_offset = buffer.session.position
        position.changed += 1
        position.damaged = False
        self.on_jump()

    def _forget_buffered(self, buffer: FetchBuffer) -> None:
        for reader in buffer.readers:
            self.held.remove(reader)
        buffer.readers.clear()
        self._set_batch(buffer, NOTHING)
        self.held.decoded -= sum(made.batch.nbytes for made in buffer.made)
        buffer.made.clear()

    # max_undone

    def made_room(self) -> None:
        """Records are done: a full partition may go on."""
        if any(buffer.full and buffer.session.undone < self.max_undone for buffer in self._turn):
            self.wake()
