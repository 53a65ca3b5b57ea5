"""OffsetFetch (key 9), v1-10, and OffsetDelete (key 47), v0: committed offsets are read and removed.

OffsetFetch: v2 null topics mean all; v7 require_stable (KIP-447); v8 many groups (KIP-709), which the caller
asks one by one (:func:`split_fetch`, :func:`join_fetches`); v10 topic ids. A read waits for writes of its
group that are under way, so that a member never starts from before a commit that is about to be
acknowledged.

OffsetDelete (KIP-496) leaves alone what the members of a consumer group read.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...offsets_topic import OffsetDeleted
from ...protocol import ErrorCode, TopicPartition
from ...statemachine import GroupState
from ..classic.group import CONSUMER
from ..engine.readiness import append_error
from ..events import OffsetsRemoved, append_refused
from ..repeats import Repeats
from ..replies import (
    NO_TOPIC_ID,
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    FetchReply,
    OffsetDeleteReply,
    PartitionError,
    TopicErrors,
)

if TYPE_CHECKING:
    from ..engine.effects import Request
    from ..engine.shard import Shard
    from ..topics import TopicDirectory

_BATCH_VERSION: Final = 8
_TOPIC_ID_VERSION: Final = 10


class FetchTopic(NamedTuple):
    """A topic of a fetch; ``error`` is not 0 when it cannot be looked up."""

    name: str
    topic_id: uuid.UUID
    partitions: Sequence[int]
    error: int


@dataclass(slots=True)
class FetchRequest:
    """An OffsetFetch of one group as the core takes it. ``topics`` is None for all; ``error`` is not 0 when
    the group is not looked up.
    """

    group_id: str
    topics: list[FetchTopic] | None
    require_stable: bool
    error: int


def split_fetch(version: int, body: Any, directory: TopicDirectory) -> list[FetchRequest]:
    """One request for each group of an OffsetFetch body."""
    groups = body.groups if version >= _BATCH_VERSION else [body]
    repeats = Repeats()
    requests = []
    for place, group in enumerate(groups):
        group_id = group.group_id or ""
        refused = repeats.refuses(group_id)
        topics = [] if refused else _fetch_topics(version, place, group.topics, directory, repeats)
        error = int(ErrorCode.INVALID_REQUEST) if refused else 0
        requests.append(FetchRequest(group_id, topics, bool(body.require_stable), error))
    return requests


def join_fetches(version: int, groups: list[FetchedGroup], directory: TopicDirectory) -> FetchReply:
    """The body that answers all groups together. Below v2 a group's error is told on each partition."""
    if version >= _TOPIC_ID_VERSION:
        for group in groups:
            group.topics = [topic for topic in group.topics if _has_id(topic, directory)]
    if version >= _BATCH_VERSION:
        return FetchReply([], groups)
    group = groups[0]
    return FetchReply(group.topics, [], group.error_code)


def handle_fetch(shard: Shard, request: Request, _now_ms: int) -> None:
    """Offsets as committed; -1 where there is none. The group need not exist."""
    fetch: FetchRequest = request.body
    if fetch.error:
        shard.reply(request, fetch_refusal(request, fetch.error))
        return
    topics = fetch.topics if fetch.topics is not None else _all_topics(shard, fetch.group_id)
    fetched = [
        FetchedTopic(
            topic.name,
            topic.topic_id,
            [_fetch(shard, fetch, topic, partition) for partition in topic.partitions],
        )
        for topic in topics
    ]
    shard.reply(request, FetchedGroup(fetch.group_id, fetched))


def fetch_refusal(request: Request, error: int) -> FetchedGroup:
    """The answer for a group that is an error: top-level, or on each partition where v1 has no such field."""
    fetch: FetchRequest = request.body
    topics = []
    if request.version < 2 and fetch.topics is not None:
        topics = [
            FetchedTopic(
                topic.name, topic.topic_id, [FetchedPartition(p, error_code=error) for p in topic.partitions]
            )
            for topic in fetch.topics
        ]
    return FetchedGroup(fetch.group_id, topics, error)


@dataclass(slots=True)
class OffsetDeleteRequest:
    """An OffsetDelete as the core takes it; each partition comes with its error, 0 for none."""

    group_id: str
    topics: list[tuple[str, list[PartitionError]]]


def resolve_offset_delete(body: Any, directory: TopicDirectory) -> OffsetDeleteRequest:
    """Read an OffsetDelete body, and mark the partitions that do not exist."""
    missing = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    topics = []
    for topic in body.topics:
        count = directory.partition_count_of(topic.name) or 0
        numbers = [partition.partition_index for partition in topic.partitions]
        if numbers:
            outcomes = [PartitionError(n, 0 if 0 <= n < count else missing) for n in numbers]
            topics.append((topic.name, outcomes))
    if any(outcome.error_code for _, outcomes in topics for outcome in outcomes):
        topics = _bad_first(topics)
    return OffsetDeleteRequest(body.group_id, topics)


def handle_offset_delete(shard: Shard, request: Request, _now_ms: int) -> None:
    """Tombstones for offsets of topics that no member reads."""
    delete: OffsetDeleteRequest = request.body
    error = _undeletable(shard, delete.group_id)
    if error:
        shard.reply(request, delete_refusal(request, error))
        return
    group = shard.find(delete.group_id)
    known = shard.durable.partitions_of(delete.group_id)
    # each once, however often it is named
    records: dict[OffsetDeleted, None] = {}
    for name, partitions in delete.topics:
        subscribed = group is not None and group.subscribes_to(name)
        for index, outcome in enumerate(partitions):
            if outcome.error_code:
                continue
            if subscribed:
                partitions[index] = outcome._replace(error_code=int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))
            elif TopicPartition(name, outcome.partition_index) in known:
                records[OffsetDeleted(delete.group_id, name, outcome.partition_index)] = None
    if records:
        shard.append(tuple(records), AfterOffsetDelete(delete.group_id, request, len(records)))
    else:
        shard.reply(request, _delete_reply(delete))


def delete_refusal(_request: Request, error: int) -> OffsetDeleteReply:
    """An OffsetDelete answer that is an error for the whole request."""
    return OffsetDeleteReply(error)


@dataclass(slots=True)
class AfterOffsetDelete:
    """Waits for the tombstones of an OffsetDelete, then answers it."""

    group_id: str
    request: Request
    count: int

    def done(self, shard: Shard, _now_ms: int) -> None:
        shard.note(OffsetsRemoved(self.group_id, cause="deleted by request", count=self.count))
        shard.reply(self.request, _delete_reply(self.request.body))

    def failed(self, shard: Shard, error: ErrorCode, _now_ms: int) -> None:
        shard.note(append_refused(self.group_id, error))
        shard.reply(self.request, delete_refusal(self.request, append_error(error)))


def _fetch_topics(
    version: int, place: int, topics: Any, directory: TopicDirectory, repeats: Repeats
) -> list[FetchTopic] | None:
    """The topics of the group that is at this place of the request."""
    if topics is None:
        return None
    resolved = []
    for topic in topics:
        if version >= _TOPIC_ID_VERSION:
            topic_id, name = topic.topic_id, directory.topic_of_id(topic.topic_id) or ""
            error = 0 if name else int(ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            topic_id, name, error = NO_TOPIC_ID, topic.name, 0
        answered, refused = repeats.sift((place, name or topic_id), topic.partition_indexes)
        resolved.append(FetchTopic(name, topic_id, answered, error))
        if refused:
            resolved.append(FetchTopic(name, topic_id, refused, int(ErrorCode.INVALID_REQUEST)))
    return resolved


def _has_id(topic: FetchedTopic, directory: TopicDirectory) -> bool:
    # "all topics" finds names; one that was deleted meanwhile cannot be told by id
    if topic.topic_id == NO_TOPIC_ID and topic.name:
        topic.topic_id = directory.id_of_topic(topic.name) or NO_TOPIC_ID
        return topic.topic_id != NO_TOPIC_ID
    return True


def _all_topics(shard: Shard, group_id: str) -> list[FetchTopic]:
    topics: dict[str, list[int]] = {}
    for topic, partition in shard.durable.offsets.get(group_id, ()):
        topics.setdefault(topic, []).append(partition)
    return [FetchTopic(name, NO_TOPIC_ID, partitions, 0) for name, partitions in topics.items()]


def _fetch(shard: Shard, fetch: FetchRequest, topic: FetchTopic, partition: int) -> FetchedPartition:
    if topic.error:
        return FetchedPartition(partition, error_code=topic.error)
    key = TopicPartition(topic.name, partition)
    if fetch.require_stable and shard.durable.is_pending(fetch.group_id, key):
        return FetchedPartition(partition, error_code=int(ErrorCode.UNSTABLE_OFFSET_COMMIT))
    entry = shard.durable.offset(fetch.group_id, key)
    if entry is None:
        return FetchedPartition(partition)
    return FetchedPartition(partition, entry.offset, entry.leader_epoch, entry.metadata)


def _undeletable(shard: Shard, group_id: str) -> ErrorCode:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    group = shard.find(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER:
        return ErrorCode.NON_EMPTY_GROUP
    return ErrorCode.NONE


def _bad_first(topics: list[tuple[str, list[PartitionError]]]) -> list[tuple[str, list[PartitionError]]]:
    """Kafka's order of an answer in which something does not exist: that first, each topic once."""
    merged: dict[str, list[PartitionError]] = {}
    for wanted in (True, False):
        for name, outcomes in topics:
            found = [outcome for outcome in outcomes if bool(outcome.error_code) is wanted]
            if found:
                merged.setdefault(name, []).extend(found)
    return list(merged.items())


def _delete_reply(delete: OffsetDeleteRequest) -> OffsetDeleteReply:
    return OffsetDeleteReply(
        0, [TopicErrors(name, NO_TOPIC_ID, partitions) for name, partitions in delete.topics]
    )
