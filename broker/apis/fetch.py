"""Fetch (1), v4-18: record batches from an offset on; waits until there is enough (KIP-74, KIP-98, KIP-516).

Every answer says session 0: clients then name all their partitions in each request (KIP-227).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    PartitionData,
)
from .._node import Node
from .._partition import Partition, Waiter
from .._stopwatch import clock
from ..authorizer import CLUSTER_NAME, Access, Operation, ResourceType, right
from ._api import Asked, Guard, Request, ServedApi
from ._errors import ErrorShape, Level, same
from ._guards import each, topics
from ._lookup import NO_EPOCH, check_leader_epoch, find_partition

#: Records of this many bytes or more are not read here: they may go from the file to the socket.
RANGE_BYTES = 262_144

_TOPIC_IDS_FROM = 13
_SESSIONS_FROM = 7
_REPLICA_STATE_FROM = 15
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_NO_SESSION = 0


#: A partition, None with an error, and what is answered for it.
_Found = tuple[Partition | None, PartitionData]


@dataclass(slots=True)
class _Round:
    """The outcome of one look at all partitions of a request."""

    topics: list[FetchableTopicResponse] = field(default_factory=list)
    #: A topic and a partition of the request, and what was found there.
    places: list[tuple[Any, Any, _Found]] = field(default_factory=list)
    size: int = 0
    urgent: bool = False


async def handle(node: Node, request: Request) -> Any:
    body = request.body
    if body.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        return request.error_answer(ErrorCode.UNKNOWN_SERVER_ERROR)
    if request.version >= _SESSIONS_FROM and body.session_id != _NO_SESSION:
        return request.answer(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    most = _most_bytes(node, request)
    # there may be no batches that come to so little: any will do
    min_bytes = body.min_bytes if body.min_bytes <= most else 1
    found = _look(node, request, most, replica=_replica(node, request))
    if body.max_wait_ms > 0 and found.places and not found.urgent and found.size < min_bytes:
        await _grown(node, request, found, min_bytes)
        found = _look(node, request, most)
    by_client = not is_replica(node, request)
    for _, _, (partition, data) in found.places:
        if partition is not None and by_client:
            partition.topic.traffic.fetch_requests += 1
            partition.topic.traffic.bytes_out += _size(data)
    return request.answer(session_id=_NO_SESSION, responses=found.topics)


def _size(data: PartitionData) -> int:
    return len(data.records or b"")


async def _grown(node: Node, request: Request, found: _Round, min_bytes: int) -> None:
    """Wait until the partitions have ``min_bytes``, one of them has something urgent to tell, or the time is
    up. Only what has grown is looked at again: there may be thousands.
    """
    places = {
        partition: (topic, wanted, _size(data))
        for topic, wanted, (partition, data) in found.places
        if partition is not None
    }
    size = found.size
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.body.max_wait_ms / 1000
    waiter = Waiter()
    for partition in places:
        partition.waiters[waiter] = None
    try:
        while size < min_bytes:
            async with asyncio.timeout_at(deadline):
                changed = await waiter.changed()
            for partition in changed:
                topic, wanted, before = places[partition]
                now = _Round()
                try:
                    # a range is not read, however much it is
                    _, data = _read(
                        node, request, topic, wanted, wanted.partition_max_bytes, now, range_bytes=1
                    )
                except KafkaError:
                    return
                if now.urgent:
                    return
                places[partition] = topic, wanted, _size(data)
                size += _size(data) - before
    except TimeoutError:
        return
    finally:
        for partition in places:
            partition.waiters.pop(waiter, None)


def _most_bytes(node: Node, request: Request) -> int:
    """Most bytes of the answer: the least of what the client, the broker and the quota allow."""
    most: int = min(request.body.max_bytes, node.settings.fetch_max_bytes)
    # followers have no quotas
    limit = None if is_replica(node, request) else node.throttle.fetch_limit(request, clock())
    return most if limit is None else min(most, limit)


def is_replica(node: Node, request: Request) -> bool:
    """Return whether a broker of this cluster asks, to copy what this one leads."""
    return node.cluster is not None and _replica(node, request) is not None


def _replica(node: Node, request: Request) -> tuple[int, int] | None:
    """Node id and epoch of the broker of this cluster that fetches; None for a client."""
    body = request.body
    if body.replica_state is None or request.version < _REPLICA_STATE_FROM:
        node_id, epoch = body.replica_id, -1
    else:
        node_id, epoch = body.replica_state
    return (node_id, epoch) if node.cluster is not None and node_id >= 0 else None


def _look(node: Node, request: Request, left: int, *, replica: tuple[int, int] | None = None) -> _Round:
    """Read all partitions. What a ``replica`` asks for says what it has: it is taken in once."""
    body = request.body
    found = _Round()
    seen: set[tuple[Any, int]] = set()
    for topic in body.topics:
        results = []
        for wanted in topic.partitions:
            # a partition that is named again is no other partition, and looking at it takes time
            name = (topic.topic or topic.topic_id, wanted.partition)
            if name in seen:
                continue
            seen.add(name)
            try:
                result = _read(node, request, topic, wanted, left, found, replica=replica)
            except KafkaError as error:
                result = None, PartitionData(wanted.partition, error.code, -1, aborted_transactions=None)
                found.urgent = True
            size = _size(result[1])
            found.size += size
            left -= size
            results.append(result[1])
            found.places.append((topic, wanted, result))
        found.topics.append(FetchableTopicResponse(topic.topic, topic.topic_id, results))
    return found


def _read(
    node: Node,
    request: Request,
    topic: Any,
    wanted: Any,
    left: int,
    found: _Round,
    *,
    range_bytes: int = RANGE_BYTES,
    replica: tuple[int, int] | None = None,
) -> _Found:
    """Read a partition; of ``range_bytes`` or more only the place in the file is told."""
    by_id = request.version >= _TOPIC_IDS_FROM
    partition = find_partition(node, topic.topic, topic.topic_id, wanted.partition, by_id=by_id)
    check_leader_epoch(partition, wanted.current_leader_epoch)
    committed = request.body.isolation_level == _READ_COMMITTED
    diverging = _diverging(partition, wanted)
    if diverging is not None:
        found.urgent = True
        return partition, PartitionData(
            wanted.partition,
            ErrorCode.NONE,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            diverging,
            aborted_transactions=None,
        )
    to_log_end = is_replica(node, request)
    if replica is not None and partition.leadership is not None:
        _fetched(partition, wanted.fetch_offset, *replica)
    allowed = max(0, min(wanted.partition_max_bytes, left))
    # a batch over the limit is given only as the first of an answer, so that every client gets on (KIP-74)
    info = partition.read(
        wanted.fetch_offset,
        allowed,
        committed=committed,
        to_log_end=to_log_end,
        at_least_one=not found.size,
        range_bytes=range_bytes,
    )
    # a range of a file is as good as its bytes: what is sent is sent in parts
    records: Any = info.range or info.records
    return partition, PartitionData(
        wanted.partition,
        ErrorCode.NONE,
        info.high_watermark,
        info.last_stable_offset,
        info.log_start_offset,
        aborted_transactions=[AbortedTransaction(*one) for one in info.aborted] if committed else None,
        records=records,
    )


def _fetched(partition: Partition, offset: int, node_id: int, epoch: int) -> None:
    """Take in that a follower has everything below ``offset``. Raises KafkaError."""
    assert partition.leadership is not None, "this broker leads it"
    if partition.log_start_offset <= offset <= partition.log_end_offset:
        partition.leadership.fetched(node_id, offset, epoch)


def _diverging(partition: Partition, wanted: Any) -> EpochEndOffset | None:
    """The point where the client's log and ours part, if its last epoch ended before (KIP-595)."""
    if wanted.last_fetched_epoch == NO_EPOCH:
        return None
    epoch, end_offset = partition.end_of_epoch(wanted.last_fetched_epoch)
    if epoch == NO_EPOCH or end_offset == -1:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"nothing is known of leader epoch {wanted.last_fetched_epoch}"
        )
    parted = epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset
    return EpochEndOffset(epoch, end_offset) if parted else None


_REPLICA_RIGHT = Access(
    Operation.CLUSTER_ACTION,
    ResourceType.CLUSTER,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "every topic, if the request names a replica",
)
_EACH = topics(right(Operation.READ, ResourceType.TOPIC, "each topic, for everyone else"), "topic")


async def _guard(asked: Asked) -> Any:
    body = asked.request.body
    # v15 moved the number into a struct
    number = body.replica_id if body.replica_state is None else body.replica_state.replica_id
    if number >= 0:
        return await each(asked, lambda _item: (_REPLICA_RIGHT, CLUSTER_NAME))
    return await _EACH.admit(asked)


_LEVELS = (
    Level("topics", "responses", same("topic", "topic_id")),
    Level("partitions", "partitions", {"partition": "partition_index"}, {"high_watermark": -1}),
)

API = ServedApi(
    key=ApiKey.FETCH,
    versions=(4, 18),
    handler=handle,
    guard=Guard((_REPLICA_RIGHT, *_EACH.access), _guard),
    errors=ErrorShape(top=(_SESSIONS_FROM, 18), levels={0: _LEVELS}),
    parks=True,
    reads_only=True,
    fetches=True,
)
