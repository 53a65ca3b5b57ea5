"""Fetch (1), v4-18: reads record batches from an offset on; waits until there are enough (KIP-74, KIP-98,
KIP-516).

In a session (KIP-227) a request names only partitions whose offset has changed, and its response has only
those with news. A request without a session is treated as a session that ends with its response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...cluster import NO_LEADER, TopicImage
from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ..authorizer import CLUSTER_NAME, Access, Operation, ResourceType, right
from ..clients.fetch_sessions import FIRST_EPOCH, Place, ServedFetchSession
from ..clients.fetch_sessions import NO_EPOCH as NO_SESSION_EPOCH
from ..event_loop.stopwatch import clock
from ..event_loop.time_slices import Slices
from ..node import Node
from ..partitions.partition import LocalTopic, Partition
from ._api import Guard, Request, ServedApi
from ._errors import ErrorShape, Level, same_fields
from ._guards import each, each_topic, topic_name
from ._lookup import NO_EPOCH, find_topic, partition_of

if TYPE_CHECKING:
    from ..metadata.cluster_node import ClusterNode

#: Records of this many bytes or more are not read here: they may be sent from the file to the socket.
RANGE_BYTES = 262_144

#: Versions from which topics go by id (KIP-516), and from which there are sessions (KIP-227), and with them
#: errors of the whole response.
_TOPIC_IDS_FROM = 13
_ERROR_FROM = 7
#: Clients of this version read from any replica.
_RACKS_FROM = 11
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1

#: Longest time between two looks at all partitions of a session, in seconds: a follower without news shows by
#: it that it is alive.
_ALL_AGAIN_S = 5.0


class _Fetch:
    """One request in progress, with the values that all of its partitions share."""

    __slots__ = (
        "any_replica",
        "asks_rights",
        "by_broker",
        "cluster",
        "committed",
        "found",
        "node",
        "request",
        "session",
    )

    def __init__(self, node: Node, request: Request[FetchRequest], session: ServedFetchSession) -> None:
        self.node = node
        self.request = request
        self.session = session
        # a session has more topics than its requests name, which is all that the guard knows
        self.asks_rights = request.authorizer is not None and request.body.session_epoch != NO_SESSION_EPOCH
        self.by_broker = session.by_broker
        self.any_replica = not session.by_broker and request.version >= _RACKS_FROM
        self.committed = request.body.isolation_level == _READ_COMMITTED
        # only set if this broker selects the nearest replica for the client
        self.cluster = None if session.by_broker or not request.body.rack_id else node.cluster
        # the last topic of the request, its image and its local partitions: most partitions have the same
        # topic as the one before
        self.found: tuple[FetchTopic, TopicImage, LocalTopic | None] | None = None


#: A partition of a request as it was found; None with an error.
_Row = tuple[Place, Partition | None, PartitionData]


@dataclass(slots=True)
class _Round:
    """Result of one look at partitions of a request."""

    rows: list[_Row] = field(default_factory=list)
    size: int = 0
    urgent: bool = False
    #: Whether other work ran between two partitions: some may have changed since they were read.
    paused: bool = False


async def handle(node: Node, request: Request[FetchRequest]) -> FetchResponse:
    """Read batches; wait up to ``max_wait_ms`` for ``min_bytes``. Sessions from v7, topics by id from v13."""
    body = request.body
    if body.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"isolation level {body.isolation_level}")
    replica, sessions, now_s = (
        _follower_of(node, request),
        node.fetch_sessions,
        asyncio.get_running_loop().time(),
    )
    try:
        session = sessions.find(
            body.session_id,
            body.session_epoch,
            by_id=request.version >= _TOPIC_IDS_FROM,
            by_broker=replica is not None,
            now_s=now_s,
        )
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    if replica is not None:
        session.follower = replica[0]
    fetch, epoch = _Fetch(node, request, session), session.epoch
    session.update(body.topics, body.forgotten_topics_data if session.id else ())
    if session.id and not session:
        sessions.drop(session.id)
        return FetchResponse()
    most = _most_bytes(node, request, by_broker=replica is not None)
    # if the limit is below min_bytes, any batch is enough
    min_bytes = body.min_bytes if body.min_bytes <= most else 1
    if epoch != NO_SESSION_EPOCH:
        session.look_again(now_s, min(_ALL_AGAIN_S, node.settings.replica_lag_time_max_ms / 4_000))
    found = await _read_partitions(fetch, session.partitions_due(), most, replica=replica)
    if session.epoch != epoch:
        # the client has continued the session with another request
        return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    if body.max_wait_ms > 0 and session and not found.urgent and found.size < min_bytes:
        with sessions.wait(sum(len(topic.partitions) for topic in body.topics)) as may_wait:
            if may_wait:
                await _wait_for_bytes(fetch, found, min_bytes)
        if may_wait and session.epoch == epoch:
            found = await _read_partitions(fetch, session.partitions_due(), most)
        if session.epoch != epoch:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    _count_traffic(node, found.rows, by_broker=replica is not None)
    if epoch == NO_SESSION_EPOCH:
        return FetchResponse(responses=_by_topic(found.rows))
    news = []
    for row in found.rows:
        place, partition, data = row
        if place.is_news(data):
            news.append(row)
        has_more = _has_more(fetch, place, partition, data)
        if found.paused and partition is not None:
            has_more = has_more or place.has_changed(partition, data)
        session.looked_at(place, partition, has_more=has_more, was_sent=bool(data.records))
    now_s = asyncio.get_running_loop().time()
    if epoch == FIRST_EPOCH:
        sessions.keep(session, now_s)
    else:
        sessions.count_growth(session, now_s)
    told = news if session.id else found.rows
    if not session.id:
        session.end()
    return FetchResponse(session_id=session.id, responses=_by_topic(told))


def _count_traffic(node: Node, rows: list[_Row], *, by_broker: bool) -> None:
    """Count what consumers get for their topics, and what followers get for their throttle."""
    if not by_broker:
        for _, partition, data in rows:
            if partition is not None:
                traffic = partition.topic.traffic
                traffic.fetch_requests += 1
                if data.records:
                    traffic.bytes_out += len(data.records)
    elif node.cluster is not None:
        for _, partition, data in rows:
            if partition is not None and _is_throttled(node.cluster, partition):
                node.cluster.leader_throttle.record(_size_of(data), clock())


def _by_topic(rows: list[_Row]) -> list[FetchableTopicResponse]:
    topics: list[FetchableTopicResponse] = []
    results: list[PartitionData] = []
    before = None
    for place, _, data in rows:
        topic = place.topic
        if topic is not before and (
            before is None or topic.topic != before.topic or topic.topic_id != before.topic_id
        ):
            results = []
            topics.append(FetchableTopicResponse(topic.topic, topic.topic_id, results))
        before = topic
        results.append(data)
    return topics


def _has_more(fetch: _Fetch, place: Place, partition: Partition | None, data: PartitionData) -> bool:
    """Return whether a partition already has news that its session has not been sent."""
    if partition is None or data.diverging_epoch is not None or data.preferred_read_replica >= 0:
        return True
    if fetch.by_broker:
        end = partition.log_end_offset
    elif fetch.committed:
        end = data.last_stable_offset
    else:
        end = data.high_watermark
    # all was sent, but the client may not have it yet: the next request may be for the same
    return bool(data.records) or place.wanted.fetch_offset < end


def _size_of(data: PartitionData) -> int:
    return len(data.records or b"")


async def _wait_for_bytes(fetch: _Fetch, found: _Round, min_bytes: int) -> None:
    """Wait until the partitions have ``min_bytes``, one of them has urgent news, the time is up, or the
    session has continued. Only partitions that have grown are read again: there may be thousands.
    """
    session = fetch.session
    sizes = {}
    #: What changed while others were read: the waiter did not tell of it.
    stale = []
    for place, partition, data in found.rows:
        if partition is not None:
            sizes[place] = _size_of(data)
            session.watch(place, partition)
            if found.paused and place.has_changed(partition, data):
                stale.append(partition)
    size = found.size
    deadline = asyncio.get_running_loop().time() + fetch.request.body.max_wait_ms / 1000
    try:
        while size < min_bytes:
            changed, stale = stale, []
            if not changed:
                async with asyncio.timeout_at(deadline):
                    changed = await session.waiter.wait_changed()
            if not changed:
                return
            fetch.found = None
            # all of them first: whichever ends the wait, the response reads the others, too
            places = [(session.on_change(partition), partition) for partition in changed]
            for grown, partition in places:
                if grown is None:
                    continue
                now = _Round()
                try:
                    if min_bytes <= 1 and _has_come(fetch, grown, partition):
                        # any batch is enough, and is read once: by the response
                        return
                    # a range is not read, however much it is
                    _, data = _read_partition(
                        fetch, grown, grown.wanted.partition_max_bytes, now, range_bytes=1
                    )
                except KafkaError:
                    return
                if now.urgent:
                    return
                session.watch(grown, partition)
                size += _size_of(data) - sizes.get(grown, 0)
                sizes[grown] = _size_of(data)
    except TimeoutError:
        return
    finally:
        if not session.id:
            session.end()


def _has_come(fetch: _Fetch, place: Place, partition: Partition) -> bool:
    """Return whether a client may read on in a partition. What a follower gets may be held back."""
    end = partition.last_stable_offset if fetch.committed else partition.high_watermark
    return not fetch.by_broker and place.wanted.fetch_offset < end


def _most_bytes(node: Node, request: Request[FetchRequest], *, by_broker: bool) -> int:
    """Most bytes of the response: the least that the client, the broker and the quota allow."""
    most: int = min(request.body.max_bytes, node.settings.fetch_max_bytes)
    # followers have no quotas
    limit = None if by_broker else node.throttle.fetch_limit(request, clock())
    return most if limit is None else min(most, limit)


def _follower_of(node: Node, request: Request[FetchRequest]) -> tuple[int, int] | None:
    """Node id and epoch of the follower that sent this; None for a client."""
    body = request.body
    if node.cluster is None or not is_of_replica(body):
        return None
    return (body.replica_id, -1) if body.replica_state is None else body.replica_state


def is_of_replica(body: FetchRequest) -> bool:
    """Return whether the request says that a follower sent it."""
    # v15 moved the number into a struct
    return (body.replica_id if body.replica_state is None else body.replica_state.replica_id) >= 0


async def _read_partitions(
    fetch: _Fetch,
    places: Iterable[Place],
    left: int,
    *,
    replica: tuple[int, int] | None = None,
) -> _Round:
    """Read partitions. The offsets of a ``replica`` show what it has, and are noted once."""
    fetch.found = None
    found = _Round()
    refused: list[_Row] = []
    slices = Slices()
    for place in places:
        await slices.end_if_due()
        try:
            partition, data = _read_partition(fetch, place, left, found, replica=replica)
        except KafkaError as error:
            data = PartitionData(place.wanted.partition, error.code, -1, aborted_transactions=None)
            found.urgent = True
            rows = refused if error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED else found.rows
            rows.append((place, None, data))
            continue
        if data.records:
            size = len(data.records)
            found.size += size
            left -= size
        found.rows.append((place, partition, data))
    found.rows += refused
    found.paused = slices.paused
    return found


def _read_partition(
    fetch: _Fetch,
    place: Place,
    left: int,
    found: _Round,
    *,
    range_bytes: int = RANGE_BYTES,
    replica: tuple[int, int] | None = None,
) -> tuple[Partition, PartitionData]:
    """Read a partition; for ``range_bytes`` or more return only the place in the file."""
    request, topic, wanted = fetch.request, place.topic, place.wanted
    if fetch.asks_rights and not _may_read(fetch.node, request, topic):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the topic may not be read")
    if fetch.found is None or fetch.found[0] is not topic:
        image = find_topic(fetch.node, topic.topic, topic.topic_id, by_id=fetch.session.by_id)
        fetch.found = topic, image, fetch.node.logs.topic(image.name)
    _, image, here = fetch.found
    partition = partition_of(
        image,
        here,
        wanted.partition,
        known_epoch=wanted.current_leader_epoch,
        any_replica=fetch.any_replica,
    )
    place.log_end_offset = partition.log_end_offset
    if (
        fetch.cluster is not None
        and (nearest := _nearest_replica(fetch.cluster, fetch, partition, wanted.fetch_offset)) != NO_LEADER
    ):
        found.urgent = True
        return partition, _without_records(partition, wanted, nearest=nearest)
    if (
        wanted.last_fetched_epoch != NO_EPOCH
        and (diverging := _find_divergence(partition, wanted)) is not None
    ):
        found.urgent = True
        return partition, _without_records(partition, wanted, diverging=diverging)
    if replica is not None and partition.leadership is not None:
        _note_fetch(partition, wanted, *replica)
    held_back = fetch.by_broker and _is_held_back(fetch.node, request, partition)
    allowed = 0 if held_back or left < 0 else min(wanted.partition_max_bytes, left)
    # only the first batch of a response may exceed the limit, so that every client makes progress (KIP-74)
    info = partition.read(
        wanted.fetch_offset,
        allowed,
        committed=fetch.committed,
        to_log_end=fetch.by_broker,
        at_least_one=not found.size and not held_back,
        range_bytes=range_bytes,
    )
    # a range of a file serves as well as its bytes: responses are sent in parts
    records: Any = info.range or info.records
    return partition, PartitionData(
        wanted.partition,
        ErrorCode.NONE,
        info.high_watermark,
        info.last_stable_offset,
        info.log_start_offset,
        aborted_transactions=[AbortedTransaction(*one) for one in info.aborted] if fetch.committed else None,
        records=records,
    )


def _without_records(
    partition: Partition,
    wanted: FetchPartition,
    *,
    diverging: EpochEndOffset | None = None,
    nearest: int = NO_LEADER,
) -> PartitionData:
    """The answer that has a reader go on elsewhere: where its log still agreed, or at a nearer replica."""
    return PartitionData(
        wanted.partition,
        ErrorCode.NONE,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        diverging,
        aborted_transactions=None,
        preferred_read_replica=nearest,
    )


def _note_fetch(partition: Partition, wanted: FetchPartition, node_id: int, epoch: int) -> None:
    """Note that a follower has everything below its fetch offset. Raises KafkaError."""
    assert partition.leadership is not None, "this broker leads it"
    if partition.log_start_offset <= wanted.fetch_offset <= partition.log_end_offset:
        partition.leadership.on_fetch(node_id, wanted.fetch_offset, epoch, wanted.log_start_offset)


def _is_held_back(node: Node, request: Request[FetchRequest], partition: Partition) -> bool:
    """Return whether a follower that is not in sync gets nothing now because it is throttled (KIP-73)."""
    replica, leadership = _follower_of(node, request), partition.leadership
    if node.cluster is None or replica is None or leadership is None:
        return False
    return (
        replica[0] not in leadership.replication.isr
        and _is_throttled(node.cluster, partition)
        and node.cluster.leader_throttle.is_exceeded(clock())
    )


def _is_throttled(cluster: ClusterNode, partition: Partition) -> bool:
    replicas = partition.topic.config.leader_replication_throttled_replicas
    return cluster.leader_throttle.concerns(replicas, partition.index)


def _nearest_replica(cluster: ClusterNode, fetch: _Fetch, partition: Partition, offset: int) -> int:
    """The broker in the client's rack from which it should read an offset (KIP-392); -1: this one."""
    node, request, leadership = fetch.node, fetch.request, partition.leadership
    rack = request.body.rack_id
    if leadership is None or not rack or not node.settings.selects_by_rack:
        return NO_LEADER
    brokers = cluster.image.brokers
    if node.settings.broker_rack != rack:
        for node_id in leadership.replication.having(offset):
            broker = brokers.get(node_id)
            there = cluster.endpoint(node_id, request.context.listener)
            if broker is not None and broker.rack == rack and there is not None:
                return node_id
    return NO_LEADER


def _find_divergence(partition: Partition, wanted: FetchPartition) -> EpochEndOffset | None:
    """The point where the two logs diverge, if the client's last epoch ended earlier here (KIP-595); else
    None.
    """
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
_TOPIC_RIGHT = right(Operation.READ, ResourceType.TOPIC, "each topic, for everyone else")


def _may_read(node: Node, request: Request[FetchRequest], topic: FetchTopic) -> bool:
    if is_of_replica(request.body):
        return request.allows(_REPLICA_RIGHT)
    name = topic_name(node, topic, "topic")
    return name is None or request.allows(_TOPIC_RIGHT, name)


async def _guard(node: Node, request: Request[FetchRequest]) -> object:
    if request.body.session_epoch != NO_SESSION_EPOCH:
        return await request.proceed(node)
    if is_of_replica(request.body):
        return await each(node, request, lambda _item: (_REPLICA_RIGHT, CLUSTER_NAME))
    return await each_topic(node, request, _TOPIC_RIGHT, "topic")


_LEVELS = (
    Level("topics", "responses", same_fields("topic", "topic_id")),
    Level("partitions", "partitions", {"partition": "partition_index"}, {"high_watermark": -1}),
)

API = ServedApi(
    key=ApiKey.FETCH,
    versions=(4, 18),
    handler=handle,
    guard=Guard((_REPLICA_RIGHT, _TOPIC_RIGHT), _guard),
    errors=ErrorShape(top=(_ERROR_FROM, 18), levels={0: _LEVELS}),
    parks=True,
    reads_only=True,
    fetches=True,
    is_of_broker=is_of_replica,
)
