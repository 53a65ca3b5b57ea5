"""The coordinator of a broker: finds the shard of each request, takes requests about many groups apart.

Only this file, ``runner`` and ``listeners`` know asyncio; all shards belong to one event loop. Time comes
from a clock that never jumps: the wall clock of the start, carried on by the monotonic one.
"""

from __future__ import annotations

import asyncio
import gc
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

from ..offsets_topic import partition_for
from ..protocol import ApiKey, ErrorCode, KafkaError, RequestContext
from ..statemachine import GroupState
from .admin import list_request
from .engine.effects import Note, Request
from .engine.events import MAX_WAITING, EventStream, Listeners
from .engine.loader import LoadError
from .engine.readiness import Unready, unready_error
from .engine.runner import Call, Handle, OffsetsLog, ShardRunner
from .engine.shard import Shard, refuse
from .fanout import FAN_OUT
from .history import HistoryEntry
from .offsets.commit import resolve_commit
from .offsets.fetch import resolve_offset_delete
from .offsets.transactions import OpenTransaction, open_transactions
from .replies import GroupsReply
from .settings import GroupSettings
from .topics import TopicDirectory

T = TypeVar("T")

#: Groups whose partition is remembered, and the longest ids of them: groups need not exist to be asked about.
_MAX_REMEMBERED: Final = 50_000
_MAX_REMEMBERED_ID: Final = 100

#: Requests about many groups that change nothing let others go on after this long, in seconds. Any other is
#: carried out whole, even if its answer is given up.
_TURN_S: Final = 0.002
_READS: Final = (ApiKey.OFFSET_FETCH, ApiKey.DESCRIBE_GROUPS)

#: How long an OffsetFetch is held while its shard loads: below every client's own timeout.
_FETCH_PARK_SECONDS: Final = 5.0


class GroupCoordinator:
    """All shards of one broker, for one event loop.

    ``partition_count_of``, ``topic_of_id`` and ``id_of_topic`` look topics up (None: no such topic).
    ``clock_ms`` must not go backwards. ``on_note`` is told what happens, in order, as those are who read
    ``events``. ``fsync`` puts each batch on the disk before it is acknowledged; without it an acknowledged
    commit survives the end of the process, not that of the machine.
    """

    def __init__(
        self,
        *,
        settings: GroupSettings,
        store: OffsetsLog,
        partition_count_of: Callable[[str], int | None],
        topic_of_id: Callable[[uuid.UUID], str | None],
        id_of_topic: Callable[[str], uuid.UUID | None],
        clock_ms: Callable[[], int] | None = None,
        new_id: Callable[[], str] | None = None,
        on_note: Callable[[Note], None] | None = None,
        fsync: bool = False,
    ) -> None:
        self._settings = settings
        self._store = store
        self._topics = TopicDirectory(partition_count_of, topic_of_id, id_of_topic)
        self._clock_ms = clock_ms or steady_clock_ms()
        self._new_id = new_id or (lambda: str(uuid.uuid4()))
        self._listeners = Listeners(settings.kohort_group_history_size, self._clock_ms, on_note)
        self._fsync = fsync
        self._runners: dict[int, ShardRunner] = {}
        self._started = False
        self._remembered = lru_cache(maxsize=_MAX_REMEMBERED)(partition_for)

    def __repr__(self) -> str:
        loading = sum(runner.loading for runner in self._runners.values())
        return f"<GroupCoordinator: {len(self._runners)} shards, {loading} of them loading>"

    async def start(self) -> None:
        """Open, then load every shard. Raises LoadError."""
        self.open()
        await self.load_all()

    def open(self) -> None:
        """From here on requests get the answers for a loading coordinator."""
        self._started = True
        for partition in range(self._store.partition_count):
            self._runners[partition] = self._runner(partition)

    async def load_all(self) -> None:
        """Load every shard; each serves when it is loaded.

        Raises LoadError with ``kohort_offsets_load_strict`` if anything could not be read.
        """
        collecting = gc.isenabled()
        gc.disable()  # what is loaded stays: it would be looked through again and again for garbage
        try:
            for runner in list(self._runners.values()):
                await runner.load()
        finally:
            if collecting:
                gc.enable()
        bad = {runner.partition: runner.skipped for runner in self._runners.values() if runner.skipped}
        if bad and self._settings.kohort_offsets_load_strict:
            raise LoadError(bad)

    async def stop(self) -> None:
        """Write what is still to be written, then send everyone who waits to look for another coordinator."""
        self._started = False
        for runner in self._runners.values():
            runner.close()
        self._runners.clear()
        self._listeners.close()

    async def load(self, partition: int) -> None:
        """Take on one partition: this broker now leads it."""
        self.unload(partition)
        runner = self._runners[partition] = self._runner(partition)
        await runner.load()

    def unload(self, partition: int) -> None:
        """Give one partition up: another broker leads it, or it is gone."""
        runner = self._runners.pop(partition, None)
        if runner is not None:
            runner.close()
            self._listeners.history.drop_where(lambda group: self._shard_of(group) == partition)

    async def handle(self, api_key: int, version: int, body: Any, context: RequestContext) -> Any:
        """The response body to a decoded request body, when it is due: JoinGroup and SyncGroup may be held
        for minutes. Cancelling the call gives the answer up, not what was asked for.
        """
        fan_out = FAN_OUT.get(api_key)
        if fan_out is not None:
            requests = [
                Request(api_key, version, part, context, Call())
                for part in fan_out.split(version, body, self._topics)
            ]
            loop = asyncio.get_running_loop()
            turn_ends = loop.time() + _TURN_S
            for request in requests:
                if api_key == ApiKey.OFFSET_FETCH and await self._waited(request):
                    turn_ends = loop.time() + _TURN_S
                self._submit(request)
                if api_key in _READS and loop.time() > turn_ends:
                    await asyncio.sleep(0)
                    turn_ends = loop.time() + _TURN_S
            answers = [await request.handle.answer() for request in requests]
            return fan_out.join(version, answers, self._topics)
        if api_key == ApiKey.LIST_GROUPS:
            return self._list(version, body, context)
        call = Call()
        self.submit(api_key, version, body, context, call)
        return await call.answer()

    def submit(self, api_key: int, version: int, body: Any, context: RequestContext, handle: Handle) -> None:
        """As ``handle``, for a request about one group: the answer goes to ``handle.set``, before this
        returns or later.
        """
        if api_key == ApiKey.OFFSET_COMMIT:
            most = self._settings.kohort_commit_max_partitions
            body = resolve_commit(version, body, self._topics, most)
        elif api_key == ApiKey.OFFSET_DELETE:
            body = resolve_offset_delete(body, self._topics)
        self._submit(Request(api_key, version, body, context, handle))

    def events(self, group: str | None = None, *, limit: int = MAX_WAITING) -> EventStream:
        """A subscription to what happens from now on, in one group or (None) in all.

        A reader that lets more than ``limit`` events wait loses the oldest, and is told how many.
        """
        return self._listeners.stream(group, limit)

    def history(self, group_id: str, limit: int = -1, after: int = -1) -> list[HistoryEntry]:
        """What happened in a group, oldest first: entries with a higher sequence than ``after``, the newest
        ``limit`` of them (-1: all).

        Raises KafkaError: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, and as every request to a coordinator that
        is not running, does not have the group, or still loads it.
        """
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty: name a group")
        runner = self._runners.get(self._shard_of(group_id))
        unready = self._unready(runner)
        if runner is None or unready is not None:
            assert unready is not None
            raise KafkaError(unready_error(ApiKey.DESCRIBE_GROUP_HISTORY, unready), unready.value)
        if not runner.shard.knows(group_id):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
        return self._listeners.history.of(group_id, limit, after)

    def group_counts(self) -> tuple[dict[str, int], int]:
        """How many groups are in each state, by Kafka's name of it, and how many members all have."""
        states: Counter[str] = Counter()
        members = 0
        for runner in self._runners.values():
            live = runner.shard.groups
            states.update(group.state.value for group in live.values())
            members += sum(len(group.members) for group in live.values())
            sleeping = len(runner.shard.durable.group_ids().keys() - live.keys())
            if sleeping:
                states[GroupState.EMPTY.value] += sleeping
        return dict(states), members

    def open_transactions(self) -> list[OpenTransaction]:
        """Transactions that hold offsets of groups here, the oldest first."""
        now_ms = self._clock_ms()
        found = [
            transaction
            for runner in self._runners.values()
            for transaction in open_transactions(runner.shard.durable, now_ms)
        ]
        return sorted(found, key=lambda transaction: -transaction.age_ms)

    def topics_deleted(self, names: Collection[str]) -> None:
        """Remove the offsets of these topics from every group."""
        for runner in self._runners.values():
            runner.topics_deleted(set(names))

    def steer(self, group_id: str, step: Callable[[Shard, int], T]) -> T:
        """Run a step (see ``steering``) on the group's shard and carry out what follows, as for a request."""
        runner = self._runners[self._shard_of(group_id)]
        return runner.steer(step)

    def time_moved(self) -> None:
        """The clock has jumped ahead: what became due is done now."""
        for runner in self._runners.values():
            runner.wake()

    def _submit(self, request: Request) -> None:
        runner = self._runner_of(request)
        if runner is not None and self._started and not runner.loading:
            runner.step(request)
        else:
            unready = self._unready(runner)
            assert unready is not None
            request.handle.set(refuse(request, unready_error(request.api_key, unready)))

    async def _waited(self, request: Request) -> bool:
        """Hold a request while its shard loads, within bounds; whether it did."""
        runner = self._runner_of(request)
        if runner is None or not runner.loading:
            return False
        await runner.wait_loaded(_FETCH_PARK_SECONDS)
        return True

    def _runner_of(self, request: Request) -> ShardRunner | None:
        return self._runners.get(self._shard_of(request.body.group_id or ""))

    def _unready(self, runner: ShardRunner | None) -> Unready | None:
        if not self._started:
            return Unready.INACTIVE
        if runner is None:
            return Unready.NOT_HERE
        return Unready.LOADING if runner.loading else None

    def _list(self, version: int, body: Any, context: RequestContext) -> GroupsReply:
        if not self._started:
            return GroupsReply(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if any(runner.loading for runner in self._runners.values()):
            return GroupsReply(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        reply = GroupsReply()
        wanted = list_request(body)
        for runner in self._runners.values():
            call = Call()
            runner.step(Request(ApiKey.LIST_GROUPS, version, wanted, context, call))
            reply.groups += call.body
        return reply

    def _shard_of(self, group_id: str) -> int:
        find = self._remembered if len(group_id) <= _MAX_REMEMBERED_ID else partition_for
        return find(group_id, self._store.partition_count)

    def _runner(self, partition: int) -> ShardRunner:
        shard = Shard(self._settings, self._new_id)
        return ShardRunner(
            partition,
            shard,
            self._store,
            self._clock_ms,
            partial(self._listeners.tell, shard.knows),
            self._fsync,
            self._settings.group_coordinator_append_linger_ms,
        )


def steady_clock_ms() -> Callable[[], int]:
    """A clock in ms since the epoch that does not follow later changes of the wall clock."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (time.monotonic_ns() + offset_ns) // 1_000_000
