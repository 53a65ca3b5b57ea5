"""ListOffsets (2), v1-11: the offset at a time, or at a special timestamp (KIP-79, KIP-734, KIP-405)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...protocol import ApiKey, ErrorCode, KafkaError
from ..authorizer import Operation, ResourceType, right
from ..node import Node
from ._api import Request, ServedApi
from ._errors import PARTITIONS, TOPICS_BY_NAME, in_elements
from ._guards import topics
from ._lookup import find_partition

_LATEST = -1
_EARLIEST = -2
_MAX_TIMESTAMP = -3
_EARLIEST_LOCAL = -4
_LATEST_TIERED = -5
_EARLIEST_PENDING_UPLOAD = -6

#: The version from which each special timestamp may be requested.
_SPECIAL_FROM = {
    _LATEST: 0,
    _EARLIEST: 0,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}

_READ_COMMITTED = 1

#: Version from which OFFSET_NOT_AVAILABLE is known (KIP-207).
_NOT_AVAILABLE_FROM = 5

#: Offset, timestamp and leader epoch if no record is found.
_NOWHERE = (-1, -1, -1)


async def handle(node: Node, request: Request) -> Any:
    # a partition that is named twice, anywhere in the request, is refused without a lookup
    times: Counter[tuple[str, int]] = Counter()
    topics = []
    for topic in request.body.topics:
        first = []
        for wanted in topic.partitions:
            times[topic.name, wanted.partition_index] += 1
            if times[topic.name, wanted.partition_index] == 1:
                first.append(wanted)
        if first:
            topics.append(topic._replace(partitions=first))
    request.body = request.body._replace(topics=topics)

    async def found(topic: Any, wanted: Any) -> dict[str, Any]:
        if times[topic.name, wanted.partition_index] > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a partition is in the request twice")
        offset, timestamp, epoch = await _find(node, request, topic.name, wanted)
        return {"offset": offset, "timestamp": timestamp, "leader_epoch": epoch}

    return await request.each_partition(found)


async def _find(node: Node, request: Request, topic: str, wanted: Any) -> tuple[int, int, int]:
    timestamp = wanted.timestamp
    if timestamp < 0 and request.version < _SPECIAL_FROM.get(timestamp, request.version + 1):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} at v{request.version}")
    partition = find_partition(
        node, topic, None, wanted.partition_index, known_epoch=wanted.current_leader_epoch
    )
    if node.cluster is not None and request.body.replica_id >= 0:
        end = partition.log_end_offset  # a follower copies up to there
    elif request.body.isolation_level == _READ_COMMITTED:
        end = partition.last_stable_offset
    else:
        end = partition.high_watermark
    leadership = partition.leadership
    behind = leadership is not None and request.body.replica_id < 0 and leadership.replication.is_behind
    if timestamp == _LATEST:
        if behind:
            raise _not_yet(request)
        return end, -1, partition.leader_epoch
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        return partition.log_start_offset, -1, partition.epoch_at(partition.log_start_offset)
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _NOWHERE
    steps = partition.find_timestamp(None if timestamp == _MAX_TIMESTAMP else timestamp)
    found = await node.long_work.run(steps)
    if found is not None and found[0] < end:
        return found
    if behind:
        raise _not_yet(request)
    return _NOWHERE


def _not_yet(request: Request) -> KafkaError:
    """The error while a new leader does not know yet what was committed: consumers would go back
    (KIP-207).
    """
    known = request.version >= _NOT_AVAILABLE_FROM
    code = ErrorCode.OFFSET_NOT_AVAILABLE if known else ErrorCode.LEADER_NOT_AVAILABLE
    return KafkaError(code, "the new leader does not know yet what is committed: ask again")


API = ServedApi(
    key=ApiKey.LIST_OFFSETS,
    versions=(1, 11),
    handler=handle,
    guard=topics(right(Operation.DESCRIBE, ResourceType.TOPIC, "each topic")),
    errors=in_elements(TOPICS_BY_NAME, PARTITIONS),
    reads_only=True,
)
