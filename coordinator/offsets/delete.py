"""OffsetDelete (key 47), v0: removes committed offsets (KIP-496), except for topics that members subscribe
to.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...offsets_topic import OffsetDeleted
from ...protocol import ErrorCode, TopicPartition
from ...protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ..engine.effects import Request
from ..groups.events import OffsetsRemoved
from ..groups.groups import GroupShard, TopicDirectory
from ..shared_responses import bad_first


@dataclass(slots=True)
class ResolvedDelete:
    """An OffsetDelete as the core takes it; each partition with its error, 0 for none."""

    group_id: str
    topics: list[tuple[str, list[OffsetDeleteResponsePartition]]]


def resolve_delete(body: OffsetDeleteRequest, directory: TopicDirectory) -> ResolvedDelete:
    """Read an OffsetDelete body, and mark the partitions that do not exist."""
    missing = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    topics: list[tuple[str, list[OffsetDeleteResponsePartition]]] = []
    for topic in body.topics:
        count = directory.partition_count_of(topic.name) or 0
        numbers = [partition.partition_index for partition in topic.partitions]
        if numbers:
            outcomes = [OffsetDeleteResponsePartition(n, 0 if 0 <= n < count else missing) for n in numbers]
            topics.append((topic.name, outcomes))
    if any(outcome.error_code for _, outcomes in topics for outcome in outcomes):
        topics = list(bad_first(topics, lambda outcome: bool(outcome.error_code)))
    return ResolvedDelete(body.group_id, topics)


def handle_delete(shard: GroupShard, request: Request, _now_ms: int) -> None:
    """Write tombstones for offsets of topics that no member subscribes to."""
    delete: ResolvedDelete = request.body
    error = _deletion_error(shard, delete.group_id)
    if error:
        shard.refuse(request, error)
        return
    group = shard.state.find(delete.group_id)
    known = shard.state.durable.partitions_of(delete.group_id)
    # each partition once, however often it is named
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
    if not records:
        shard.reply(request, _delete_reply(delete))
        return

    def settled(error: ErrorCode, _now_ms: int) -> None:
        if not error:
            shard.tell(OffsetsRemoved(delete.group_id, cause="deleted by request", count=len(records)))

    shard.append(delete.group_id, tuple(records), settled, ((request, _delete_reply(delete)),))


def _deletion_error(shard: GroupShard, group_id: str) -> ErrorCode:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    group = shard.state.find(group_id)
    return ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_offset_delete()


def _delete_reply(delete: ResolvedDelete) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(topics=[OffsetDeleteResponseTopic(*topic) for topic in delete.topics])
