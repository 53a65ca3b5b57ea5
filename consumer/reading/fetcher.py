"""Fetches records: start offsets, long polls to each leader, prefetching within bounds.

Each broker has one pending Fetch, a long poll if there is nothing to read. It cannot be called off:
partitions that come up meanwhile are read by short polls beside it, over a connection of their own, until it
is answered. Nothing here waits for the user, and only what begins without an offset waits for a commit.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial

from ...client.errors import ConsumerClosedError, ResponseTooLargeError
from ...client.fetch import STALE_METADATA, Fetched, FetchedPartition, FetchFrom, FetchSession
from ...client.pool import Channel
from ...client.requests import leader_or_raise
from ...client.waiting import Signal, now_ms
from ...protocol import CorruptBatchError, ErrorCode, KafkaError, KohortError, TopicPartition
from ..config import ConsumerConfig
from ..errors import BatchTooLargeError
from ..events import BrokerUnavailable, PartitionFailed
from .fetched_records import ChunkReader, end_of_run
from .positions import Phase, Position
from .start_offsets import ReadingContext, StartOffsets
from .too_large import Suspects

#: Longest wait of a Fetch while other partitions have enough buffered, or are fetched beside a long poll:
#: their next fetch must not wait for one.
BUSY_WAIT_MS = 20
#: So many bytes of records or fewer are read in less time than the next request is made and sent: their
#: reader goes first.
_FEW_BYTES = 16 * 1024
#: Partitions asked for, with their position, its number of jumps, and the id of their session.
_Asked = dict[TopicPartition, tuple[Position, int, int]]
_FATAL = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})


@dataclass(slots=True, eq=False)
class Fetcher:
    """Start ``run`` as a task; call ``wake`` after every change of positions, ``made_room`` after one of
    buffers.
    """

    reading: ReadingContext
    config: ConsumerConfig
    sessions: dict[int, FetchSession] = field(default_factory=lambda: defaultdict(FetchSession))
    _starts: StartOffsets = field(init=False)
    _changed: Signal = field(default_factory=Signal)
    #: The bytes that pending requests may bring, by task; what is asked for in long polls, and beside them.
    _asked_bytes: dict[str | int, int] = field(default_factory=dict)
    _long_polls: dict[int, _Asked] = field(default_factory=dict)
    _beside: dict[int, _Asked] = field(default_factory=dict)
    _busy: dict[str | int, asyncio.Task[None]] = field(default_factory=dict)
    _node_failures: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    _node_retry_at: dict[int, float] = field(default_factory=dict)
    _metadata_failures: int = 0
    #: Tasks that failed unexpectedly, how often in a row, and when they may start again.
    _faults: dict[str | int, tuple[int, float]] = field(default_factory=dict)
    _leaderless: frozenset[TopicPartition] = frozenset()
    _suspects: Suspects = field(default_factory=Suspects)
    #: Whether some partition had enough when they were looked at last.
    _enough: bool = False
    _runs: bool = False

    def __post_init__(self) -> None:
        config, stale = self.config, self._metadata_is_stale
        self._starts = StartOffsets(self.reading, config.group, config.reads_committed, stale=stale)

    def __repr__(self) -> str:
        return f"Fetcher({len(self._busy)} requests under way)"

    def wake(self) -> None:
        """Look what to fetch in the next step of the event loop."""
        self._changed.fire()

    def made_room(self) -> None:
        """Records were read: ``wake``, if a partition is not fetched because it had enough."""
        if self._enough:
            self.wake()

    def fetch_now(self) -> None:
        """As ``wake``, before other tasks run: partitions without a reader may now be read."""
        if self._runs:
            self._start_what_is_due()
        self.wake()

    async def run(self) -> None:
        """Until cancelled."""
        self._runs = True
        try:
            while True:
                self._start_what_is_due()
                await self._changed.wait(self._next_retry_ms())
        finally:
            self._runs = False
            for task in self._busy.values():
                task.cancel()
            await asyncio.gather(*self._busy.values(), return_exceptions=True)

    def _next_retry_ms(self) -> float | None:
        now = now_ms()
        waits = [p.retry_at for p in self.reading.positions if p.retry_at > now]
        waits += [at for at in self._node_retry_at.values() if at > now]
        waits += [at for _, at in self._faults.values() if at > now]
        return min(waits) - now if waits else None

    def _start_what_is_due(self) -> None:
        now = now_ms()
        seeking = []
        for position in self.reading.positions.in_phase(Phase.SEEKING, now):
            if position.told:
                self._starts.on_committed(position, position.committed)
            else:
                seeking.append(position)
        if seeking:
            self._start("committed", lambda: self._starts.find_committed(seeking))
        self._look_at_metadata(now)
        resetting = self.reading.positions.to_reset(now)
        validating = self.reading.positions.in_phase(Phase.VALIDATING, now)
        for due, work in (
            (resetting, self._starts.reset_positions),
            (validating, self._starts.validate_positions),
        ):
            tasks: dict[str, list[Position]] = defaultdict(list)
            # one task for each leader: one that does not answer delays no others; nor does the coordinator,
            # which those wait for that begin with a commit
            for node, positions in self._by_leader(due).items():
                for position in positions:
                    begins = self._starts.begins_with_commit(position)
                    what = "beginning" if begins else position.phase.value
                    tasks[f"{what} at node {node}"].append(position)
            for key, positions in tasks.items():
                self._start(key, partial(work, positions))
        by_node = self._wanted_positions(now)
        for node, positions in by_node.items():
            if now < self._node_retry_at.get(node, 0.0):
                continue
            if node not in self._busy:
                self._start(node, partial(self._fetch_from, node, positions))
            elif self._came_up(node, positions):
                self._start(_short_poll_name(node), partial(self._fetch_beside, node))

    def _by_leader(self, positions: Iterable[Position]) -> dict[int, list[Position]]:
        """Group by leader. Positions without one are retried later, with fresh metadata."""
        by_node: dict[int, list[Position]] = defaultdict(list)
        for position in positions:
            node = self.reading.cluster.leader(position.partition)
            if node is None:
                self._starts.delay_position(position)
                self._metadata_is_stale()
            else:
                by_node[node].append(position)
        return by_node

    def _start(self, key: str | int, work: Callable[[], Coroutine[object, object, None]]) -> None:
        _, not_before = self._faults.get(key, (0, 0.0))
        if key not in self._busy and now_ms() >= not_before:
            task = self._busy[key] = asyncio.create_task(work(), name=f"kohort fetcher {key}")
            task.add_done_callback(lambda done: self._on_end(key, done))

    def _on_end(self, key: str | int, task: asyncio.Task[None]) -> None:
        del self._busy[key]
        if task.cancelled() or (error := task.exception()) is None:
            self._faults.pop(key, None)
        else:
            # a bug, which may concern a single record or response
            failures, _ = self._faults.get(key, (0, 0.0))
            self._faults[key] = failures + 1, now_ms() + self.reading.backoff.delay_ms(failures)
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"kohort fetcher: {key} failed", "exception": error, "task": task}
            )
        self.wake()

    # fetching

    def _look_at_metadata(self, now: float) -> None:
        """Notice recreated topics, which have other records, and new leaders, which may have truncated it.

        New leaders are asked before reading on (KIP-320).
        """
        known = self.reading.cluster.known_metadata
        for position in self.reading.positions.in_phase(Phase.READING, now):
            topic_id = known.topic_id(position.partition.topic)
            if topic_id != position.topic_id and topic_id is not None:
                before, position.topic_id = position.topic_id, topic_id
                if before is not None:
                    self._starts.made_anew(position)
                    self.wake()
                    continue
            epoch = known.leader_epoch(position.partition)
            if epoch > position.checked_epoch:
                if position.checked_epoch >= 0 and position.leader_epoch >= 0:
                    self.reading.positions.validate(position)
                    self.wake()
                else:
                    position.checked_epoch = epoch

    def _wanted_positions(self, now: float) -> dict[int, list[Position]]:
        """The positions to fetch from each node; notes whether other partitions have enough."""
        by_node: dict[int, list[Position]] = defaultdict(list)
        self._enough = False
        wanting: list[Position] = []
        for position in self.reading.positions.in_phase(Phase.READING, now):
            if not position.readable or position.damaged:
                continue
            if self._has_enough(position):
                self._enough = True
            else:
                wanting.append(position)
        for leader, positions in self._by_leader(wanting).items():
            for position in positions:
                node = self._nearest_node(position, leader, now)
                if node not in self._beside or not _is_asked(position, self._beside[node]):
                    by_node[node].append(position)
        return by_node

    def _came_up(self, node: int, positions: Iterable[Position]) -> list[Position]:
        """Those that the node's long poll does not ask for; none if it has no such request."""
        asked = self._long_polls.get(node)
        return [] if asked is None else [p for p in positions if not _is_asked(p, asked)]

    def _nearest_node(self, position: Position, leader: int, now: float) -> int:
        """The preferred replica that the leader named, while that is valid (KIP-392); else the leader."""
        replica = position.read_replica
        if replica >= 0 and (
            now >= position.replica_until or replica not in self.reading.cluster.known_metadata.nodes
        ):
            position.read_replica = replica = -1
        return replica if replica >= 0 else leader

    def _room_bytes(self) -> int:
        """Limit of a response: what prefetching leaves alongside the other pending requests."""
        config = self.config
        others = sum(self._asked_bytes.values())
        room = config.prefetch_max_bytes - self.reading.delivery.held.total - others
        return max(config.max_partition_fetch_bytes, min(config.fetch_max_bytes, room))

    def _has_enough(self, position: Position) -> bool:
        """Return whether more is buffered than one response brings: the next one comes while that is read."""
        buffered = self.reading.delivery.undelivered_bytes(position.partition)
        whole = self.reading.delivery.held.total
        return buffered > self.config.max_partition_fetch_bytes or (
            buffered > 0 and whole >= self.config.prefetch_max_bytes
        )

    async def _fetch_from(self, node: int, positions: list[Position]) -> None:
        """Fetch from this node for as long as it has wanted partitions.

        The next request is sent before the last response is decoded, so that the broker works meanwhile. If
        that brought a few records only, their reader went first.
        """
        # some may have been revoked between the creation of the task and its start
        positions = [p for p in positions if p.readable and self.reading.positions.get(p.partition) is p]
        while positions:
            asked = self._send_fetch(self._suspects.next_part(node, positions))
            max_wait_ms = 0 if self._suspects.is_seeking(node) else self.config.fetch_max_wait_ms
            if self._enough or node in self._beside:
                max_wait_ms = min(max_wait_ms, BUSY_WAIT_MS)
            if max_wait_ms > BUSY_WAIT_MS:
                self._long_polls[node] = asked
            try:
                size = await self._fetch_once(node, asked, max_wait_ms)
            finally:
                self._long_polls.pop(node, None)
            if size is None:
                return
            positions = self._next_positions(node)

    async def _fetch_beside(self, node: int) -> None:
        """Fetch what came up after the node's long poll began, until that is answered.

        Each poll is longer than the one before, since more may come up meanwhile.
        """
        try:
            await self.reading.cluster.connect_to(node, Channel.BESIDE)
        except KohortError:
            # the pool tries again later; until then the long poll is waited for
            return
        max_wait_ms, before = 0, frozenset[Position]()
        while positions := self._came_up(node, self._next_positions(node)):
            max_wait_ms = min(2 * max_wait_ms + 1, BUSY_WAIT_MS) if before.issuperset(positions) else 0
            before = frozenset(positions)
            self._beside[node] = self._send_fetch(self._suspects.next_part(_short_poll_name(node), positions))
            try:
                if await self._fetch_once(node, self._beside[node], max_wait_ms, beside=True) is None:
                    return
            finally:
                del self._beside[node]
            # the reader first: these partitions had none until now
            await asyncio.sleep(0)

    def _next_positions(self, node: int) -> list[Position]:
        """The positions to fetch from this node now."""
        now = now_ms()
        self._look_at_metadata(now)
        by_node = self._wanted_positions(now)
        own = by_node.pop(node, [])
        if any(other not in self._busy or self._came_up(other, found) for other, found in by_node.items()):
            # some are another's now
            self.wake()
        return own

    def _send_fetch(self, positions: Iterable[Position]) -> _Asked:
        session_id = self.reading.delivery.session_id
        return {p.partition: (p, p.changed, session_id(p.partition)) for p in positions}

    async def _fetch_once(
        self, node: int, asked: _Asked, max_wait_ms: int, *, beside: bool = False
    ) -> int | None:
        """Send one Fetch; return the bytes of records in the response, 0 for one over the limit, None without
        a response.
        """
        config, epoch_of = self.config, self.reading.cluster.known_metadata.leader_epoch
        task = _short_poll_name(node) if beside else node
        self._asked_bytes[task] = max_bytes = self._room_bytes()
        size = 0

        def take(answer: Fetched, *, few: bool = False) -> None:
            nonlocal size
            size = sum(len(fetched.records) for fetched in answer.values())
            if (0 < size <= _FEW_BYTES) is few:
                self._take_in_answer(asked, answer)

        try:
            answer = await self.reading.cluster.fetch(
                {p: FetchFrom(position.fetch_offset, epoch_of(p)) for p, (position, _, _) in asked.items()},
                node_id=node,
                max_bytes=max_bytes,
                partition_max_bytes=config.max_partition_fetch_bytes,
                min_bytes=config.fetch_min_bytes,
                max_wait_ms=max_wait_ms,
                read_committed=self.config.reads_committed,
                rack=config.client_rack,
                session=None if beside or self._suspects.is_seeking(task) else self.sessions[node],
                channel=Channel.BESIDE if beside else Channel.DATA,
                on_fetched=partial(take, few=True),
            )
        except ConsumerClosedError:
            return None
        except ResponseTooLargeError as error:
            self._too_large(task, asked, error)
            return 0
        except KohortError as error:
            self._node_failed(node, [position for position, _, _ in asked.values()], error)
            return None
        finally:
            del self._asked_bytes[task]
        self._node_failures.pop(node, None)
        self._node_retry_at.pop(node, None)
        self._suspects.on_answer(task)
        take(answer)
        return size

    def _take_in_answer(self, asked: _Asked, answer: Fetched) -> None:
        for partition, fetched in answer.items():
            position, changed, session_id = asked[partition]
            if self._is_current(position, changed):
                self._take_in(position, session_id, fetched)

    def _is_current(self, position: Position, changed: int) -> bool:
        """Return whether a response is to be taken in that was asked for when the position had so many
        jumps.
        """
        known = self.reading.positions.get(position.partition) is position
        return known and not position.held and position.changed == changed

    def _too_large(self, task: str | int, asked: _Asked, error: ResponseTooLargeError) -> None:
        """Look for the partition of the batch. Once it is found, it fails when reading gets there, and is
        left out until then.
        """
        found = self._suspects.too_much(task, [position for position, _, _ in asked.values()])
        if found is None:
            return
        _, changed, session_id = asked[found.partition]
        if self._is_current(found, changed):
            self._on_damage(
                found, session_id, BatchTooLargeError(found.partition, found.fetch_offset, error.size)
            )

    def _on_damage(
        self, position: Position, session_id: int, damage: CorruptBatchError | BatchTooLargeError
    ) -> None:
        """The next batch cannot be had: fetch nothing more until reading gets there."""
        reader = ChunkReader(
            position.partition,
            b"",
            position.fetch_offset,
            damage=damage,
            generation=position.generation,
            session_id=session_id,
        )
        position.damaged = True
        self.reading.delivery.put(reader)

    def _node_failed(self, node: int, positions: list[Position], error: KohortError) -> None:
        failures = self._node_failures[node]
        self._node_failures[node] += 1
        self._node_retry_at[node] = now_ms() + self.reading.backoff.delay_ms(failures)
        for position in positions:
            position.read_replica = -1
        if not failures:
            self.reading.report(BrokerUnavailable(f"fetching from node {node}", error))
        self._metadata_is_stale()

    def _take_in(self, position: Position, session_id: int, fetched: FetchedPartition) -> None:
        if fetched.error_code:
            self._partition_error(position, session_id, fetched)
            return
        position.failures, position.error = 0, None
        position.high_watermark = fetched.high_watermark
        position.log_start_offset = fetched.log_start_offset
        if fetched.preferred_replica >= 0:
            position.read_replica = fetched.preferred_replica
            position.replica_until = now_ms() + self.config.metadata_max_age_ms
            if fetched.preferred_replica not in self.reading.cluster.known_metadata.nodes:
                # a broker that has come back: its leader would name it again and again
                self._metadata_is_stale()
        if not fetched.records:
            return
        end, leader_epoch, damage = end_of_run(fetched.records, position.fetch_offset, position.leader_epoch)
        reader = ChunkReader(
            position.partition,
            fetched.records,
            position.fetch_offset,
            aborted=fetched.aborted if self.config.reads_committed else (),
            check_crcs=self.config.check_crcs,
            max_batch_bytes=self.config.max_decompressed_batch_bytes,
            damage=damage,
            generation=position.generation,
            session_id=session_id,
        )
        position.fetch_offset, position.leader_epoch = end, leader_epoch
        position.damaged = damage is not None
        self.reading.positions.had_its_turn(position)
        self.reading.delivery.put(reader)

    def _partition_error(self, position: Position, session_id: int, fetched: FetchedPartition) -> None:
        # there is something else to do than to fetch
        self.wake()
        where = f"{position.partition.topic}-{position.partition.partition}"
        error = KafkaError(fetched.error_code, f"fetching {where}")
        from_follower = position.read_replica >= 0
        position.read_replica = -1
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and from_follower:
            # a follower may lag, or have deleted more: ask the leader
            self._starts.delay_position(position)
        elif error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self.reading.positions.out_of_range(position, "the log does not have it")
            self._starts.on_moved(position)
        elif error.code in _FATAL:
            self._starts.on_refused(position, error)
        elif error.code is ErrorCode.CORRUPT_MESSAGE:
            text = f"the broker cannot read the batch of {where} at offset {position.fetch_offset}: {error}"
            self._on_damage(position, session_id, CorruptBatchError(text))
        else:
            if error.code not in STALE_METADATA:
                self.reading.report(PartitionFailed(position.partition, error))
            self._starts.delay_position(position)
            self._metadata_is_stale()

    def _metadata_is_stale(self) -> None:
        self._start("metadata", self._renew_metadata)

    async def _renew_metadata(self) -> None:
        topics = {p.partition.topic for p in self.reading.positions}
        try:
            await self.reading.cluster.metadata(topics)
            self._metadata_failures = 0
            self._tell_leaderless()
        except ConsumerClosedError:
            return
        except KohortError as error:
            self.reading.report(BrokerUnavailable("asking for metadata", error))
            self._metadata_failures += 1
        await asyncio.sleep(self.reading.backoff.delay_ms(self._metadata_failures) / 1000)

    def _tell_leaderless(self) -> None:
        """Report partitions that have lost their leader, once: they may not exist."""
        cluster = self.reading.cluster
        leaderless = {p.partition for p in self.reading.positions if cluster.leader(p.partition) is None}
        for partition in sorted(leaderless - self._leaderless):
            try:
                leader_or_raise(cluster, partition)
            except KafkaError as error:
                self.reading.report(PartitionFailed(partition, error))
        self._leaderless = frozenset(leaderless)


def _short_poll_name(node: int) -> str:
    """The name of the task with the short polls beside a node's long one."""
    return f"beside node {node}"


def _is_asked(position: Position, asked: _Asked) -> bool:
    """Return whether a request asks for this position, as it is now."""
    known = asked.get(position.partition)
    return known is not None and known[0] is position and known[1] == position.changed
