"""Request bodies with the schemas' field names, for requests that are not the membership's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ...client.offsets import CommittedOffset
from ...protocol import TopicPartition
from ...protocol.messages.offset_commit import OffsetCommitRequestPartition

_NO_ID = UUID(int=0)


@dataclass(slots=True)
class CommitTopic:
    """A topic of an OffsetCommit."""

    name: str
    partitions: list[OffsetCommitRequestPartition]
    topic_id: UUID = _NO_ID


@dataclass(slots=True)
class Commit:
    """OffsetCommit."""

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    topics: list[CommitTopic]
    retention_time_ms: int = -1


def commit(
    group: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
    *,
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
) -> Commit:
    """An OffsetCommit."""
    topics: dict[str, CommitTopic] = {}
    for (topic, partition), value in offsets.items():
        if topic not in topics:
            topics[topic] = CommitTopic(topic, [])
        topics[topic].partitions.append(
            OffsetCommitRequestPartition(partition, value.offset, value.leader_epoch, value.metadata)
        )
    return Commit(group, generation, member_id, instance_id, list(topics.values()))


def committed(body: Any | None) -> tuple[list[TopicPartition], int]:
    """The partitions that an OffsetCommit took, and the error of one that it did not; None for no answer."""
    good, refused = [], 0
    for topic in body.topics if body is not None else ():
        for index, error in topic.partitions:
            refused = refused or error
            if not error:
                good.append(TopicPartition(topic.name, index))
    return good, refused


@dataclass(slots=True)
class FetchTopic:
    """A topic of an OffsetFetch."""

    name: str
    partition_indexes: list[int]


@dataclass(slots=True)
class FetchGroup:
    """A group of an OffsetFetch; ``topics`` is None for all."""

    group_id: str
    topics: list[FetchTopic] | None


@dataclass(slots=True)
class Fetch:
    """OffsetFetch, for one group."""

    group_id: str
    topics: list[FetchTopic] | None
    require_stable: bool = True
    groups: list[FetchGroup] = field(init=False)

    def __post_init__(self) -> None:
        self.groups = [FetchGroup(self.group_id, self.topics)]


def fetch(group: str, partitions: Iterable[TopicPartition] | None) -> Fetch:
    """An OffsetFetch of these partitions, or (None) of all."""
    if partitions is None:
        return Fetch(group, None)
    topics: dict[str, FetchTopic] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, FetchTopic(topic, [])).partition_indexes.append(partition)
    return Fetch(group, list(topics.values()))


def fetched(body: Any) -> dict[TopicPartition, CommittedOffset | None]:
    """The offsets of an answered OffsetFetch; None where nothing is committed. Empty for a refusal."""
    groups = body.groups or [body]
    return {
        TopicPartition(topic.name, row.partition_index): (
            CommittedOffset(row.committed_offset, row.committed_leader_epoch, row.metadata or "")
            if row.committed_offset >= 0
            else None
        )
        for group in groups
        if not group.error_code
        for topic in group.topics
        for row in topic.partitions
        if not row.error_code
    }


@dataclass(slots=True)
class DeleteGroups:
    """DeleteGroups."""

    groups_names: list[str]


@dataclass(slots=True)
class DeletePartition:
    """A partition of an OffsetDelete."""

    partition_index: int


@dataclass(slots=True)
class DeleteTopic:
    """A topic of an OffsetDelete."""

    name: str
    partitions: list[DeletePartition]


@dataclass(slots=True)
class OffsetDelete:
    """OffsetDelete."""

    group_id: str
    topics: list[DeleteTopic]
