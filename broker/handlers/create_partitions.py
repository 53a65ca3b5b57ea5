"""CreatePartitions (37), v0-3: more partitions for topics that exist (KIP-195)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ...protocol import ErrorCode, KafkaError
from .._requests import Request
from .._stopwatch import clock

if TYPE_CHECKING:
    from .._node import Node


async def handle(node: Node, request: Request) -> Any:
    make = request.part("CreatePartitionsTopicResult")
    wanted = request.body.topics
    times = Counter(item.name for item in wanted)
    results = []
    for item in {item.name: item for item in wanted}.values():
        code, message = ErrorCode.NONE, None
        try:
            if times[item.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {item.name!r} is in the request twice")
            _add(node, request, item)
        except KafkaError as error:
            code, message = error.code, error.message
        results.append(make(name=item.name, error_code=code, error_message=message))
    return request.answer(results=results)


def _add(node: Node, request: Request, item: Any) -> None:
    topic = node.topics.get(item.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {item.name!r}")
    more = item.count - len(topic.partitions)
    if more <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name} has {len(topic.partitions)} partitions already: {item.count} is not more",
        )
    if item.assignments is not None:
        _check_assignments(node, item, more)
    if not request.body.validate_only:
        node.throttle.mutate(request, more, clock())
        node.topics.add_partitions(topic, item.count)


def _check_assignments(node: Node, item: Any, more: int) -> None:
    if len(item.assignments) != more:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{len(item.assignments)} assignments for {more} new partitions: give one for each",
        )
    for one in item.assignments:
        if list(one.broker_ids) != [node.node_id]:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"assigned to brokers {list(one.broker_ids)}: {node.node_id} is the only one",
            )
