"""Requests to share coordinators (KIP-932, APIs 83 to 87): what is kept of share partitions.

The state of a share partition is at the broker that leads its partition of ``__share_group_state``. Whoever
asks says how that broker is found and reached: ``state_client`` for a client of a cluster; a broker knows the
leaders itself.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, Protocol, TypeAlias, TypeVar
from uuid import UUID

from ..protocol import (
    ApiKey,
    ErrorCode,
    KafkaError,
    KohortError,
    RequestBody,
    SharePartitionKey,
    api_key_of,
    messages_of,
    request_type,
)
from ..protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ..protocol.messages.find_coordinator import FindCoordinatorRequest
from ..protocol.named_tuples import NamedTuple
from .errors import BrokerConnectionError
from .requests import SHARE, Requests
from .surroundings import SURROUNDINGS
from .waiting import Backoff

T = TypeVar("T")

#: The coordinator of one key: its node id, or the error with its message.
Found: TypeAlias = "int | KafkaError"


class AskNode(Protocol):
    """Sends a request to a node, and returns the response."""

    def __call__(self, node: int, body: RequestBody[T], /) -> Awaitable[T]: ...


#: Rows of a request or response, by partition; their type is the API's.
_Rows: TypeAlias = "Mapping[SharePlace, Any]"
_Results: TypeAlias = "dict[SharePlace, Any]"

_E = ErrorCode
#: Errors that end by themselves: the state moves to another broker, or is still being loaded there. The last
#: one is of a broker that has not heard yet that share groups were switched on.
PASSING: Final = frozenset(
    {
        _E.NOT_COORDINATOR,
        _E.COORDINATOR_NOT_AVAILABLE,
        _E.COORDINATOR_LOAD_IN_PROGRESS,
        _E.UNSUPPORTED_VERSION,
    }
)


class SharePlace(NamedTuple):
    """A partition of a topic, of which one group's state is asked for."""

    topic_id: UUID
    partition: int


class ShareStateClient:
    """Asks share coordinators, and retries as long as a coordinator moves or loads.

    ``find`` returns the coordinator of each key; ``ask`` sends a request to a node, and returns its response.
    Both may raise KohortError. ``timeout_ms`` limits a call with all its retries.

    All methods return the row of the response for each partition, with its ``error_code`` (0: none) and
    ``error_message``; they raise nothing. What stays out of reach has COORDINATOR_NOT_AVAILABLE, or the last
    error of its coordinator.
    """

    def __init__(
        self,
        find: Callable[[Sequence[str]], Awaitable[Mapping[str, Found]]],
        ask: AskNode,
        *,
        timeout_ms: int = 30_000,
        backoff: Backoff | None = None,
    ) -> None:
        self._find = find
        self._ask = ask
        self._timeout_ms = timeout_ms
        self._backoff = backoff or Backoff(rng=SURROUNDINGS.get().make_random())

    async def initialize_state(
        self, group_id: str, topics: Mapping[UUID, Sequence[initialize_share_group_state.PartitionData]]
    ) -> dict[SharePlace, initialize_share_group_state.PartitionResult]:
        """Begin the state of share partitions, or replace it, with a state epoch and a start offset.

        FENCED_STATE_EPOCH: the known epoch is higher.
        """
        return await self._ask_all(ApiKey.INITIALIZE_SHARE_GROUP_STATE, group_id, topics)

    async def read_state(
        self, group_id: str, topics: Mapping[UUID, Sequence[read_share_group_state.PartitionData]]
    ) -> dict[SharePlace, read_share_group_state.PartitionResult]:
        """Read the state as the leader of a partition, whose leader epoch fences earlier leaders.

        FENCED_LEADER_EPOCH: there was a later leader. INVALID_REQUEST: it is not initialized.
        """
        return await self._ask_all(ApiKey.READ_SHARE_GROUP_STATE, group_id, topics)

    async def write_state(
        self, group_id: str, topics: Mapping[UUID, Sequence[write_share_group_state.PartitionData]]
    ) -> dict[SharePlace, write_share_group_state.PartitionResult]:
        """Write what has changed, as the leader of a partition: start offset (-1: as it was), and batches.

        FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH: somebody else has the partition, or has reset its state.
        """
        return await self._ask_all(ApiKey.WRITE_SHARE_GROUP_STATE, group_id, topics)

    async def delete_state(
        self, group_id: str, topics: Mapping[UUID, Sequence[delete_share_group_state.PartitionData]]
    ) -> dict[SharePlace, delete_share_group_state.PartitionResult]:
        """Delete the state of share partitions. It is no error if there is none."""
        return await self._ask_all(ApiKey.DELETE_SHARE_GROUP_STATE, group_id, topics)

    async def read_state_summary(
        self, group_id: str, topics: Mapping[UUID, Sequence[read_share_group_state_summary.PartitionData]]
    ) -> dict[SharePlace, read_share_group_state_summary.PartitionResult]:
        """Read epochs, start offset and the number of offsets above it that are done; fences nobody."""
        return await self._ask_all(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, group_id, topics)

    async def _ask_all(self, api: ApiKey, group_id: str, topics: Mapping[UUID, Sequence[Any]]) -> _Results:
        left = {SharePlace(topic_id, row.partition): row for topic_id, rows in topics.items() for row in rows}
        results: _Results = {}
        loop = asyncio.get_running_loop()
        deadline, attempt = loop.time() + self._timeout_ms / 1000, 0
        while left:
            results |= await self._attempt(api, group_id, left)
            left = {place: left[place] for place in left if results[place].error_code in PASSING}
            pause_s = self._backoff.delay_ms(attempt) / 1000
            if not left or loop.time() + pause_s > deadline:
                break
            attempt += 1
            await asyncio.sleep(pause_s)
        return results

    async def _attempt(self, api: ApiKey, group_id: str, rows: _Rows) -> _Results:
        """Ask once; each partition gets a result."""
        keys = {str(SharePartitionKey(group_id, *place)): place for place in rows}
        try:
            found = await self._find(list(keys))
        except KohortError as error:
            return _failed(api, rows, error)
        by_node: dict[int, _Results] = defaultdict(dict)
        results: _Results = {}
        for key, place in keys.items():
            node = found.get(key, _NOT_FOUND)
            if isinstance(node, KafkaError):
                results |= _failed(api, (place,), node)
            else:
                by_node[node][place] = rows[place]
        asked = [self._ask_node(api, node, group_id, some) for node, some in by_node.items()]
        for some in await asyncio.gather(*asked):
            results |= some
        return results

    async def _ask_node(self, api: ApiKey, node: int, group_id: str, rows: _Rows) -> _Results:
        by_topic = groupby(rows.items(), lambda item: item[0].topic_id)
        topics = [_TOPICS[api](topic_id, [row for _, row in some]) for topic_id, some in by_topic]
        body = request_type(api)(group_id, topics)
        try:
            answer = await self._ask(node, body)
        except KohortError as error:
            return _failed(api, rows, error)
        told = {
            SharePlace(result.topic_id or _NO_TOPIC, row.partition): row
            for result in answer.results
            for row in result.partitions
        }
        return _failed(api, rows, _LEFT_OUT) | told


#: The structs of requests that have the partitions of a topic.
_TOPICS: Final[dict[ApiKey, Callable[..., object]]] = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: initialize_share_group_state.InitializeStateData,
    ApiKey.READ_SHARE_GROUP_STATE: read_share_group_state.ReadStateData,
    ApiKey.WRITE_SHARE_GROUP_STATE: write_share_group_state.WriteStateData,
    ApiKey.DELETE_SHARE_GROUP_STATE: delete_share_group_state.DeleteStateData,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: read_share_group_state_summary.ReadStateSummaryData,
}
#: Stands for the topic id of zeros, which is none in a response.
_NO_TOPIC: Final = UUID(int=0)
_NOT_FOUND: Final = KafkaError(_E.COORDINATOR_NOT_AVAILABLE, "no broker told where it is")
_LEFT_OUT: Final = KafkaError(_E.UNKNOWN_SERVER_ERROR, "the share coordinator did not answer for it")


def _failed(api: ApiKey, places: Iterable[SharePlace], error: KohortError) -> _Results:
    """The rows of partitions that no coordinator has answered for."""
    code = error.code if isinstance(error, KafkaError) else _E.UNKNOWN_SERVER_ERROR
    unreachable = isinstance(error, BrokerConnectionError) or code is _E.BROKER_NOT_AVAILABLE
    if code not in PASSING and (unreachable or code.retriable):
        # it says nothing about the state: another broker may have it by now
        code = _E.COORDINATOR_NOT_AVAILABLE
    result = messages_of(api).PartitionResult
    return {place: result(place.partition, code, str(error)) for place in places}


def state_client(cluster: Requests, *, timeout_ms: int = 30_000) -> ShareStateClient:
    """A client of share coordinators over a cluster's connections. They are found by FindCoordinator."""

    async def find(keys: Sequence[str]) -> dict[str, Found]:
        body = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=keys)
        answer = await cluster.request(None, ApiKey.FIND_COORDINATOR, body)
        missing = {row.node_id for row in answer.coordinators} - cluster.known_metadata.nodes.keys() - {-1}
        if missing:
            await cluster.metadata([])
        return {
            row.key: KafkaError(row.error_code, row.error_message or "") if row.error_code else row.node_id
            for row in answer.coordinators
        }

    async def ask(node: int, body: RequestBody[T]) -> T:
        return await cluster.request(node, api_key_of(body), body)

    return ShareStateClient(find, ask, timeout_ms=timeout_ms)
