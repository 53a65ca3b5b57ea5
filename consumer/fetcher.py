"""Keeps partitions fed: start offsets, long polls to each leader, prefetching within bounds.

One Fetch is under way for each broker. Nothing here waits for commits or for the user.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..protocol import CorruptBatchError, ErrorCode, KafkaError, KohortError
from .decode import ChunkReader, end_of_run
from .errors import ConsumerClosedError
from .events import BrokerUnavailable, PartitionFailed
from .fetch_answers import FetchedPartition
from .fetch_requests import STALE_METADATA
from .fetch_session import FetchFrom, FetchSession
from .positions import Phase, Position
from .signal import Signal
from .start_offsets import Reading, StartOffsets

#: While some partitions have enough buffered, a long poll for the others must not keep them from their turn.
BUSY_WAIT_MS = 20
_FATAL = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """As in ConsumerConfig. ``replica_lease_ms``: how long a replica near by is read before asking again."""

    group: str
    rack: str
    read_committed: bool
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int
    max_wait_ms: int
    prefetch_max_bytes: int
    check_crcs: bool
    replica_lease_ms: int = 300_000


class Fetcher:
    """Start ``run`` as a task; call ``wake`` after every change of positions or buffers."""

    def __init__(self, reading: Reading, settings: FetchSettings) -> None:
        self._with = reading
        self._settings = settings
        self._starts = StartOffsets(reading, settings.group, settings.read_committed)
        self._changed = Signal()
        self.sessions: dict[int, FetchSession] = defaultdict(FetchSession)
        self._asked_bytes: dict[int, int] = {}
        self._busy: dict[str | int, asyncio.Task[None]] = {}
        self._node_failures: dict[int, int] = defaultdict(int)
        self._node_retry_at: dict[int, float] = {}
        self._metadata_failures = 0

    def __repr__(self) -> str:
        return f"Fetcher({len(self._busy)} requests under way)"

    def wake(self) -> None:
        self._changed.fire()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                self._start_what_is_due()
                await self._changed.wait(self._next_retry_ms())
        finally:
            for task in self._busy.values():
                task.cancel()
            await asyncio.gather(*self._busy.values(), return_exceptions=True)

    def _now(self) -> float:
        return asyncio.get_running_loop().time() * 1000

    def _next_retry_ms(self) -> float | None:
        now = self._now()
        waits = [p.retry_at for p in self._with.positions if p.retry_at > now]
        waits += [at for at in self._node_retry_at.values() if at > now]
        return min(waits) - now if waits else None

    def _start_what_is_due(self) -> None:
        now = self._now()
        if seeking := self._with.positions.in_phase(Phase.SEEKING, now):
            self._start("committed", lambda: self._starts.find_committed(seeking))
        if resetting := self._with.positions.in_phase(Phase.RESETTING, now):
            self._start("reset", lambda: self._starts.reset(resetting))
        self._look_for_new_leaders(now)
        if validating := self._with.positions.in_phase(Phase.VALIDATING, now):
            self._start("validate", lambda: self._starts.validate(validating))
        self._start_fetches(now)

    def _start(self, key: str | int, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if key not in self._busy:
            task = self._busy[key] = asyncio.create_task(work(), name=f"kohort fetcher {key}")
            task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: str | int, task: asyncio.Task[None]) -> None:
        del self._busy[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"kohort fetcher: {key} failed", "exception": error, "task": task}
            )
        self.wake()

    # fetching

    def _look_for_new_leaders(self, now: float) -> None:
        """A partition that has a new leader may have lost records: ask before reading on (KIP-320)."""
        for position in self._with.positions.in_phase(Phase.READING, now):
            epoch = self._with.cluster.known.leader_epoch(position.partition)
            if epoch > position.checked_epoch:
                if position.checked_epoch >= 0 and position.leader_epoch >= 0:
                    self._with.positions.validate(position)
                else:
                    position.checked_epoch = epoch

    def _start_fetches(self, now: float) -> None:
        by_node, enough = self._wanted(now)
        for node, positions in by_node.items():
            if now >= self._node_retry_at.get(node, 0.0):
                self._start(node, partial(self._fetch, node, positions, enough))

    def _wanted(self, now: float) -> tuple[dict[int, list[Position]], bool]:
        """What is to be fetched from which node, and whether other partitions have enough."""
        by_node: dict[int, list[Position]] = defaultdict(list)
        leaderless, enough = False, False
        for position in self._with.positions.in_phase(Phase.READING, now):
            if not position.readable:
                continue
            if self._has_enough(position):
                enough = True
                continue
            node = self._with.cluster.leader(position.partition)
            if node is None:
                leaderless = True
                self._starts.delay(position)
            else:
                by_node[self._nearest(position, node, now)].append(position)
        if leaderless:
            self._start("metadata", self._renew_metadata)
        return by_node, enough

    def _nearest(self, position: Position, leader: int, now: float) -> int:
        """The replica that the leader named, while that may be relied on (KIP-392); else the leader."""
        replica = position.read_replica
        if replica >= 0 and (now >= position.replica_until or replica not in self._with.cluster.known.nodes):
            position.read_replica = replica = -1
        return replica if replica >= 0 else leader

    def _room(self, node: int) -> int:
        """How much a request may bring: what prefetching leaves beside the requests to other nodes."""
        settings = self._settings
        others = sum(size for other, size in self._asked_bytes.items() if other != node)
        room = settings.prefetch_max_bytes - self._with.delivery.buffered_bytes - others
        return max(settings.partition_max_bytes, min(settings.max_bytes, room))

    def _has_enough(self, position: Position) -> bool:
        buffered = self._with.delivery.buffered(position.partition)
        whole = self._with.delivery.buffered_bytes
        return buffered >= self._settings.partition_max_bytes or (
            buffered > 0 and whole >= self._settings.prefetch_max_bytes
        )

    async def _fetch(self, node: int, positions: list[Position], others_wait: bool) -> None:
        """Fetch on for as long as something is wanted of this node.

        The next request goes out before anybody looks at what the last one brought: while records are taken
        apart and handled, the broker is at work.
        """
        # the task begins a moment after it was made, and some may have been given up in it
        positions = [p for p in positions if p.readable and self._with.positions.get(p.partition) is p]
        while positions and await self._fetch_once(node, positions, others_wait):
            self.wake()
            now = self._now()
            self._look_for_new_leaders(now)
            by_node, others_wait = self._wanted(now)
            positions = by_node.get(node, [])

    async def _fetch_once(self, node: int, positions: list[Position], others_wait: bool) -> bool:
        """Whether there was an answer."""
        settings = self._settings
        before = {p.partition: (p, p.changed, self._with.delivery.epoch(p.partition)) for p in positions}
        max_wait_ms = min(settings.max_wait_ms, BUSY_WAIT_MS) if others_wait else settings.max_wait_ms
        self._asked_bytes[node] = max_bytes = self._room(node)
        try:
            answer = await self._with.cluster.fetch(
                {p.partition: self._from(p) for p in positions},
                node_id=node,
                max_bytes=max_bytes,
                partition_max_bytes=settings.partition_max_bytes,
                min_bytes=settings.min_bytes,
                max_wait_ms=max_wait_ms,
                read_committed=settings.read_committed,
                rack=settings.rack,
                session=self.sessions[node],
            )
        except ConsumerClosedError:
            return False
        except KohortError as error:
            self._node_failed(node, positions, error)
            return False
        finally:
            del self._asked_bytes[node]
        self._node_failures.pop(node, None)
        self._node_retry_at.pop(node, None)
        for partition, fetched in answer.items():
            position, changed, epoch = before[partition]
            current = self._with.positions.get(partition) is position and not position.held
            if current and position.changed == changed:
                self._take_in(position, epoch, fetched)
        return True

    def _from(self, position: Position) -> FetchFrom:
        return FetchFrom(position.fetch_offset, self._with.cluster.known.leader_epoch(position.partition))

    def _node_failed(self, node: int, positions: list[Position], error: KohortError) -> None:
        failures = self._node_failures[node]
        self._node_failures[node] += 1
        self._node_retry_at[node] = self._now() + self._with.backoff.delay_ms(failures)
        for position in positions:
            position.read_replica = -1
        if not failures:
            self._with.report(BrokerUnavailable(f"fetching from node {node}", error))
        self._start("metadata", self._renew_metadata)

    def _take_in(self, position: Position, epoch: int, fetched: FetchedPartition) -> None:
        if fetched.error_code:
            self._partition_error(position, fetched)
            return
        position.high_watermark = fetched.high_watermark
        position.log_start_offset = fetched.log_start_offset
        if fetched.preferred_replica >= 0:
            position.read_replica = fetched.preferred_replica
            position.replica_until = self._now() + self._settings.replica_lease_ms
        if not fetched.records:
            return
        try:
            end, leader_epoch = end_of_run(fetched.records, position.fetch_offset, position.leader_epoch)
        except CorruptBatchError as error:
            self._with.report(PartitionFailed(position.partition, error))
            self._starts.delay(position)
            return
        reader = ChunkReader(
            position.partition,
            fetched.records,
            position.fetch_offset,
            aborted=fetched.aborted if self._settings.read_committed else (),
            check_crcs=self._settings.check_crcs,
            generation=position.generation,
            epoch=epoch,
        )
        position.fetch_offset, position.leader_epoch = end, leader_epoch
        self._with.delivery.put(reader)

    def _partition_error(self, position: Position, fetched: FetchedPartition) -> None:
        error = KafkaError(fetched.error_code, f"fetching {position.partition}")
        from_follower = position.read_replica >= 0
        position.read_replica = -1
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and from_follower:
            # it may be behind, or ahead in what it removed: the leader knows
            self._starts.delay(position)
        elif error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._with.positions.out_of_range(position, "the log does not have it")
            self._starts.moved(position)
        elif error.code in _FATAL:
            self._with.positions.fail(position, error)
            self._starts.moved(position)
        else:
            if error.code not in STALE_METADATA:
                self._with.report(PartitionFailed(position.partition, error))
            self._starts.delay(position)
            self._start("metadata", self._renew_metadata)

    async def _renew_metadata(self) -> None:
        topics = {p.partition.topic for p in self._with.positions}
        try:
            await self._with.cluster.metadata(topics)
            self._metadata_failures = 0
        except ConsumerClosedError:
            return
        except KohortError as error:
            self._with.report(BrokerUnavailable("asking for metadata", error))
            self._metadata_failures += 1
        await asyncio.sleep(self._with.backoff.delay_ms(self._metadata_failures) / 1000)
