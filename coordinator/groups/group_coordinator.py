"""The group coordinator of a broker: all shards of ``__consumer_offsets`` on one event loop. It takes decoded
requests.

Requests about many groups are split between the groups' shards, and their responses merged. The clock never
jumps: it is the wall clock at the start plus monotonic time.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from ...protocol import ApiKey, ErrorCode, KafkaError, KohortError, RequestContext
from ...protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from ...protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ...protocol.messages.offset_delete import OffsetDeleteRequest
from ..engine.effects import Command, EndMarker, Request
from ..engine.events import MAX_WAITING, CoordinatorEvent, EventStream, Listeners
from ..engine.readiness import Unready, unready_error
from ..engine.runner import Call, CoordinatorLog, Handle, ShardReplicas, ShardRunner, Writes
from ..engine.runtime import ShardRuntime, steady_clock_ms, wall_clock_ahead_ms
from ..offsets.commit import CommitRequest, refused_commit, resolve_commit, resolve_transactional
from ..offsets.delete import resolve_delete
from ..offsets.expiry import remove_topics
from ..settings import GroupSettings
from .durable import OpenTransaction
from .group_config import ConfigValue
from .group_type import EMPTY
from .groups import CommandWorker, CommittedGroup, Groups, GroupShard, TopicDirectory
from .history import History, KeptEvent
from .kinds import KINDS
from .list_groups import list_request
from .shards import OFFSETS_TOPIC, new_groups

T = TypeVar("T")

_COMMANDS: Final = {command: make for kind in KINDS for command, make in kind.commands.items()}


class LoadError(KohortError):
    """Records of the offsets topic could not be read, and the settings forbid continuing without them."""

    def __init__(self, skipped: Mapping[int, int]) -> None:
        where = ", ".join(f"{count} in partition {partition}" for partition, count in skipped.items())
        super().__init__(
            f"what cannot be read of __consumer_offsets: {where}. Restore the files from a copy, or set "
            "kohort.offsets.load.strict=false to leave it out"
        )
        self.skipped = dict(skipped)


class GroupCoordinator:
    """All groups of one broker, for one event loop.

    ``partition_count_of``, ``topic_of_id`` and ``id_of_topic`` look topics up (None: no such topic),
    ``topic_names`` returns all, ``topics_version`` returns another object whenever topics have changed.
    ``shows_topic`` returns whether the sender of a request may know of a topic. ``group_configs`` returns the
    configs that were set for a single group, by Kafka's names. ``clock_ms`` must not go backwards.
    ``on_event`` is called with each event, in the order of ``events``. ``fsync`` puts each batch on the disk
    before it is acknowledged; without it an acknowledged commit survives a crash of the process, but not of
    the machine. ``replicas``: see ``ShardRuntime``. ``workers`` carry out commands of these types, instead of
    those that the kinds of groups make.
    """

    def __init__(
        self,
        *,
        settings: GroupSettings,
        store: CoordinatorLog,
        partition_count_of: Callable[[str], int | None],
        topic_of_id: Callable[[uuid.UUID], str | None],
        id_of_topic: Callable[[str], uuid.UUID | None],
        topic_names: Callable[[], Iterable[str]] = tuple,
        topics_version: Callable[[], object] = object,
        shows_topic: Callable[[RequestContext, str], bool] = lambda _context, _name: True,
        group_configs: Callable[[str], Mapping[str, ConfigValue]] = lambda _group_id: {},
        clock_ms: Callable[[], int] | None = None,
        ahead_ms: Callable[[], int] | None = None,
        new_id: Callable[[], str] | None = None,
        on_event: Callable[[CoordinatorEvent], None] | None = None,
        fsync: bool = False,
        replicas: ShardReplicas | None = None,
        workers: Mapping[type[Command], CommandWorker] | None = None,
    ) -> None:
        make_id = new_id or (lambda: str(uuid.uuid4()))
        self._settings = settings
        self._topics = TopicDirectory(
            partition_count_of, topic_of_id, id_of_topic, topic_names, topics_version, shows_topic
        )
        self._clock_ms = clock_ms or steady_clock_ms()
        # a given clock is all there is
        follows = partial(wall_clock_ahead_ms, self._clock_ms) if clock_ms is None else int
        self._ahead_ms = ahead_ms or follows
        self._history = History(settings.kohort_group_history_size)
        # when the load of partitions began
        self._loaded_ms: dict[int, int] = {}
        self._listeners = Listeners(on_event)
        self._workers = dict(workers or {})
        self._shards = ShardRuntime(
            topic=OFFSETS_TOPIC,
            new_state=lambda: new_groups(settings, make_id, self._topics, group_configs),
            log=store,
            clock_ms=self._clock_ms,
            on_event=self._report_event,
            fsync=fsync,
            linger_ms=settings.group_coordinator_append_linger_ms,
            on_command=self._carry_out,
            replicas=replicas,
            ahead_ms=self._ahead_ms,
        )
        # settings that cannot be used are reported before there is anything to stop
        new_groups(settings, make_id)

    def __repr__(self) -> str:
        return f"<GroupCoordinator: {self._shards!r}>"

    async def start(self) -> None:
        """Open, then load every shard. Raises LoadError."""
        self.open()
        await self.load_all()

    def open(self) -> None:
        """Accept requests; until a shard is loaded they get the responses of a loading coordinator."""
        self._shards.open()

    @property
    def is_loading(self) -> bool:
        """Return whether a shard is being loaded, or waits for room on a full disk to be read."""
        return any(runner.loading for runner in self._shards)

    async def load_all(self) -> None:
        """Load every shard; each serves when it is loaded.

        Raises LoadError with ``kohort_offsets_load_strict`` if anything could not be read.
        """
        now_ms = self._clock_ms() + self._ahead_ms()
        self._loaded_ms = dict.fromkeys((runner.partition for runner in self._shards), now_ms)
        bad = await self._shards.load_all()
        if bad and self._settings.kohort_offsets_load_strict:
            raise LoadError(bad)

    async def stop(self) -> None:
        """Write what is pending, then answer waiting requests NOT_COORDINATOR."""
        for worker in self._workers.values():
            await worker.stop()
        self._shards.stop()
        self._listeners.close()

    async def load(self, partition: int) -> None:
        """Load one partition, which this broker now leads."""
        self.unload(partition)
        self._loaded_ms[partition] = self._clock_ms() + self._ahead_ms()
        await self._shards.load(partition)

    def unload(self, partition: int) -> None:
        """Unload one partition, which another broker leads now, or which is deleted."""
        if self._shards.unload(partition):
            self._history.drop_where(lambda group: self._shards.partition_of(group) == partition)

    async def handle(self, api_key: int, version: int, body: Any, context: RequestContext) -> Any:
        """Return the response body to a decoded request body. JoinGroup and SyncGroup may be parked for
        minutes. Cancelling the call gives up the response, not the request.
        """
        fan_out = OFFSETS_TOPIC.fan_outs.get(api_key)
        if fan_out is not None:
            requests = [
                Request(api_key, version, part, context, Call())
                for part in fan_out.split(version, body, self._topics)
            ]
            await self._shards.submit_all(requests, reads=fan_out.reads, exact=fan_out.exact)
            answers = [await request.handle.answer() for request in requests]
            return fan_out.join(version, answers, self._topics)
        if api_key == ApiKey.LIST_GROUPS:
            return self._list_groups(version, body, context)
        call = Call()
        self.submit(api_key, version, body, context, call)
        return await call.answer()

    def submit(
        self, api_key: int, version: int, body: object, context: RequestContext, handle: Handle
    ) -> None:
        """As ``handle``, for one group: the response goes to ``handle.set``, before this returns or later."""
        # the type, not isinstance: that takes 0.2 us longer for each request of another API
        if type(body) is OffsetCommitRequest:
            body = self.resolve(version, body)
        elif type(body) is OffsetDeleteRequest:
            body = resolve_delete(body, self._topics)
        self._shards.submit(Request(api_key, version, body, context, handle))

    def resolve(self, version: int, body: OffsetCommitRequest) -> CommitRequest:
        """An OffsetCommit body with its topics and partitions looked up; ``submit`` takes it as well."""
        return resolve_commit(version, body, self._topics, self._settings.kohort_commit_max_partitions)

    @property
    def writes(self) -> Writes:
        """The object to notify when reads of sockets begin and end."""
        return self._shards.writes

    def partition_of(self, group_id: str) -> int:
        """The partition of the offsets topic that holds a group's records."""
        return self._shards.partition_of(group_id)

    async def commit_in_transaction(
        self, body: object, context: RequestContext, admit: Callable[[], Awaitable[ErrorCode]]
    ) -> OffsetCommitResponse:
        """As ``handle``, for a TxnOffsetCommit body. ``admit`` is called after topics are looked up; it
        returns the error if the transaction may not write to the group's partition.
        """
        commit = resolve_transactional(body, self._topics, self._settings.kohort_commit_max_partitions)
        call = Call()
        request = Request(ApiKey.TXN_OFFSET_COMMIT, 0, commit, context, call)
        if not commit.refused:
            error = await admit() if commit.group_id else ErrorCode.INVALID_GROUP_ID
            if error:
                return refused_commit(request, error)
        self._shards.submit(request)
        answer: OffsetCommitResponse = await call.answer()
        return answer

    async def write_marker(
        self, partition: int, producer_id: int, producer_epoch: int, marker: EndMarker
    ) -> ErrorCode:
        """Write the end of a producer's transaction to a partition of the offsets topic: its offsets there
        are committed or dropped.
        """
        runner = self._shards.serving_partition(partition)
        if isinstance(runner, Unready):
            return unready_error(runner)
        call = Call()
        runner.steer(
            lambda shard, _now_ms: shard.append(
                None,
                (),
                lambda error, _now_ms: call.set(error),
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                marker=marker,
            )
        )
        error: ErrorCode = await call.answer()
        return error

    def events(self, group: str | None = None, *, limit: int = MAX_WAITING) -> EventStream:
        """Subscribe to events from now on, of one group or (None) of all.

        A reader that lets more than ``limit`` events wait loses the oldest, and is told how many.
        """
        return self._listeners.stream(group, limit)

    def pass_on(self, event: CoordinatorEvent) -> None:
        """Pass an event that happened outside the coordinator to whoever listens to its own."""
        self._listeners.tell(event)

    def history(self, group_id: str, limit: int = -1, after: int = -1) -> list[KeptEvent]:
        """Events of a group, oldest first: entries with a higher sequence than ``after``, the newest
        ``limit`` of them (-1: all).

        Raises KafkaError: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, and the errors of a coordinator that is not
        running, does not have the group, or is still loading it.
        """
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty: name a group")
        shard = self._shards.serving(group_id)
        if isinstance(shard, Unready):
            error = OFFSETS_TOPIC.unready_error(ApiKey.DESCRIBE_GROUP_HISTORY, shard)
            raise KafkaError(error, shard.value)
        if not shard.state.knows(group_id):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
        return self._history.of(group_id, limit, after)

    def kept_since_ms(self, group_id: str) -> int:
        """Return since when events of a group have been kept: older ones were never there, newer ones that
        are missing have made way. -1 while the group is not loaded.
        """
        return self._loaded_ms.get(self._shards.partition_of(group_id), -1)

    def group_counts(self) -> tuple[dict[tuple[str, str], int], int]:
        """Number of groups by type and state, in Kafka's words and for every state that there is, and the
        number of all their members.
        """
        counts = {
            (kind.group_type.name, state.value): 0 for kind in KINDS for state in kind.group_type.states
        }
        members = 0
        for runner in self._shards:
            groups = runner.shard.state
            for group in groups.groups.values():
                counts[group.type.name, group.state_name] += 1
                members += group.member_count
            for group_type, count in groups.count_sleeping().items():
                counts[group_type.name, EMPTY] += count
        return counts, members

    def positions(self) -> Iterator[CommittedGroup]:
        """How far every group is that is loaded here. Other steps may run between two groups."""
        for runner in list(self._shards):
            groups = runner.shard.state
            for group_id in () if runner.loading else groups.group_ids():
                if groups.knows(group_id):
                    yield groups.positions_of(group_id)

    def open_transactions(self) -> list[OpenTransaction]:
        """Transactions that hold offsets of groups here, the oldest first."""
        now_ms = self._clock_ms()
        found = [
            transaction
            for runner in self._shards
            for transaction in runner.shard.state.durable.open_transactions(now_ms)
        ]
        return sorted(found, key=lambda transaction: -transaction.age_ms)

    def topics_deleted(self, names: Collection[str]) -> None:
        """Remove what every group keeps of these topics, now or when its shard is loaded."""
        gone = frozenset(names)

        def remove(shard: GroupShard, now_ms: int) -> None:
            remove_topics(shard, gone)
            for kind in KINDS:
                if kind.topics_deleted is not None:
                    kind.topics_deleted(shard, gone, now_ms)

        for runner in self._shards:
            runner.when_loaded(remove)

    def steer(self, group_id: str, step: Callable[[GroupShard, int], T]) -> T:
        """Run a step of the test kit on the group's shard and carry out its effects."""
        return self._shards.steer(group_id, step)

    def time_moved(self) -> None:
        """Do what has become due, after the clock was moved forward."""
        self._shards.time_moved()

    def _carry_out(self, runner: ShardRunner[Groups], command: Command) -> None:
        worker = self._workers.get(type(command))
        if worker is None:
            worker = self._workers[type(command)] = _COMMANDS[type(command)](self._settings)
        worker.carry_out(runner, command)

    def _report_event(self, groups: Groups, event: CoordinatorEvent) -> None:
        event.timestamp_ms = self._clock_ms() + self._ahead_ms()
        self._history.keep(event, groups.knows)
        self._listeners.tell(event)

    def _list_groups(self, version: int, body: Any, context: RequestContext) -> ListGroupsResponse:
        if not self._shards.started:
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if self.is_loading:
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        listed: list[ListedGroup] = []
        wanted = list_request(body)
        for runner in self._shards:
            call = Call()
            runner.step(Request(ApiKey.LIST_GROUPS, version, wanted, context, call))
            listed += call.body
        return ListGroupsResponse(groups=listed)
