"""The share coordinator of a broker: all shards of ``__share_group_state`` on one event loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any
from uuid import UUID

from ..coordinator import CoordinatorEvent
from ..coordinator.engine.effects import Command, Request
from ..coordinator.engine.readiness import Unready
from ..coordinator.engine.runner import Call, CoordinatorLog, ShardReplicas, ShardRunner
from ..coordinator.engine.runtime import ShardRuntime
from ..protocol import ApiKey, ErrorCode, RequestContext, SharePartitionKey, messages_of
from .order import Arrival, StateOrder
from .settings import ShareCoordinatorSettings
from .shards import MAX_BYTES, SHARE_STATE_TOPIC, PruneLog, ShareRequest, ShareStates, delete_topics

_READS = frozenset({ApiKey.READ_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY})
#: What replaces a state, or deletes it.
_IN_ORDER = frozenset({ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE})
_ANY_EPOCH = -1
_NOBODY = RequestContext()


class ShareCoordinator:
    """All share partitions that one broker keeps the state of, on one event loop.

    ``prune`` cuts a partition of ``__share_group_state``, and returns whether it could. ``partitions_of``
    returns the number of partitions of the topic with an id, 0 if there is none, ``max_bytes`` the largest
    batch that the coordinator's topic accepts, in bytes, ``epoch_of`` the leader epoch of a partition of it.
    ``on_write`` is called with the seconds that each write took. Until ``start`` every request gets
    NOT_COORDINATOR, because the topic does not exist.
    """

    def __init__(
        self,
        *,
        settings: ShareCoordinatorSettings,
        prune: Callable[[int, PruneLog], bool],
        partitions_of: Callable[[UUID], int],
        max_bytes: Callable[[], int] = lambda: MAX_BYTES,
        epoch_of: Callable[[int], int] = lambda _: _ANY_EPOCH,
        clock_ms: Callable[[], int],
        on_event: Callable[[CoordinatorEvent], None] | None = None,
        on_write: Callable[[float], None] = lambda _seconds: None,
        fsync: bool = False,
    ) -> None:
        self._settings = settings
        self._prune = prune
        self._partitions_of = partitions_of
        self._max_bytes = max_bytes
        self._epoch_of = epoch_of
        self._clock_ms = clock_ms
        self._on_event = on_event
        self._on_write = on_write
        self._fsync = fsync
        self._shards: ShardRuntime[ShareStates] | None = None
        self._order = StateOrder()

    def __repr__(self) -> str:
        return f"<ShareCoordinator: {self._shards or 'not started'!r}>"

    @property
    def started(self) -> bool:
        """Return whether its topic exists, as far as it knows."""
        return self._shards is not None

    async def start(self, log: CoordinatorLog) -> None:
        """Load every shard from the topic's log and serve it. Does nothing if it has started already."""
        if self._shards is None:
            await self._open(log, None).load_all()

    def start_replicated(self, log: CoordinatorLog, replicas: ShardReplicas) -> None:
        """Start in a cluster. Each partition that this broker leads is served from ``load`` to ``unload``."""
        self._open(log, replicas)

    async def load(self, partition: int) -> None:
        """Load one partition that this broker leads from now on."""
        if self._shards is not None:
            await self._shards.load(partition)

    def unload(self, partition: int) -> None:
        """Unload one partition that another broker leads from now on."""
        if self._shards is not None:
            self._shards.unload(partition)

    def stop(self) -> None:
        """Stop, after flushing the shards' pending records."""
        if self._shards is not None:
            self._shards.stop()

    async def answer(self, api_key: ApiKey, rows: Iterable[tuple[SharePartitionKey, object]]) -> list[Any]:
        """Answer rows of a request, in their order: the rows of its response.

        What is read is refused while another broker may have taken over: it could lack its writes.
        """
        calls = [
            (Request(api_key, 0, ShareRequest(key, row, str(key)), _NOBODY, call), call)
            for key, row, call in ((key, row, Call()) for key, row in rows)
        ]
        requests = [request for request, _ in calls]
        if api_key in _IN_ORDER:
            requests = [request for request in requests if self._is_in_order(request)]
        began = time.perf_counter()
        if self._shards is None:
            for request in requests:
                request.handle.set(SHARE_STATE_TOPIC.refusal(request, ErrorCode.NOT_COORDINATOR))
        else:
            reads = api_key in _READS
            await self._shards.submit_all(requests, reads=reads, exact=reads)
        answers = [await call.answer() for _, call in calls]
        if api_key in _IN_ORDER:
            for request, call in calls:
                if not call.body.error_code:
                    self._order.carried_out(request.body.key, request.body.row.order)
        if api_key is ApiKey.WRITE_SHARE_GROUP_STATE:
            for _ in answers:
                self._on_write(time.perf_counter() - began)
        return answers

    async def answer_one(self, api_key: ApiKey, key: SharePartitionKey, text: str, row: object) -> Any:
        """Answer one row of a request that does not only read; ``text`` is the key in writing."""
        call = Call()
        request = Request(api_key, 0, ShareRequest(key, row, text), _NOBODY, call)
        began = time.perf_counter()
        if self._shards is None:
            return SHARE_STATE_TOPIC.refusal(request, ErrorCode.NOT_COORDINATOR)
        self._shards.submit(request)
        answer = await call.answer()
        if api_key is ApiKey.WRITE_SHARE_GROUP_STATE:
            self._on_write(time.perf_counter() - began)
        return answer

    def _is_in_order(self, request: Request) -> bool:
        """Return whether a change of a whole state is to be carried out; otherwise it is answered. That is
        not for a broker that has the state no more, nor for one that has it again since the request was sent:
        others know more requests.
        """
        key, row, text = request.body
        if self._shards is None or isinstance(self._shards.serving(text), Unready):
            return True
        if row.coordinator_epoch not in (_ANY_EPOCH, self._epoch_of(self._shards.partition_of(text))):
            request.handle.set(SHARE_STATE_TOPIC.refusal(request, ErrorCode.NOT_COORDINATOR))
            return False
        arrival = self._order.admit(key, row.order)
        if arrival is Arrival.LATE:
            request.handle.set(SHARE_STATE_TOPIC.refusal(request, ErrorCode.FENCED_STATE_EPOCH))
        elif arrival is Arrival.REPEATED:
            request.handle.set(messages_of(request.api_key).PartitionResult(key.partition))
        return arrival is Arrival.NEXT

    def pruned_offsets(self) -> dict[int, int]:
        """The offsets below which partitions of the topic were cut in this run, by partition."""
        shards = self._shards or ()
        return {each.partition: cut for each in shards if (cut := each.shard.state.pruned_offset)}

    def topics_deleted(self, topic_ids: Collection[UUID]) -> None:
        """Delete the state of topics that are gone, as far as this broker has it."""
        for runner in self._shards or ():
            runner.when_loaded(partial(delete_topics, topic_ids=frozenset(topic_ids)))

    def _open(self, log: CoordinatorLog, replicas: ShardReplicas | None) -> ShardRuntime[ShareStates]:
        shards = self._shards = ShardRuntime(
            topic=SHARE_STATE_TOPIC,
            new_state=lambda: ShareStates(
                self._settings, self._max_bytes, self._partitions_of, is_replicated=replicas is not None
            ),
            log=log,
            clock_ms=self._clock_ms,
            on_event=lambda _state, event: self._tell(event),
            fsync=self._fsync,
            linger_ms=-1,
            on_command=self._carry_out,
            replicas=replicas,
        )
        shards.open()
        return shards

    def _carry_out(self, runner: ShardRunner[ShareStates], command: Command) -> None:
        assert isinstance(command, PruneLog), "the only command of this coordinator"
        if self._prune(runner.partition, command):
            runner.shard.state.was_cut(command)

    def _tell(self, event: CoordinatorEvent) -> None:
        if self._on_event is not None:
            self._on_event(event)
