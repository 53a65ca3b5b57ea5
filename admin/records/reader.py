"""Reads partitions in no group: up to given offsets, or for as long as records come."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ...client import BrokerConnectionError, Cluster, FetchedPartition, FetchFrom
from ...client.fetch import STALE_METADATA, FetchSession
from ...client.requests import leader_or_raise, partition_name
from ...consumer.reading.fetched_records import ChunkReader, end_of_run
from ...consumer.record import Record
from ...protocol import CorruptBatchError, ErrorCode, KafkaError, TopicPartition, parse_batch_header
from ..errors import advise_error
from ..topics.requests import ranges

#: Longest wait of a Fetch for records that are not written yet, and most bytes of its response.
_WAIT_MS: Final = 500
_MOST_BYTES: Final = 16 * 1024 * 1024
#: Pauses before a partition that could not be read is tried again.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1.0
#: Damaged records are fetched this often, in case the network damaged them.
_TRIES: Final = 3
#: Pause between looks for new partitions.
_LOOK_S: Final = 10.0
_GONE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


@dataclass(slots=True, eq=False)
class _Position:
    """Where a partition is read, to ``end`` (None: for ever). ``well_at``: when it last was as it should."""

    partition: TopicPartition
    offset: int
    end: int | None
    well_at: float
    error: KafkaError | BrokerConnectionError | None = None
    failures: int = 0
    retry_at: float = 0.0
    damages: int = 0
    #: Number of times that it was set to another offset: what was asked for before does not count.
    jumps: int = 0

    @property
    def at_end(self) -> bool:
        return self.end is not None and self.offset >= self.end


@dataclass(slots=True, eq=False)
class TopicReader:
    """Reads partitions from ``starts``, each to its offset in ``ends``; without ``ends`` it follows them.

    A partition of which nothing can be read for ``patience_s`` is an error; who follows waits as long as it
    takes for brokers that cannot be reached. ``remark`` is told what a person should know of. With
    ``pass_damage``, and ends, what stays damaged is told and passed, else it is an error. Sizes are in bytes.
    ``new_partitions``: when following, also read those that the topics get meanwhile.
    """

    cluster: Cluster
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int] | None = None
    read_committed: bool = False
    patience_s: float = 15.0
    remark: Callable[[str], None] = lambda _: None
    new_partitions: bool = False
    pass_damage: bool = False
    response_bytes: int = _MOST_BYTES
    partition_bytes: int = 1024 * 1024
    _positions: dict[TopicPartition, _Position] = field(default_factory=dict)
    _ids: dict[str, object] = field(default_factory=dict)
    _sessions: dict[int, FetchSession] = field(default_factory=lambda: defaultdict(FetchSession))
    #: Requests under way, by what they are for: one Fetch to each leader.
    _tasks: dict[object, asyncio.Task[None]] = field(default_factory=dict)
    #: What was fetched of each partition, in order, with the jumps of its position then; the first has its
    #: turn.
    _fetched: dict[TopicPartition, deque[tuple[ChunkReader, int]]] = field(default_factory=dict)
    #: Seconds in which the caller used records. Nothing is read then, and nothing is late.
    _away_s: float = 0.0
    _look_at: float = 0.0
    _lost: bool = False

    async def batches(self) -> AsyncGenerator[list[Record]]:
        """Yield records as they come, each partition's in order; partitions take turns.

        Raises KafkaError, BrokerConnectionError, AuthenticationError and CorruptBatchError.
        """
        self._look_at = self._now_s() + _LOOK_S
        for partition, offset in self.starts.items():
            self._begin_partition(partition, offset)
        try:
            while self._send_due():
                await self._wait_for_news()
                while self._fetched:
                    partition, chunks = next(iter(self._fetched.items()))
                    reader, jumps = chunks[0]
                    is_known = self._positions[partition].jumps == jumps
                    if is_known and (records := self._read_records(reader)):
                        began = self._now_s()
                        yield records
                        self._away_s += self._now_s() - began
                        # brokers work while the rest is used; not before, as the caller may have enough
                        self._send_due()
                    # what came meanwhile of this partition is behind the rest
                    if not (is_known and reader.size):
                        chunks.popleft()
                    del self._fetched[partition]
                    if chunks:
                        self._fetched[partition] = chunks
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _begin_partition(self, partition: TopicPartition, offset: int) -> None:
        end = None if self.ends is None else self.ends[partition]
        self._positions[partition] = _Position(partition, offset, end, self._now_s())
        self._ids.setdefault(partition.topic, self.cluster.known_metadata.topic_id(partition.topic))

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time() - self._away_s

    # requests

    def _send_due(self) -> bool:
        """Send what is due; return whether there is more to read. Raises errors that have lasted too long."""
        now = self._now_s()
        left = [position for position in self._positions.values() if not position.at_end]
        asked: dict[int, list[_Position]] = defaultdict(list)
        for position in left:
            self._check_patience(position, now)
            if position.retry_at <= now and position.partition not in self._tasks:
                try:
                    asked[leader_or_raise(self.cluster, position.partition)].append(position)
                except KafkaError as error:
                    self._retry_later(position, error)
        if any(position.error for position in left) or (self.new_partitions and now >= self._look_at):
            self._start("metadata", self._refresh_topics)
        for leader, positions in asked.items():
            self._start(leader, self._fetch_from, leader, positions)
        return bool(left)

    def _start(
        self, key: object, work: Callable[..., Coroutine[object, object, None]], *what: object
    ) -> None:
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(work(*what))

    async def _wait_for_news(self) -> None:
        """Wait until a request has ended, or something may be tried again. Raises what requests raise."""
        failing = any(position.error for position in self._positions.values())
        if self._tasks:
            pause = _FIRST_PAUSE_S if failing else None
            await asyncio.wait(self._tasks.values(), timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(_FIRST_PAUSE_S)
        for key, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[key]
                task.result()

    async def _fetch_from(self, leader: int, positions: Iterable[_Position]) -> None:
        epoch = self.cluster.known_metadata.leader_epoch
        asked = [(position, position.jumps) for position in positions]
        try:
            answer = await self.cluster.fetch(
                {one.partition: FetchFrom(one.offset, epoch(one.partition)) for one, _ in asked},
                node_id=leader,
                max_bytes=self.response_bytes,
                partition_max_bytes=self.partition_bytes,
                max_wait_ms=_WAIT_MS,
                read_committed=self.read_committed,
                session=self._sessions[leader],
            )
        except (KafkaError, BrokerConnectionError) as error:
            for position, _ in asked:
                self._retry_later(position, error)
            return
        for position, jumps in asked:
            if position.jumps == jumps:
                self._take_fetched(position, answer.get(position.partition))

    def _take_fetched(self, position: _Position, fetched: FetchedPartition | None) -> None:
        """Take a partition's part of a response; None where there is nothing new."""
        name = partition_name(position.partition)
        if fetched is not None and fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._start(position.partition, self._find_log_bounds, position)
            return
        if fetched is not None and fetched.error_code:
            self._retry_later(position, KafkaError(fetched.error_code, f"reading {name}"))
            return
        if self._lost:
            self._lost = False
            self.remark("connected again")
        position.error, position.failures = None, 0
        if self.ends is None:
            position.well_at = self._now_s()
        if fetched is None or not fetched.records:
            return
        end, _, damage = end_of_run(fetched.records, position.offset)
        reader = ChunkReader(
            position.partition, fetched.records, position.offset, aborted=fetched.aborted, damage=damage
        )
        if end > position.offset:
            position.offset, position.well_at = end, self._now_s()
        self._fetched.setdefault(position.partition, deque()).append((reader, position.jumps))

    async def _find_log_bounds(self, position: _Position) -> None:
        """Ask where the log is that the position is not in: retention moves its start, a loss its end."""
        try:
            firsts, lasts = await ranges(self.cluster, [position.partition])
        except (KafkaError, BrokerConnectionError) as error:
            self._retry_later(position, error)
            return
        first, last = firsts[position.partition], lasts[position.partition]
        name = partition_name(position.partition)
        if position.offset > last:
            text = f"{name} was read to offset {position.offset} and ends at {last} now: records were lost, "
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{text}or the topic was created again")
        if position.offset < first:
            self.remark(f"{name}: offsets {position.offset} to {first - 1} were deleted unread")
            self._jump_to(position, first)
            position.well_at = self._now_s()
        else:
            position.retry_at = self._now_s() + _FIRST_PAUSE_S

    async def _refresh_topics(self) -> None:
        """Look at the topics: they may have new leaders and partitions, or be others of the same names."""
        self._look_at = self._now_s() + _LOOK_S
        try:
            known = await self.cluster.metadata(self._ids)
        except (KafkaError, BrokerConnectionError):
            return  # those who are waiting for it know what is wrong
        for topic, before in self._ids.items():
            after = known.topic_id(topic)
            if before is not None and after is not None and after != before:
                text = f"topic {topic!r} was deleted and created again: run the command again to read the new"
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"{text} one")
            added = [each for each in known.partitions(topic) if each not in self._positions]
            if self.new_partitions and added:
                self.remark(f"topic {topic!r} has {len(added)} more partitions now, which are read too")
                for partition in added:
                    self._begin_partition(partition, 0)

    # errors

    def _retry_later(self, position: _Position, error: KafkaError | BrokerConnectionError) -> None:
        """Try the partition again later. Raises errors that will not go away."""
        if isinstance(error, KafkaError) and not (error.retriable or error.code in STALE_METADATA):
            raise advise_error(error.code, error.message or "")
        if self.ends is None and isinstance(error, BrokerConnectionError) and not self._lost:
            self._lost = True
            self.remark(f"{error}: trying again until Ctrl-C")
        pause = min(_FIRST_PAUSE_S * 2**position.failures, _LONGEST_PAUSE_S)
        position.error, position.retry_at = error, self._now_s() + pause
        position.failures = min(position.failures + 1, 10)

    def _check_patience(self, position: _Position, now: float) -> None:
        """Raise the error of a partition of which nothing could be read for too long."""
        error = position.error
        if now - position.well_at <= self.patience_s:
            return
        if isinstance(error, BrokerConnectionError):
            if self.ends is None:
                return
            raise error
        text = f"nothing more could be read from {partition_name(position.partition)} "
        text += f"for {self.patience_s:g} s"
        if error is not None:
            deleted = error.code in _GONE
            text += f": {'the topic was deleted' if deleted else error}"
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, text)

    # records

    def _read_records(self, reader: ChunkReader) -> list[Record]:
        """The next records, none behind the end. Raises CorruptBatchError for those that stay damaged."""
        position = self._positions[reader.partition]
        try:
            records = reader.read()
        except CorruptBatchError as error:
            position.damages += 1
            if position.damages < _TRIES:
                self._jump_to(position, reader.next_offset)
            elif self.pass_damage:
                self._pass_damage(position, reader, error)
            else:
                raise
            return []
        position.damages = 0
        if position.end is None or not records or records[-1].offset < position.end:
            return records
        return [record for record in records if record.offset < position.end]

    def _pass_damage(self, position: _Position, reader: ChunkReader, error: CorruptBatchError) -> None:
        """Go on behind a damaged batch, or at the end if its header does not say where that is."""
        name, first = partition_name(position.partition), reader.next_offset
        try:
            behind = parse_batch_header(reader.unread).next_offset
        except CorruptBatchError:
            behind = first
        position.damages = 0
        if behind > first:
            self.remark(f"{name}: offsets {first} to {behind - 1} are damaged and were passed: {error}")
        else:
            behind = position.offset if position.end is None else position.end
            self.remark(f"{name}: from offset {first} on it is damaged and was not read: {error}")
        self._jump_to(position, behind)

    def _jump_to(self, position: _Position, offset: int) -> None:
        position.offset = offset
        position.jumps += 1
