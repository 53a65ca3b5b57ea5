"""DeleteRecords (21), v0-2: moves a partition's start (KIP-107); -1 is the high watermark.

It is answered when all live in-sync replicas have moved theirs: the next leader shows no deleted records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ..partitions.partition import Partition
from ._api import Request, ServedApi
from ._errors import TOPICS_BY_NAME, Level, in_elements, same_fields
from ._guards import topics
from ._lookup import find_partition

_HIGH_WATERMARK = -1
#: Stands for a low watermark in an error.
_UNKNOWN = -1


async def handle(node: Node, request: Request[DeleteRecordsRequest]) -> DeleteRecordsResponse:
    """Move log starts, and answer once the followers in sync have moved theirs or the timeout is over."""
    moved: list[Partition] = []
    awaited: dict[tuple[str, int], asyncio.Future[None]] = {}

    async def deleted(topic: DeleteRecordsTopic, wanted: DeleteRecordsPartition) -> dict[str, object]:
        start, replicas = _delete_partition_records(
            node, topic.name, wanted, moved, max(request.body.timeout_ms, 0)
        )
        if replicas is not None:
            awaited[topic.name, wanted.partition_index] = replicas
        return {"low_watermark": start}

    answer = await request.each_partition(DeleteRecordsResponse, deleted)
    if moved:
        node.logs.write_log_starts(moved)
    if awaited:
        await asyncio.wait(awaited.values())
        return answer._replace(topics=[_answer_topic(topic, awaited) for topic in answer.topics])
    return answer


def _answer_topic(
    topic: DeleteRecordsTopicResult, awaited: Mapping[tuple[str, int], asyncio.Future[None]]
) -> DeleteRecordsTopicResult:
    rows = [
        _answer_partition(row, awaited.get((topic.name, row.partition_index))) for row in topic.partitions
    ]
    return topic._replace(partitions=rows)


def _answer_partition(
    row: DeleteRecordsPartitionResult, replicas: asyncio.Future[None] | None
) -> DeleteRecordsPartitionResult:
    error = None if replicas is None else replicas.exception()
    if not isinstance(error, KafkaError):
        return row
    return row._replace(low_watermark=_UNKNOWN, error_code=error.code)


def _delete_partition_records(
    node: Node, topic: str, wanted: DeleteRecordsPartition, moved: list[Partition], timeout_ms: int
) -> tuple[int, asyncio.Future[None] | None]:
    """Return the new log start, and what there is to wait for; a partition whose start has changed is added
    to ``moved``.
    """
    partition = find_partition(node, topic, None, wanted.partition_index)
    if partition.topic.internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is kept by the broker alone")
    if "delete" not in partition.topic.config.cleanup_policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"cleanup.policy of {topic} has no delete in it")
    end = partition.high_watermark
    before = end if wanted.offset == _HIGH_WATERMARK else wanted.offset
    if not 0 <= before <= end:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{topic} ends at {end}, records below {before} are asked for"
        )
    start = partition.log_start_offset
    try:
        start_now = partition.delete_records(before, now_ms=node.now_ms())
        leadership = partition.leadership
        return start_now, None if leadership is None else leadership.wait_deleted(before, timeout_ms)
    finally:
        if partition.log_start_offset != start:
            moved.append(partition)


API = ServedApi(
    key=ApiKey.DELETE_RECORDS,
    versions=(0, 2),
    handler=handle,
    guard=topics(right(Operation.DELETE, ResourceType.TOPIC, "each topic")),
    errors=in_elements(
        TOPICS_BY_NAME,
        Level("partitions", "partitions", same_fields("partition_index"), {"low_watermark": -1}),
    ),
)
