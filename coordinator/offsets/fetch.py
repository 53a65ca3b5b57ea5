"""OffsetFetch (key 9), v1-10: reads committed offsets.

v2 null topics mean all; v7 require_stable (KIP-447); v8 many groups (KIP-709), one request for each
(:func:`split_fetch`, :func:`join_fetches`); v10 topic ids. A read waits for pending writes of its group, so
that a member never starts at an offset older than a commit that is about to be acknowledged.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from ...protocol import ErrorCode, TopicPartition
from ...protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ...protocol.named_tuples import NamedTuple
from ..element_limits import RepeatLimit
from ..engine.effects import Request
from ..groups.groups import GroupShard, TopicDirectory
from ..shared_responses import NO_TOPIC_ID

#: Versions from which a request has many groups (KIP-709), says which member sends it, and has topics by id
#: (both KIP-848).
_BATCH_VERSION: Final = 8
_MEMBER_EPOCH_VERSION: Final = 9
_TOPIC_ID_VERSION: Final = 10

#: Offset beside UNSTABLE_OFFSET_COMMIT, where Apache Kafka has -1. librdkafka (2.16) takes it for the
#: committed one if its assignment has changed since the request: with -1 it would begin at
#: ``auto.offset.reset``, and with this, its OFFSET_STORED, it asks again.
_ASK_AGAIN: Final = -1000


class FetchTopic(NamedTuple):
    """A topic of a fetch; ``error`` is not 0 if it does not exist. ``present_id`` has the 16 bytes of its id,
    none if there is no topic: offsets of an earlier topic with its name are left out.
    """

    name: str
    topic_id: uuid.UUID
    partitions: Sequence[int]
    error: int
    present_id: bytes = b""


@dataclass(slots=True)
class FetchRequest:
    """An OffsetFetch of one group; ``topics`` None: all. If ``error`` is not 0 the group is not looked up."""

    group_id: str
    topics: list[FetchTopic] | None
    require_stable: bool
    error: int
    member_id: str | None = None
    member_epoch: int = -1


def split_fetch(version: int, body: Any, directory: TopicDirectory) -> list[FetchRequest]:
    """Split an OffsetFetch body into one request for each group."""
    groups = body.groups if version >= _BATCH_VERSION else [body]
    repeats = RepeatLimit()
    requests = []
    for place, group in enumerate(groups):
        group_id = group.group_id or ""
        refused = repeats.refuses(group_id)
        topics = [] if refused else _fetch_topics(version, place, group.topics, directory, repeats)
        error = int(ErrorCode.INVALID_REQUEST) if refused else 0
        sender = (group.member_id, group.member_epoch) if version >= _MEMBER_EPOCH_VERSION else (None, -1)
        requests.append(FetchRequest(group_id, topics, bool(body.require_stable), error, *sender))
    return requests


def join_fetches(
    version: int, groups: list[OffsetFetchResponseGroup], directory: TopicDirectory
) -> OffsetFetchResponse:
    """Merge the groups' responses. Below v2 a group's error is repeated on each partition."""
    if version >= _TOPIC_ID_VERSION:
        groups = [group._replace(topics=list(_with_ids(group.topics, directory))) for group in groups]
    if version >= _BATCH_VERSION:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    # the topics of a group and those of a response without groups differ only in the id
    return OffsetFetchResponse(topics=cast("Any", group.topics), error_code=group.error_code)


def handle_fetch(shard: GroupShard, request: Request, _now_ms: int) -> None:
    """Answer with the committed offsets, -1 for a partition without one. The group need not exist."""
    fetch: FetchRequest = request.body
    if fetch.error:
        shard.refuse(request, fetch.error)
        return
    group = shard.state.find(fetch.group_id)
    error = ErrorCode.NONE if group is None else group.check_fetch(fetch.member_id, fetch.member_epoch)
    if error:
        shard.reply(request, fetch_refusal(request, error))
        return
    topics = fetch.topics if fetch.topics is not None else _all_topics(shard, fetch.group_id)
    fetched = [
        OffsetFetchResponseTopics(
            topic.name,
            topic.topic_id,
            [_fetch_offset(shard, fetch, topic, partition) for partition in topic.partitions],
        )
        for topic in topics
    ]
    shard.reply(request, OffsetFetchResponseGroup(fetch.group_id, fetched))


def fetch_refusal(request: Request, error: int) -> OffsetFetchResponseGroup:
    """Make a group's error response: at the top level, or on each partition, since v1 has no such field."""
    fetch: FetchRequest = request.body
    topics = []
    if request.version < 2 and fetch.topics is not None:
        topics = [
            OffsetFetchResponseTopics(
                topic.name, topic.topic_id, [_no_offset(p, error) for p in topic.partitions]
            )
            for topic in fetch.topics
        ]
    return OffsetFetchResponseGroup(fetch.group_id, topics, error)


def _fetch_topics(
    version: int, place: int, topics: Any, directory: TopicDirectory, repeats: RepeatLimit
) -> list[FetchTopic] | None:
    """The topics of the group at this index of the request."""
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
        present_id = _present_id(directory, name)
        resolved.append(FetchTopic(name, topic_id, answered, error, present_id))
        if refused:
            resolved.append(FetchTopic(name, topic_id, refused, int(ErrorCode.INVALID_REQUEST)))
    return resolved


def _with_ids(
    topics: Iterable[OffsetFetchResponseTopics], directory: TopicDirectory
) -> Iterator[OffsetFetchResponseTopics]:
    """Topics with their ids, without those that were deleted since a fetch of all topics found them."""
    for topic in topics:
        if topic.topic_id != NO_TOPIC_ID or not topic.name:
            yield topic
        elif (topic_id := directory.id_of_topic(topic.name)) is not None:
            yield topic._replace(topic_id=topic_id)


def _all_topics(shard: GroupShard, group_id: str) -> list[FetchTopic]:
    topics: dict[str, list[int]] = {}
    for topic, partition in shard.state.durable.offsets.get(group_id, ()):
        topics.setdefault(topic, []).append(partition)
    directory = shard.state.topics
    return [
        FetchTopic(name, NO_TOPIC_ID, partitions, 0, _present_id(directory, name))
        for name, partitions in topics.items()
    ]


def _present_id(directory: TopicDirectory, name: str) -> bytes:
    topic_id = directory.id_of_topic(name)
    return b"" if topic_id is None else topic_id.bytes


def _fetch_offset(
    shard: GroupShard, fetch: FetchRequest, topic: FetchTopic, partition: int
) -> OffsetFetchResponsePartitions:
    if topic.error:
        return _no_offset(partition, topic.error)
    key = TopicPartition(topic.name, partition)
    if fetch.require_stable and shard.state.durable.is_pending(fetch.group_id, key):
        return _no_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT, _ASK_AGAIN)
    entry = shard.state.durable.offset(fetch.group_id, key)
    if entry is None or not entry.is_of(topic.present_id):
        return _no_offset(partition)
    return OffsetFetchResponsePartitions(partition, entry.offset, entry.leader_epoch, entry.metadata)


def _no_offset(partition: int, error: int = 0, offset: int = -1) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition, offset, error_code=int(error))
