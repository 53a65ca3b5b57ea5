"""The transaction coordinator of a broker: all shards of ``__transaction_state`` on one event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final

from ..coordinator import CoordinatorEvent
from ..coordinator.engine.effects import Command, Request
from ..coordinator.engine.readiness import Unready, unready_error
from ..coordinator.engine.runner import Call, CoordinatorLog, ShardReplicas, ShardRunner
from ..coordinator.engine.runtime import ShardRuntime
from ..protocol import ApiKey, ErrorCode, KafkaError, RequestContext, TopicPartition
from ..protocol.named_tuples import NamedTuple
from ..statemachine import TransactionState
from .moves import EPOCH_BUMP_VERSION
from .records import TransactionMetadata, encode_all
from .settings import TransactionSettings
from .shards import (
    MAX_BYTES,
    NEEDS_PRODUCER_ID,
    TRANSACTIONS_TOPIC,
    AbortLate,
    Add,
    Identity,
    Initialize,
    ShardTransactions,
    TransactionEnd,
    WriteMarkers,
    abort_late,
    markers_written,
    verify_partition,
)

#: First and longest pause in seconds before failed markers are written again; it doubles with each attempt.
_RETRY_S: Final = 0.5
_MOST_RETRY_S: Final = 5.0

#: Number of transactions that write markers concurrently. Each writes one marker per step of the event loop.
_SIDE_BY_SIDE: Final = 50

_NOBODY: Final = RequestContext()


class TransactionMarker(NamedTuple):
    """The marker that ends a producer's transaction, the same for every partition of the transaction.

    ``attempt`` rises whenever the coordinator writes it again, and from transaction to transaction, under one
    ``coordinator_epoch``; -1: it is not known.
    """

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    attempt: int = -1


class _Ending(NamedTuple):
    """A transaction with a decided end, the partitions that still need its marker, and the next pause."""

    runner: ShardRunner[ShardTransactions]
    decided: TransactionMetadata
    partitions: Sequence[TopicPartition]
    pause_s: float


class TransactionCoordinator:
    """All transactional ids of one broker, on one event loop.

    ``take_producer_id`` returns an unused producer id, or raises KafkaError. ``reserve_producer_ids`` makes
    all later ids larger than the given one. ``write_marker`` writes a marker to a partition and returns True
    if no further attempt is needed, because the marker is written or never can be. ``epoch_of`` returns the
    coordinator's epoch in a partition of ``__transaction_state``, which rises with each start. ``version``
    returns the finalized transaction.version, ``max_bytes`` the largest batch that the topic accepts, in
    bytes. Until ``start`` every request gets NOT_COORDINATOR, because the topic does not exist.
    """

    def __init__(
        self,
        *,
        settings: TransactionSettings,
        take_producer_id: Callable[[], Awaitable[int]],
        reserve_producer_ids: Callable[[int], Awaitable[None]],
        write_marker: Callable[[TopicPartition, TransactionMarker], Awaitable[bool]],
        epoch_of: Callable[[int], int],
        version: Callable[[], int] = lambda: EPOCH_BUMP_VERSION,
        max_bytes: Callable[[], int] = lambda: MAX_BYTES,
        clock_ms: Callable[[], int],
        on_event: Callable[[CoordinatorEvent], None] | None = None,
        fsync: bool = False,
    ) -> None:
        self._settings = settings
        self._take_producer_id = take_producer_id
        self._reserve_producer_ids = reserve_producer_ids
        self._write_marker = write_marker
        self._epoch_of = epoch_of
        self._version = version
        self._max_bytes = max_bytes
        self._clock_ms = clock_ms
        self._on_event = on_event
        self._fsync = fsync
        #: Whether some records could not be read, so that there may be unknown transactions.
        self.unread = False
        self._shards: ShardRuntime[ShardTransactions] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._endings: deque[_Ending] = deque()
        self._attempts = count()
        self._stopped = False

    def __repr__(self) -> str:
        return f"<TransactionCoordinator: {self._shards or 'not started'!r}>"

    async def start(self, log: CoordinatorLog) -> None:
        """Load every shard from the topic's log and serve it. Does nothing if it has started already."""
        if self._shards is not None:
            return
        shards = self._open_runtime(log, None)
        self.unread = bool(await shards.load_all())
        # the records may come from another broker's data folder, with producer ids not yet assigned here
        await self._reserve_producer_ids(
            max((runner.shard.state.newest_producer_id for runner in shards), default=-1)
        )

    def start_replicated(self, log: CoordinatorLog, replicas: ShardReplicas) -> None:
        """Start in a cluster. Each partition that this broker leads is served from ``load`` to ``unload``."""
        self._open_runtime(log, replicas)

    async def load(self, partition: int) -> None:
        """Load one partition that this broker leads from now on."""
        if self._shards is not None:
            await self._shards.load(partition)

    def unload(self, partition: int) -> None:
        """Unload one partition that another broker leads from now on."""
        if self._shards is not None:
            self._shards.unload(partition)

    def partition_of(self, transactional_id: str) -> int:
        """Return the partition of ``__transaction_state`` with the records of an id."""
        assert self._shards is not None, "the coordinator has started"
        return self._shards.partition_of(transactional_id)

    def _open_runtime(
        self, log: CoordinatorLog, replicas: ShardReplicas | None
    ) -> ShardRuntime[ShardTransactions]:
        shards = self._shards = ShardRuntime(
            topic=replace(
                TRANSACTIONS_TOPIC,
                encode=lambda records: encode_all(records, flexible=self._version() > 0),
            ),
            new_state=lambda: ShardTransactions(self._settings, self._version, self._max_bytes),
            log=log,
            clock_ms=self._clock_ms,
            on_event=lambda _state, event: self._report_event(event),
            fsync=self._fsync,
            linger_ms=-1,
            on_command=self._carry_out,
            replicas=replicas,
        )
        shards.open()
        return shards

    async def stop(self) -> None:
        """Stop, after flushing the shards' pending records. The next start writes missing markers."""
        self._stopped = True
        if self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
        if self._shards is not None:
            self._shards.stop()

    async def initialize(self, init: Initialize) -> Identity:
        """Return producer id and epoch for a transactional id. Raises KafkaError if there is no new id."""
        if not init.transactional_id:
            return Identity(ErrorCode.INVALID_REQUEST)
        answer: Identity = await self._ask_shard(ApiKey.INIT_PRODUCER_ID, init)
        if answer is NEEDS_PRODUCER_ID:
            answer = await self._ask_shard(
                ApiKey.INIT_PRODUCER_ID, replace(init, fresh_id=await self._take_producer_id())
            )
        return answer

    async def add(self, add: Add) -> ErrorCode:
        """Add partitions to the transaction, all or none."""
        if not add.transactional_id:
            return ErrorCode.INVALID_REQUEST
        error: ErrorCode = await self._ask_shard(ApiKey.ADD_PARTITIONS_TO_TXN, add)
        return error

    async def end(self, end: TransactionEnd) -> Identity:
        """Commit or abort a transaction. Return the id and epoch with which the producer continues.

        Raises KafkaError if a new producer id is needed and there is none.
        """
        if not end.transactional_id:
            return Identity(ErrorCode.INVALID_REQUEST)
        answer: Identity = await self._ask_shard(ApiKey.END_TXN, end)
        if answer is NEEDS_PRODUCER_ID:
            answer = await self._ask_shard(
                ApiKey.END_TXN, replace(end, fresh_id=await self._take_producer_id())
            )
        return answer

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partition: TopicPartition
    ) -> ErrorCode:
        """Return NONE if a partition is in the producer's open transaction, else the error code."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        state = self._state_of(transactional_id)
        if isinstance(state, ErrorCode):
            return state
        return verify_partition(state, transactional_id, producer_id, producer_epoch, partition)

    def describe(self, transactional_id: str) -> TransactionMetadata | ErrorCode:
        """Return the current state of a transactional id; TRANSACTIONAL_ID_NOT_FOUND if it is not known."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        state = self._state_of(transactional_id)
        if isinstance(state, ErrorCode):
            return state
        return state.by_id.get(transactional_id) or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    def transactions(self) -> Iterable[TransactionMetadata] | ErrorCode:
        """Return all transactional ids; COORDINATOR_LOAD_IN_PROGRESS while a partition is loading."""
        if self._shards is None:
            return []
        if any(runner.loading for runner in self._shards):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return [each for runner in self._shards for each in runner.shard.state.by_id.values()]

    async def _ask_shard(self, api_key: ApiKey, body: Initialize | Add | TransactionEnd) -> Any:
        if self._shards is None:
            error = ErrorCode.NOT_COORDINATOR
            return error if isinstance(body, Add) else Identity(error)
        call = Call()
        self._shards.submit(Request(api_key, 0, body, _NOBODY, call))
        return await call.answer()

    def _state_of(self, transactional_id: str) -> ShardTransactions | ErrorCode:
        if self._shards is None:
            return ErrorCode.NOT_COORDINATOR
        shard = self._shards.serving(transactional_id)
        if isinstance(shard, Unready):
            return unready_error(shard)
        return shard.state

    def _carry_out(self, runner: ShardRunner[ShardTransactions], command: Command) -> None:
        if isinstance(command, AbortLate):
            self._start(self._abort_late(runner, command.late))
            return
        assert isinstance(command, WriteMarkers), "the only other command of this coordinator"
        decided = command.transaction
        self._begin_markers(_Ending(runner, decided, decided.partitions, _RETRY_S))

    def _begin_markers(self, ending: _Ending) -> None:
        """Queue the markers of a transaction whose end is decided; only _SIDE_BY_SIDE are written at once."""
        if self._stopped:
            return
        self._endings.append(ending)
        if len(self._tasks) < _SIDE_BY_SIDE:
            self._start(self._write_markers())

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _abort_late(self, runner: ShardRunner[ShardTransactions], late: TransactionMetadata) -> None:
        # if there is no producer id now, the abort timer repeats this
        with suppress(KafkaError):
            fresh_id = await self._take_producer_id()
            runner.steer(partial(abort_late, late=late, fresh_id=fresh_id))

    async def _write_markers(self) -> None:
        while self._endings:
            runner, decided, partitions, pause_s = self._endings.popleft()
            if runner.shard.gone:
                continue  # the partition's new coordinator writes them
            committed = decided.state is TransactionState.PREPARE_COMMIT
            epoch = self._epoch_of(runner.partition)
            marker = TransactionMarker(
                decided.producer_id, decided.producer_epoch, committed, epoch, next(self._attempts)
            )
            left = [each for each in partitions if not await self._is_written(each, marker)]
            if left:
                again = _Ending(runner, decided, left, min(2 * pause_s, _MOST_RETRY_S))
                asyncio.get_running_loop().call_later(pause_s, self._begin_markers, again)
            else:
                runner.steer(partial(markers_written, prepared=decided))

    async def _is_written(self, partition: TopicPartition, marker: TransactionMarker) -> bool:
        # let other tasks run between two markers, as a transaction may have thousands of partitions
        await asyncio.sleep(0)
        try:
            return await self._write_marker(partition, marker)
        except Exception as error:
            # the other partitions must get their markers nevertheless, because readers wait for these
            context = {"message": f"no marker in {partition}: it is tried again", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            return False

    def _report_event(self, event: CoordinatorEvent) -> None:
        if self._on_event is not None:
            self._on_event(event)
