"""Fetch requests, whose responses are raw record batches, and fetch sessions (KIP-227).

In a fetch session the broker remembers the partitions and their fetch offsets, and a request names only what
has changed. A broker that answers with session id 0 keeps no session, because its cache is full. Then each
request names all partitions, and asks for a session again, which costs nothing.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from ..protocol.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from ..protocol.named_tuples import NamedTuple
from .pool import Channel
from .requests import Requests, leader_or_raise, numbers_by_topic

#: From v13 on requests name topics by id (KIP-516). v17 and v18 only add fields for followers.
_LAST_BY_NAME, _LAST_BY_ID = 12, 16


_NO_SESSION = 0
_FIRST_EPOCH = 0
#: After it comes 1: 0 begins a session (KIP-227).
_LAST_EPOCH = 2_147_483_647

#: Errors of a session that the broker does not have, or not in this state: start another one.
SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


#: Partition errors after which the metadata should be requested again.
STALE_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """A partition's part of a Fetch response.

    ``records``: record batches. The first may begin before the offset that was requested, the last may be
    truncated. Offsets are -1 if the broker did not send them. ``aborted`` is set with read_committed.
    ``diverging_offset``: where the log now differs from what was read (KIP-595); -1 if it does not.
    """

    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: bytes | memoryview
    aborted: tuple[AbortedTransaction, ...] = ()
    diverging_offset: int = -1
    preferred_replica: int = -1


class _Options(NamedTuple):
    max_bytes: int
    partition_max_bytes: int
    min_bytes: int
    max_wait_ms: int
    read_committed: bool
    rack: str
    channel: Channel


#: What a Fetch response has.
Fetched = dict[TopicPartition, FetchedPartition]


class FetchFrom(NamedTuple):
    """The offset to fetch from. The epochs (KIP-320) are -1 when unknown, which skips the check."""

    offset: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1


class FetchPlan(NamedTuple):
    """One request of a session: the partitions that it names, and those that it removes from the session.
    ``ids`` has the topic ids of both by name; none if topics go by name.
    """

    session_id: int
    epoch: int
    named: Mapping[TopicPartition, FetchFrom]
    forgotten: tuple[TopicPartition, ...] = ()
    ids: Mapping[str, uuid.UUID] = MappingProxyType({})


@dataclass(slots=True)
class FetchSession:
    """The fetch session with one broker (KIP-227). It has at most one request pending at a time."""

    session_id: int = _NO_SESSION
    epoch: int = _FIRST_EPOCH
    _known: dict[TopicPartition, FetchFrom] = field(default_factory=dict)
    _ids: dict[str, uuid.UUID] = field(default_factory=dict)

    def plan(self, wanted: Mapping[TopicPartition, FetchFrom], ids: Mapping[str, uuid.UUID]) -> FetchPlan:
        """Return the next request for these partitions. ``ids``: topic ids by name, for topics named by id.

        Then call ``answered`` with the response, or ``lost`` if there was none.
        """
        if ids != {topic: known for topic, known in self._ids.items() if topic in ids}:
            # a topic was recreated (or is no longer named by id): start a new session
            self._ids |= ids
            self.epoch = _FIRST_EPOCH
        if self.epoch == _FIRST_EPOCH:
            self._known.clear()
            return FetchPlan(self.session_id, _FIRST_EPOCH, self._learn_topics(wanted), ids=ids)
        gone = tuple(partition for partition in self._known if partition not in wanted)
        for partition in gone:
            del self._known[partition]
        known = self._known.get
        return FetchPlan(
            self.session_id,
            self.epoch,
            self._learn_topics({p: where for p, where in wanted.items() if known(p) != where}),
            gone,
            # nothing may be wanted of a topic whose partitions are removed
            self._ids if ids else {},
        )

    def on_answer(self, error: ErrorCode, session_id: int) -> None:
        """Take in the error code and session id of the response to the last plan."""
        if error is not ErrorCode.NONE or session_id == _NO_SESSION:
            self.session_id, self.epoch = _NO_SESSION, _FIRST_EPOCH
            return
        self.epoch = 1 if session_id != self.session_id or self.epoch == _LAST_EPOCH else self.epoch + 1
        self.session_id = session_id

    def on_lost_answer(self) -> None:
        """No response came, so the broker may have processed the request or not: start a new session next."""
        self.epoch = _FIRST_EPOCH

    def _learn_topics(self, named: Mapping[TopicPartition, FetchFrom]) -> Mapping[TopicPartition, FetchFrom]:
        self._known.update(named)
        return named


async def fetch(
    cluster: Requests,
    start: Mapping[TopicPartition, int | FetchFrom],
    *,
    node_id: int | None = None,
    max_bytes: int = 52_428_800,
    partition_max_bytes: int = 1_048_576,
    min_bytes: int = 1,
    max_wait_ms: int = 500,
    read_committed: bool = False,
    rack: str = "",
    session: FetchSession | None = None,
    channel: Channel = Channel.DATA,
    on_fetched: Callable[[Fetched], None] = lambda _: None,
) -> Fetched:
    """Fetch record batches from these offsets, in one request to each leader (or only to ``node_id``).

    Sizes are in bytes, ``max_wait_ms`` in milliseconds. Partitions that are not in the response are left out;
    partition errors are in the result, not raised. Makes one attempt. Raises BrokerConnectionError if a
    leader cannot be reached. With a ``session`` of that node, the result has only partitions with new
    records, offsets or errors. ``on_fetched`` is called with the result of that node a turn of the event loop
    before this returns it.
    """
    options = _Options(max_bytes, partition_max_bytes, min_bytes, max_wait_ms, read_committed, rack, channel)
    at = {p: where if isinstance(where, FetchFrom) else FetchFrom(where) for p, where in start.items()}
    if node_id is not None:
        return await _fetch_from(cluster, node_id, at, options, session, on_fetched)
    if any(cluster.leader(partition) is None for partition in at):
        await cluster.metadata({partition.topic for partition in at})
    by_node: dict[int, dict[TopicPartition, FetchFrom]] = defaultdict(dict)
    for partition, where in at.items():
        by_node[leader_or_raise(cluster, partition)][partition] = where
    answers = await asyncio.gather(
        *(_fetch_from(cluster, node, part, options) for node, part in by_node.items())
    )
    return {partition: row for answer in answers for partition, row in answer.items()}


async def _fetch_from(
    cluster: Requests,
    node: int,
    at: Mapping[TopicPartition, FetchFrom],
    options: _Options,
    session: FetchSession | None = None,
    on_fetched: Callable[[Fetched], None] = lambda _: None,
) -> Fetched:
    names = {partition.topic for partition in at}
    ids = {name: topic.topic_id for name in names if (topic := cluster.topic(name)) and topic.topic_id}
    by_id = len(ids) == len(names)
    used = ids if by_id else {}
    plan = FetchPlan(0, -1, at, ids=used) if session is None else session.plan(at, used)
    fetched: Fetched = {}

    def take(response: FetchResponse) -> None:
        if session is not None:
            code = KafkaError(response.error_code).code if response.error_code else ErrorCode.NONE
            session.on_answer(code, response.session_id)
            if code in SESSION_ERRORS:
                return
        if response.error_code:
            raise KafkaError(response.error_code, f"node {node} refused Fetch")
        names_of = {name: name for name in names} | {topic_id: name for name, topic_id in ids.items()}
        for topic, partition, row in fetched_rows(response):
            if topic in names_of:
                fetched[TopicPartition(names_of[topic], partition)] = row
        on_fetched(fetched)

    try:
        await cluster.request(
            node,
            ApiKey.FETCH,
            _make_request(plan, options),
            channel=options.channel,
            timeout_ms=cluster.request_timeout_ms + options.max_wait_ms,
            max_version=_LAST_BY_ID if by_id else _LAST_BY_NAME,
            on_answer=take,
        )
    except BaseException:
        if session is not None:
            session.on_lost_answer()
        raise
    return fetched


def _make_request(plan: FetchPlan, options: _Options) -> FetchRequest:
    ids = plan.ids
    topics: dict[str, list[FetchPartition]] = defaultdict(list)
    for partition, where in plan.named.items():
        topics[partition.topic].append(
            FetchPartition(
                partition=partition.partition,
                current_leader_epoch=where.leader_epoch,
                fetch_offset=where.offset,
                last_fetched_epoch=where.last_fetched_epoch,
                log_start_offset=-1,
                partition_max_bytes=options.partition_max_bytes,
            )
        )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=options.max_wait_ms,
        min_bytes=options.min_bytes,
        max_bytes=options.max_bytes,
        isolation_level=1 if options.read_committed else 0,
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        topics=[FetchTopic(topic=t, topic_id=ids.get(t), partitions=rows) for t, rows in topics.items()],
        forgotten_topics_data=[
            ForgottenTopic(topic=t, topic_id=ids.get(t), partitions=numbers)
            for t, numbers in numbers_by_topic(plan.forgotten).items()
        ],
        rack_id=options.rack,
    )


def fetched_rows(response: FetchResponse) -> Iterator[tuple[str | uuid.UUID | None, int, FetchedPartition]]:
    """Iterate over the partitions of a response: topic name (id from v13 on), number, data."""
    for topic in response.responses:
        for partition in topic.partitions:
            yield topic.topic or topic.topic_id, partition.partition_index, _fetched_partition(partition)


def _fetched_partition(partition: PartitionData) -> FetchedPartition:
    diverging = partition.diverging_epoch
    return FetchedPartition(
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        partition.records or b"",
        tuple(partition.aborted_transactions or ()),
        -1 if diverging is None else diverging.end_offset,
        partition.preferred_read_replica,
    )
