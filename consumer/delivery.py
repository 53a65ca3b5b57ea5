"""From fetched bytes to the user: one lane of buffered data per partition, taken in turn. No I/O.

Data is decoded when it is taken, a record batch at a time, so that what is buffered stays small and what is
given up costs nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ..protocol import CorruptBatchError, TopicPartition
from .decode import ChunkReader
from .events import Event, PartitionFailed, WindowFull
from .held import HeldBytes
from .partition_session import PartitionSession
from .positions import Position, Positions
from .record import Record, RecordBatch, Rows
from .run import Run
from .tracker import Tracker

T = TypeVar("T")

#: A batch that cannot be decoded is fetched so often (it may be the network's doing), then it is an error.
DECODE_TRIES = 3

NOTHING = RecordBatch(TopicPartition("", -1), Rows((), (), (), (), None))

#: Records of a run at most: mostly all that were taken apart together.
RUN = 10_000


@dataclass(slots=True, eq=False)
class Lane:
    """What is fetched of a partition and not delivered: ``batch`` from ``index`` on, then ``readers``."""

    position: Position
    stay: PartitionSession
    readers: deque[ChunkReader] = field(default_factory=deque)
    batch: RecordBatch = NOTHING
    index: int = 0
    full: bool = False

    @property
    def buffered_bytes(self) -> int:
        return sum(reader.size for reader in self.readers)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A partition's next data: ``reader`` is at its beginning, or ``records`` were decoded before."""

    stay: PartitionSession
    reader: ChunkReader | None
    records: list[Record]


class Taken(NamedTuple):
    """Records that were taken together, and whose they are: of which session, from and up to which offset."""

    records: list[Record]
    parts: list[tuple[PartitionSession, int, int]]


class Delivery:
    """``take`` gives records; ``wake`` when there may be some, ``hungry`` when there is room again."""

    def __init__(
        self,
        positions: Positions,
        tracker: Tracker,
        *,
        max_undone: int,
        held_limit_bytes: float = math.inf,
        wake: Callable[[], None],
        report: Callable[[Event], None],
        hungry: Callable[[], None] = lambda: None,
    ) -> None:
        self.halted = False
        #: What is buffered, and what it keeps in memory.
        self.held = HeldBytes(held_limit_bytes)
        #: What ``take`` gave last.
        self.last_taken: Taken = Taken([], [])
        self._positions = positions
        self._tracker = tracker
        self._max_undone = max_undone
        self._wake = wake
        self._report = report
        self._hungry = hungry
        self._run: Run | None = None
        self._given = 0
        positions.disturbed = self.recall
        self._lanes: dict[TopicPartition, Lane] = {}
        self._turn: deque[Lane] = deque()

    @property
    def buffered_bytes(self) -> int:
        """Bytes fetched and not taken apart."""
        return self.held.unread

    def __repr__(self) -> str:
        return f"Delivery({len(self._lanes)} lanes, {self.held!r})"

    # what the fetcher brings

    def start(self, position: Position, *, moved_by_reset: bool = False) -> None:
        """The position has been set: read on from there, in a new stay unless a reset only went forward."""
        self.recall()
        partition = position.partition
        lane = self._lanes.get(partition)
        if lane is not None and moved_by_reset and position.fetch_offset >= lane.stay.position:
            return
        self.drop([partition])
        stay = self._tracker.begin(
            partition,
            position.fetch_offset,
            committed=position.committed,
            leader_epoch=position.leader_epoch,
        )
        position.committed = None
        self._lanes[partition] = lane = Lane(position, stay)
        self._turn.append(lane)

    def has(self, partition: TopicPartition) -> bool:
        """Whether the partition was started."""
        return partition in self._lanes

    def session(self, partition: TopicPartition) -> PartitionSession | None:
        """The one in which the partition is delivered; None before ``start``."""
        lane = self._lanes.get(partition)
        return lane.stay if lane is not None else None

    def delivered_to(self, partition: TopicPartition) -> int | None:
        """The next offset to deliver; None before ``start``."""
        self.recall()
        lane = self._lanes.get(partition)
        return lane.stay.position if lane is not None else None

    def cut(self, position: Position) -> None:
        """The log was cut at the position: what is buffered is gone.

        The stay goes on when nothing was delivered from behind the cut; else its records are void.
        """
        self.recall()
        lane = self._lanes.get(position.partition)
        if lane is not None and lane.stay.position <= position.fetch_offset:
            self._forget_buffered(lane)
        else:
            self.drop([position.partition])

    def known_to(self, partition: TopicPartition, offset: int) -> None:
        """The log is known to be the same up to this offset, which is not before the next one to deliver."""
        lane = self._lanes.get(partition)
        if lane is not None:
            lane.stay.cut(offset)

    def epoch(self, partition: TopicPartition) -> int:
        """Id of the partition's session, to stamp its records with."""
        return self._lanes[partition].stay.session_id

    def buffered(self, partition: TopicPartition) -> int:
        """Bytes fetched and not delivered."""
        lane = self._lanes.get(partition)
        return lane.buffered_bytes if lane is not None else 0

    def put(self, reader: ChunkReader) -> None:
        """More data of a partition that was started."""
        lane = self._lanes[reader.partition]
        lane.readers.append(reader)
        self.held.add(reader)
        self._wake()

    # what stops it

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget what is buffered: it will not be delivered from here."""
        self.recall()
        for partition in partitions:
            lane = self._lanes.pop(partition, None)
            if lane is not None:
                self._forget_buffered(lane)
                self._set_full(lane, False)
                self._turn.remove(lane)

    def end(self, partition: TopicPartition) -> None:
        """``drop``; and what was delivered of it can no longer be marked done, nor be committed."""
        self.drop([partition])
        self._tracker.end(partition)

    def halt(self, halted: bool) -> None:
        """Deliver nothing at all, or go on."""
        self.halted = halted
        self.recall()
        if not halted:
            self._wake()

    # what the user takes

    def take(self, limit: int, max_bytes: int | None = None) -> list[Record]:
        """Up to so many records, from as many partitions as it takes; empty when there is nothing now.

        With ``max_bytes``, no further batch once their values have so many.
        """
        self.recall()
        taken_bytes = 0
        taken: list[Record] = []
        parts: list[tuple[PartitionSession, int, int]] = []
        for _ in range(len(self._turn)):
            if self.halted:
                break
            lane = self._turn[0]
            while len(taken) < limit and self._ready(lane):
                records = self._take_from(lane, limit - len(taken))
                taken += records
                parts.append((lane.stay, records[0].offset, records[-1].offset + 1))
                if max_bytes is not None:
                    taken_bytes += sum(len(record.value or b"") for record in records)
                    if taken_bytes >= max_bytes:
                        limit = len(taken)
            if len(lane.batch) and len(taken) >= limit:
                break
            # at the end of a batch, or of what it has, the next lane has its turn
            self._turn.rotate(-1)
            if len(taken) >= limit:
                break
        self._tracker.given_out += bool(taken)
        self.last_taken = Taken(taken.copy(), parts)
        return taken

    def take_chunk(self, deliver: Callable[[Chunk], list[T]]) -> list[T]:
        """What ``deliver`` makes of the next chunk (and tells its stay); empty when there is nothing now."""
        self.recall()
        for _ in range(len(self._turn)):
            lane = self._turn[0]
            made: list[T] = []
            while not self.halted and not made and lane.position.readable and not self._window_full(lane):
                if lane.index < len(lane.batch):
                    made = deliver(Chunk(lane.stay, None, lane.batch.records(lane.index)))
                    self._end_batch(lane)
                elif lane.readers:
                    made = self._deliver_reader(lane, deliver)
                else:
                    break
            self._turn.rotate(-1)
            if made:
                self._tracker.given_out += 1
                return made
        return []

    def _deliver_reader(self, lane: Lane, deliver: Callable[[Chunk], list[T]]) -> list[T]:
        reader = lane.readers[0]
        before = reader.size
        try:
            made = deliver(Chunk(lane.stay, reader, []))
        except CorruptBatchError as error:
            # what is before the bad batch and holds no records was passed
            self.held.read(before - reader.size)
            self._corrupt(lane, error)
            return []
        self.held.read(before - reader.size)
        lane.position.unreadable = 0
        if not reader.size:
            self.held.remove(lane.readers.popleft())
        self._hungry()
        return made

    def run(self) -> Run | None:
        """Records of the next lane, to be made as they are taken; None when there is nothing now.

        All of them count as delivered, until ``recall`` takes back what was not taken: whatever comes between
        does so, another taker included.
        """
        self.recall()
        lane = self._next_lane()
        if lane is None:
            return None
        first = lane.index
        room = min(RUN, self._max_undone - lane.stay.undone)
        lane.index = end = min(first + room, len(lane.batch))
        lane.stay.delivered_all(lane.batch.rows.offsets[first:end])
        self._tracker.given_out += 1
        self._run = run = Run(lane, first, end)
        return run

    def recall(self) -> None:
        """What was not taken of the last run is as if it had not been given out."""
        run, self._run = self._run, None
        if run is None:
            return
        given, lane = run.recall(), run.lane
        self._given += given
        if given < run.count:
            lane.index -= run.count - given
            lane.stay.taken_back(lane.batch.rows.offsets[lane.index])
        elif lane.index == len(lane.batch):
            self._end_batch(lane)
            self._turn.rotate(-1)

    @property
    def not_taken(self) -> int:
        """Records of the run under way that count as delivered and were not taken yet."""
        run = self._run
        return 0 if run is None else run.count - run.given

    def next_offset(self, stay: PartitionSession) -> int:
        """Offset of the next record to be taken of this stay."""
        run = self._run
        offset = run.next_offset if run is not None and run.lane.stay is stay else None
        return stay.position if offset is None else offset

    @property
    def taken_one_by_one(self) -> int:
        """Records that were taken of runs, so far."""
        return self._given + (self._run.given if self._run is not None else 0)

    def _next_lane(self) -> Lane | None:
        """The next one that has a record to give now; it has the turn then."""
        for _ in range(0 if self.halted else len(self._turn)):
            if self._ready(self._turn[0]):
                return self._turn[0]
            self._turn.rotate(-1)
        return None

    def _take_from(self, lane: Lane, limit: int) -> list[Record]:
        room = self._max_undone - lane.stay.undone
        first, last = lane.index, min(lane.index + min(limit, room), len(lane.batch))
        lane.index = last
        lane.stay.delivered_all(lane.batch.rows.offsets[first:last])
        some = lane.batch.records(first, last)
        if last == len(lane.batch):
            self._end_batch(lane)
        return some

    def _ready(self, lane: Lane) -> bool:
        """Whether the lane has a record to give now; decodes the next batch if need be."""
        if not lane.position.readable or self._window_full(lane):
            return False
        while lane.index >= len(lane.batch):
            if not lane.readers:
                return False
            self._decode(lane)
        return True

    def _window_full(self, lane: Lane) -> bool:
        full = lane.stay.undone >= self._max_undone
        if full and not lane.full:
            self._report(WindowFull(lane.stay.partition, lane.stay.undone))
        self._set_full(lane, full)
        return full

    def _set_full(self, lane: Lane, full: bool) -> None:
        self._tracker.awaited += full - lane.full
        lane.full = full

    def _decode(self, lane: Lane) -> None:
        reader = lane.readers[0]
        before = reader.size
        try:
            batch = reader.read_batch()
        except CorruptBatchError as error:
            self.held.read(before - reader.size)
            self._corrupt(lane, error)
            return
        self.held.read(before - reader.size)
        lane.index = 0
        lane.position.unreadable = 0
        lane.stay.read_under(reader.leader_epoch)
        if batch is not None:
            fresh = lane.stay.fresh(batch.rows.offsets)
            if fresh:
                self._set_batch(lane, batch if len(fresh) == len(batch) else batch.only(fresh))
        if not len(lane.batch):
            self._end_batch(lane)
        self._hungry()

    def _end_batch(self, lane: Lane) -> None:
        """All records of a batch are delivered, so what follows it up to the next one is passed."""
        self._set_batch(lane, NOTHING)
        if lane.readers:
            lane.stay.passed(lane.readers[0].next_offset)
            if not lane.readers[0].size:
                self.held.remove(lane.readers.popleft())

    def _set_batch(self, lane: Lane, batch: RecordBatch) -> None:
        self.held.decoded += batch.size - lane.batch.size
        lane.batch, lane.index = batch, 0

    def _corrupt(self, lane: Lane, error: CorruptBatchError) -> None:
        """Read the same place again; give up after some times."""
        position = lane.position
        self._forget_buffered(lane)
        position.fetch_offset = lane.stay.position
        position.changed += 1
        position.damaged = False
        position.unreadable += 1
        self._report(PartitionFailed(position.partition, error))
        if position.unreadable >= DECODE_TRIES:
            self._positions.fail(position, error)
        self._hungry()

    def _forget_buffered(self, lane: Lane) -> None:
        for reader in lane.readers:
            self.held.remove(reader)
        lane.readers.clear()
        self._set_batch(lane, NOTHING)

    # windows

    def made_room(self) -> None:
        """Some records are done."""
        if any(lane.full and lane.stay.undone < self._max_undone for lane in self._turn):
            self._wake()
