"""DescribeTopicPartitions (75), v0: partitions of topics, some at a time, from a cursor on (KIP-966).

Java's admin clients use it to describe topics.
"""

from __future__ import annotations

from ...cluster import INTERNAL, NO_LEADER, PartitionState, TopicImage
from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..node import Node
from ..partitions.topic_names import check_name
from ._api import Guard, Request, ServedApi
from ._errors import TOPICS_BY_NAME, in_elements

#: Most partitions in one response, as in Apache Kafka (max.request.partition.size.limit).
MAX_PARTITIONS = 2_000


async def handle(
    node: Node, request: Request[DescribeTopicPartitionsRequest]
) -> DescribeTopicPartitionsResponse:
    """Describe topics from a cursor on, so many partitions that the limit allows (KIP-966)."""
    cursor = request.body.cursor
    left = max(1, min(MAX_PARTITIONS, request.body.response_partition_limit))
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    async for name in in_slices(_names_from(node, request.body)):
        if not left:
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor(name, 0))
        topic, operations = node.topics.get(name), request.operations(ResourceType.TOPIC, name)
        if topic is None:
            topics.append(_missing_topic(name, operations))
            continue
        start = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        described = _describe_topic(node, topic, start, left, operations)
        topics.append(described)
        end = start + len(described.partitions)
        if not described.error_code and end < len(topic.partitions):
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor(name, end))
        left -= len(described.partitions)
    return DescribeTopicPartitionsResponse(topics=topics)


def _names_from(node: Node, body: DescribeTopicPartitionsRequest) -> list[str]:
    """The requested names from the cursor on, sorted, without repeats; all topics if none is named.

    Raises KafkaError: INVALID_REQUEST, and UNKNOWN_SERVER_ERROR for an empty name.
    """
    names = {item.name for item in body.topics} or {topic.name for topic in node.topics.all()}
    cursor = body.cursor
    if cursor is None:
        if "" in names:
            # Apache Kafka fails on it, but not if a cursor is given
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a topic's name is empty")
        return sorted(names)
    if cursor.partition_index < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the cursor's partition is {cursor.partition_index}")
    if body.topics and cursor.topic_name not in names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the cursor's topic {cursor.topic_name!r} is not in it")
    return sorted(name for name in names if name >= cursor.topic_name)


def _describe_topic(
    node: Node, topic: TopicImage, start: int, most: int, operations: int
) -> DescribeTopicPartitionsResponseTopic:
    try:
        states = node.topics.with_epochs(topic).partitions
    except KafkaError:
        # no file can be opened now: clients retry
        code, states = ErrorCode.LEADER_NOT_AVAILABLE, ()
    else:
        code = ErrorCode.NONE
    return DescribeTopicPartitionsResponseTopic(
        code,
        topic.name,
        topic.id,
        topic.internal,
        [
            _describe_partition(start + place, state)
            for place, state in enumerate(states[start : start + most])
        ],
        operations,
    )


def _describe_partition(index: int, state: PartitionState) -> DescribeTopicPartitionsResponsePartition:
    code = ErrorCode.LEADER_NOT_AVAILABLE if state.leader == NO_LEADER else ErrorCode.NONE
    return DescribeTopicPartitionsResponsePartition(
        code, index, state.leader, state.leader_epoch, state.replicas, state.isr, (), (), state.offline
    )


def _missing_topic(name: str, operations: int) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_name(name)
    except KafkaError as error:
        # an invalid name has an error of its own; a reserved topic counts as unknown
        if error.code == ErrorCode.INVALID_TOPIC_EXCEPTION:
            code = error.code
    return DescribeTopicPartitionsResponseTopic(
        code, name, is_internal=name in INTERNAL, topic_authorized_operations=operations
    )


_TOPIC_RIGHT = right(
    Operation.DESCRIBE, ResourceType.TOPIC, "each topic asked for; of all topics, the others are left out"
)


async def _guard(node: Node, request: Request[DescribeTopicPartitionsRequest]) -> object:
    body = request.body
    names = _names_from(node, body)
    may = request.allows if body.topics else request.shows
    allowed: list[str] = []
    refused: list[TopicRequest] = []
    async for name in in_slices(names):
        if may(_TOPIC_RIGHT, name):
            allowed.append(name)
        elif body.topics:
            refused.append(TopicRequest(name))
    # the cursor's own topic may be hidden: all that is left comes after it
    cursor = body.cursor if body.cursor is not None and body.cursor.topic_name in allowed else None
    request.narrow(topics=[TopicRequest(name) for name in allowed], cursor=cursor)
    answer = await request.proceed(node) if allowed else DescribeTopicPartitionsResponse()
    errors = request.element_errors(refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return answer._replace(topics=[*answer.topics, *errors])


API = ServedApi(
    key=ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    versions=(0, 0),
    handler=handle,
    guard=Guard((_TOPIC_RIGHT,), _guard),
    errors=in_elements(TOPICS_BY_NAME),
    reads_only=True,
)
