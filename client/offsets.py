"""Requests about offsets: OffsetFetch, OffsetCommit, ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from ..protocol import ApiKey, ErrorCode, KafkaError, KohortError, TopicPartition
from ..protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ..protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ..protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ..protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from .requests import Requests, leader_or_raise, numbers_by_topic, partition_name

#: Timestamps of ListOffsets that stand for the first offset of the log and for its end.
EARLIEST, LATEST = -2, -1

#: Last version that names topics by name. Commits need topic ids, so that a commit never applies to another
#: topic that was created under the same name.
_BY_NAME = 9


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to read, as committed by a group. ``leader_epoch`` is -1 if it was not given."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class OffsetAndTimestamp:
    """Result of ListOffsets. ``offset`` is -1 if no record is that late.

    ``timestamp_ms`` is -1 for EARLIEST and LATEST.
    """

    offset: int
    timestamp_ms: int
    leader_epoch: int

    @property
    def timestamp(self) -> int:
        """kafka-python's name of ``timestamp_ms``."""
        return self.timestamp_ms


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """Result of OffsetForLeaderEpoch: the largest epoch up to the requested one and its end offset, or -1."""

    leader_epoch: int
    offset: int


RowT = TypeVar("RowT", ListOffsetsPartitionResponse, EpochEndOffset)

#: Rows of a response by topic and partition.
_Rows: TypeAlias = dict[tuple[str, int], RowT]
#: Sends a request about some partitions to a node.
Ask: TypeAlias = Callable[[int, Mapping[TopicPartition, int]], Awaitable[_Rows[RowT]]]
#: Collects the errors of partitions instead of raising them, so that a call returns the other partitions.
Errors = dict[TopicPartition, KohortError]


async def committed(
    cluster: Requests,
    group: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = True,
    errors: Errors | None = None,
    member: tuple[str | None, int] = (None, -1),
) -> dict[TopicPartition, CommittedOffset]:
    """Return the group's committed offsets, of these partitions or of all. Partitions without one are left
    out.

    ``require_stable``: wait for open transactions with offsets (KIP-447). With ``errors``, partition errors
    are added there and not raised. ``member``: id and epoch of the consumer group's member that asks; the
    coordinator refuses another epoch than the member's. Retries; raises KafkaError and BrokerConnectionError.
    """
    body = _offset_fetch(group, None if partitions is None else set(partitions), require_stable, *member)

    async def attempt() -> dict[TopicPartition, CommittedOffset]:
        found, refused = await _committed_once(cluster, group, body)
        if refused and errors is None:
            raise next(iter(refused.values()))
        if errors is not None:
            errors.update(refused)
        return found

    return await cluster.at_coordinator(group, attempt)


async def _committed_once(
    cluster: Requests, group: str, body: OffsetFetchRequest
) -> tuple[dict[TopicPartition, CommittedOffset], Errors]:
    response = await cluster.request_coordinator(group, body, max_version=_BY_NAME)
    row = response.groups[0] if response.groups else response
    if row.error_code:
        raise KafkaError(row.error_code, f"reading the offsets of group {group!r}")
    found, refused = {}, {}
    for topic in row.topics:
        for p in topic.partitions:
            partition = TopicPartition(topic.name, p.partition_index)
            if p.error_code:
                refused[partition] = KafkaError(
                    p.error_code, f"reading the offset of {partition_name(partition)} in group {group!r}"
                )
            elif p.committed_offset >= 0:
                found[partition] = CommittedOffset(
                    p.committed_offset, p.committed_leader_epoch, p.metadata or ""
                )
    return found, dict(refused)


def _offset_fetch(
    group: str,
    partitions: set[TopicPartition] | None,
    require_stable: bool,
    member_id: str | None,
    member_epoch: int,
) -> OffsetFetchRequest:
    old = new = None
    if partitions is not None:
        numbers = numbers_by_topic(sorted(partitions))
        old = [OffsetFetchRequestTopic(name=t, partition_indexes=n) for t, n in numbers.items()]
        new = [OffsetFetchRequestTopics(name=t, partition_indexes=n) for t, n in numbers.items()]
    groups = [OffsetFetchRequestGroup(group, member_id, member_epoch, topics=new)]
    return OffsetFetchRequest(group_id=group, topics=old, groups=groups, require_stable=require_stable)


async def commit(
    cluster: Requests,
    group: str,
    offsets: Mapping[TopicPartition, int | CommittedOffset],
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
) -> None:
    """Commit offsets. Without a member id the group must be empty.

    Retries; raises KafkaError for the first partition that is refused, and BrokerConnectionError.
    """

    async def attempt() -> None:
        answers = await commit_once(cluster, group, offsets, generation, member_id, instance_id)
        for partition, code in answers.items():
            if code:
                raise KafkaError(code, f"committing {partition_name(partition)} in group {group!r}")

    if offsets:
        await cluster.at_coordinator(group, attempt)


async def commit_once(
    cluster: Requests,
    group: str,
    offsets: Mapping[TopicPartition, int | CommittedOffset],
    generation: int,
    member_id: str,
    instance_id: str | None,
    topic_id: Callable[[TopicPartition], uuid.UUID | None] = lambda _: None,
    sent: Callable[[], None] = lambda: None,
) -> dict[TopicPartition, int]:
    """Send one OffsetCommit and return the error code of each partition (0 for none). Calls ``sent`` when it
    is on its way.

    ``topic_id`` returns the id of a partition's topic. If it knows all of them and the coordinator takes
    topic ids, topics are named by id: the commit cannot apply to other topics of the same names.
    """
    ids = {partition: topic_id(partition) for partition in offsets}
    by_id = None not in ids.values()
    topics = defaultdict(list)
    for partition, value in sorted(offsets.items()):
        offset = value if isinstance(value, CommittedOffset) else CommittedOffset(value)
        topics[partition.topic, ids[partition] if by_id else None].append(
            OffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    body = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        retention_time_ms=-1,
        topics=[
            OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=rows)
            for (name, topic_id), rows in topics.items()
        ],
    )
    response = await cluster.request_coordinator(
        group, body, max_version=None if by_id else _BY_NAME, sent=sent
    )
    names = {topic_id: name for name, topic_id in topics}
    return {
        TopicPartition(topic.name or names[topic.topic_id], row.partition_index): row.error_code
        for topic in response.topics
        for row in topic.partitions
    }


async def list_offsets(
    cluster: Requests,
    at: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
    errors: Errors | None = None,
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """Return offsets by partition: EARLIEST (-2), LATEST (-1), or the first one at or after a time in ms.

    A time after the last record gives offset -1. With ``read_committed`` LATEST is the last stable offset.
    Retries and raises the first partition's error; with ``errors`` each leader is asked once, and partition
    errors are added there and not raised.
    """

    async def ask(node: int, part: Mapping[TopicPartition, int]) -> _Rows[ListOffsetsPartitionResponse]:
        topics = defaultdict(list)
        for (topic, number), when in part.items():
            topics[topic].append(ListOffsetsPartition(number, current_leader_epoch=-1, timestamp=when))
        body = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=1 if read_committed else 0,
            topics=[ListOffsetsTopic(name=t, partitions=rows) for t, rows in topics.items()],
            timeout_ms=cluster.request_timeout_ms,
        )
        response = await cluster.request(node, ApiKey.LIST_OFFSETS, body)
        return {(t.name, row.partition_index): row for t in response.topics for row in t.partitions}

    rows = await _ask_leaders(cluster, at, ask, "listing offsets of", errors)
    return {p: OffsetAndTimestamp(row.offset, row.timestamp, row.leader_epoch) for p, row in rows.items()}


async def epoch_ends(
    cluster: Requests, epochs: Mapping[TopicPartition, int], *, errors: Errors | None = None
) -> dict[TopicPartition, EpochEnd]:
    """Return the end of a leader epoch of each partition (KIP-320); ``errors`` as in ``list_offsets``."""

    async def ask(node: int, part: Mapping[TopicPartition, int]) -> _Rows[EpochEndOffset]:
        topics = defaultdict(list)
        for partition, epoch in part.items():
            current = cluster.known_metadata.leader_epoch(partition)
            topics[partition.topic].append(OffsetForLeaderPartition(partition.partition, current, epoch))
        body = OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[OffsetForLeaderTopic(topic=t, partitions=rows) for t, rows in topics.items()],
        )
        response = await cluster.request(node, ApiKey.OFFSET_FOR_LEADER_EPOCH, body)
        return {(t.topic, row.partition): row for t in response.topics for row in t.partitions}

    rows = await _ask_leaders(cluster, epochs, ask, "asking for the end of a leader epoch of", errors)
    return {partition: EpochEnd(row.leader_epoch, row.end_offset) for partition, row in rows.items()}


async def _ask_leaders(
    cluster: Requests,
    wanted: Mapping[TopicPartition, int],
    ask: Ask[RowT],
    doing: str,
    errors: Errors | None,
) -> dict[TopicPartition, RowT]:
    """Return the response row of each partition. With ``errors``, only of partitions without an error;
    without it, retry until there is a row of every partition.
    """
    found: dict[TopicPartition, RowT] = {}
    stale = False

    async def attempt() -> Errors:
        nonlocal stale
        missing = {p: what for p, what in wanted.items() if p not in found} if found else wanted
        parts, leaderless = _by_leader(cluster, missing)
        if stale or leaderless:
            await cluster.metadata({partition.topic for partition in missing})
            parts, leaderless = _by_leader(cluster, missing)
        stale = True
        return leaderless | await _ask_once(parts, ask, doing, found)

    async def attempt_for_all() -> None:
        for error in (await attempt()).values():
            raise error

    if wanted and errors is None:
        await cluster.retrying(attempt_for_all)
    elif wanted and errors is not None:
        errors.update(await attempt())
    return {partition: found[partition] for partition in wanted if partition in found}


def _by_leader(
    cluster: Requests, wanted: Mapping[TopicPartition, int]
) -> tuple[dict[int, dict[TopicPartition, int]], Errors]:
    """Return the partitions by the node that leads them, and errors of those without a leader."""
    parts: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
    leaderless: Errors = {}
    for partition, what in wanted.items():
        node = cluster.leader(partition)
        if node is not None:
            parts[node][partition] = what
            continue
        try:
            leader_or_raise(cluster, partition)
        except KafkaError as error:
            leaderless[partition] = error
    return parts, leaderless


async def _ask_once(
    parts: Mapping[int, Mapping[TopicPartition, int]],
    ask: Ask[RowT],
    doing: str,
    found: dict[TopicPartition, RowT],
) -> Errors:
    """Ask each leader once and add its response rows to ``found``. Return the errors of other partitions."""
    errors: Errors = {}
    answers = await asyncio.gather(*(ask(node, part) for node, part in parts.items()), return_exceptions=True)
    for part, answer in zip(parts.values(), answers, strict=True):
        if isinstance(answer, KohortError):
            errors.update(dict.fromkeys(part, answer))
            continue
        if isinstance(answer, BaseException):
            raise answer
        for partition in part:
            row = answer.get(partition)
            if row is None:
                errors[partition] = KafkaError(
                    ErrorCode.LEADER_NOT_AVAILABLE, f"no answer about {partition_name(partition)}"
                )
            elif row.error_code:
                errors[partition] = KafkaError(row.error_code, f"{doing} {partition_name(partition)}")
            else:
                found[partition] = row
    return errors
