"""ListOffsets (2), v1-11: the offset at a time, or at a special timestamp (KIP-79, KIP-734, KIP-405)."""

from __future__ import annotations

from collections import Counter

from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import Slices
from ..node import Node
from ..partitions.partition import Partition
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

#: Partitions between two looks whether it is time for other work.
_PER_LOOK = 32

#: Version from which OFFSET_NOT_AVAILABLE is known (KIP-207).
_NOT_AVAILABLE_FROM = 5

#: Offset, timestamp and leader epoch if no record is found.
_NOWHERE = (-1, -1, -1)


async def handle(node: Node, request: Request[ListOffsetsRequest]) -> ListOffsetsResponse:
    """Find offsets by time, or the ends of logs; partitions that are named twice are refused."""
    # a partition that is named twice, anywhere in the request, is refused without a lookup
    times = Counter((t.name, wanted.partition_index) for t in request.body.topics for wanted in t.partitions)
    twice = {place for place, count in times.items() if count > 1}
    named: set[tuple[str, int]] = set()
    slices = Slices()
    answers = []
    for topic in request.body.topics:
        rows = []
        for nth, wanted in enumerate(topic.partitions):
            index = wanted.partition_index
            if twice and (topic.name, index) in twice:
                if (topic.name, index) not in named:
                    named.add((topic.name, index))
                    rows.append(ListOffsetsPartitionResponse(index, ErrorCode.INVALID_REQUEST))
                continue
            try:
                offset, timestamp, epoch = await _find_offset(node, request, topic.name, wanted)
                rows.append(ListOffsetsPartitionResponse(index, 0, timestamp, offset, epoch))
            except KafkaError as error:
                rows.append(ListOffsetsPartitionResponse(index, error.code))
            if nth % _PER_LOOK == 0:
                await slices.end_if_due()
        if rows:
            answers.append(ListOffsetsTopicResponse(topic.name, rows))
    return ListOffsetsResponse(topics=answers)


async def _find_offset(
    node: Node, request: Request[ListOffsetsRequest], topic: str, wanted: ListOffsetsPartition
) -> tuple[int, int, int]:
    """Return offset, timestamp and leader epoch. Raises KafkaError."""
    timestamp = wanted.timestamp
    if timestamp < 0 and request.version < _SPECIAL_FROM.get(timestamp, request.version + 1):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} at v{request.version}")
    partition = find_partition(
        node,
        topic,
        None,
        wanted.partition_index,
        known_epoch=wanted.current_leader_epoch,
        only_end=timestamp == _LATEST and request.body.isolation_level != _READ_COMMITTED,
    )
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        start = partition.log_start_offset
        return start, -1, partition.epoch_at(start)
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _NOWHERE
    leadership = partition.leadership
    behind = leadership is not None and request.body.replica_id < 0 and leadership.replication.is_behind
    if timestamp == _LATEST:
        if behind:
            raise _not_yet(request)
        return _readable_end(node, request, partition), -1, partition.leader_epoch
    end = _readable_end(node, request, partition)
    steps = partition.find_timestamp(None if timestamp == _MAX_TIMESTAMP else timestamp)
    found = await node.long_work.run(steps)
    if found is not None and found[0] < end:
        return found
    if behind:
        raise _not_yet(request)
    return _NOWHERE


def _readable_end(node: Node, request: Request[ListOffsetsRequest], partition: Partition) -> int:
    """Return the offset up to which the sender may read. Raises KafkaError."""
    if node.cluster is not None and request.body.replica_id >= 0:
        return partition.log_end_offset  # a follower copies up to there
    if request.body.isolation_level == _READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark


def _not_yet(request: Request[ListOffsetsRequest]) -> KafkaError:
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
