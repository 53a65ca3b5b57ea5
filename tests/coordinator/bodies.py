"""What requests are made of: topics that exist, members' metadata, bodies with the schema's field names."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

from kohort.coordinator import TopicDirectory
from kohort.protocol import Subscription, encode_subscription
from kohort.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

#: Partitions of each topic that exists.
TOPICS = {"t": 8, "u": 4}
TOPIC_IDS = {name: uuid.uuid5(uuid.NAMESPACE_DNS, name) for name in TOPICS}
DIRECTORY = TopicDirectory(TOPICS.get, {value: key for key, value in TOPIC_IDS.items()}.get, TOPIC_IDS.get)

SESSION_MS = 10_000
REBALANCE_MS = 60_000
START_MS = 1_000_000


def subscription(*topics: str) -> bytes:
    """Metadata of a consumer that reads these topics."""
    return encode_subscription(Subscription(topics), version=0)


def protocols(**metadata: bytes) -> list[SimpleNamespace]:
    """``protocols(range=b"...")``, in order of preference."""
    return [SimpleNamespace(name=name, metadata=data) for name, data in metadata.items()]


RANGE_T = protocols(range=subscription("t"))


def commit_body(
    group: str,
    offsets: dict[tuple[str, int], int],
    member: str,
    generation: int,
    instance: str | None,
    metadata: str | None,
    epoch: int,
    retention_ms: int = -1,
) -> OffsetCommitRequest:
    """An OffsetCommit body with one topic entry a partition."""
    topics = [
        OffsetCommitRequestTopic(
            topic,
            TOPIC_IDS.get(topic, uuid.UUID(int=1)),
            [OffsetCommitRequestPartition(partition, offset, epoch, metadata)],
        )
        for (topic, partition), offset in offsets.items()
    ]
    return OffsetCommitRequest(group, generation, member, instance, retention_ms, topics)


def delete_body(group: str, *partitions: tuple[str, int]) -> OffsetDeleteRequest:
    """An OffsetDelete body with one topic entry a partition."""
    topics = [
        OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(index)]) for topic, index in partitions
    ]
    return OffsetDeleteRequest(group, topics)
