"""DeleteRecords (21), v0-2: moves a partition's start (KIP-107); -1 is the high watermark."""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey, ErrorCode, KafkaError
from .._node import Node
from .._partition import Partition
from ..authorizer import Operation, ResourceType, right
from ._api import Request, ServedApi
from ._errors import TOPICS_BY_NAME, Level, in_elements, same
from ._guards import topics
from ._lookup import find_partition

_HIGH_WATERMARK = -1


async def handle(node: Node, request: Request) -> Any:
    moved: list[Partition] = []

    async def deleted(topic: Any, wanted: Any) -> dict[str, Any]:
        return {"low_watermark": _delete(node, topic.name, wanted, moved)}

    answer = await request.each_partition(deleted)
    if moved:
        node.logs.write_log_starts(moved)
    return answer


def _delete(node: Node, topic: str, wanted: Any, moved: list[Partition]) -> int:
    """Return the new log start; a partition whose start has changed is added to ``moved``."""
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
        return partition.delete_records(before, now_ms=node.now_ms())
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
        Level("partitions", "partitions", same("partition_index"), {"low_watermark": -1}),
    ),
)
