"""CreatePartitions (37), v0-3: adds partitions to existing topics (KIP-195)."""

from __future__ import annotations

from collections import Counter
from functools import partial

from ...cluster import TopicImage
from ...cluster.controller import NewPartitions
from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ..authorizer import Operation, ResourceType, right
from ..event_loop.stopwatch import clock
from ..node import Node
from ..partitions.topic_names import COORDINATORS
from ._api import Request, ServedApi, always, make_result
from ._errors import Level, in_elements, same_fields
from ._guards import topics
from ._lookup import find_topic
from .create_topics import check_total


async def handle(node: Node, request: Request[CreatePartitionsRequest]) -> CreatePartitionsResponse:
    """Check all topics; then let the valid ones grow at once."""
    wanted = {item.name: item for item in request.body.topics}
    times = Counter(item.name for item in request.body.topics)
    refused: dict[str, KafkaError] = {}
    ready: list[NewPartitions] = []
    total = 0
    for item in wanted.values():
        try:
            if times[item.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {item.name!r} is in the request twice")
            topic = _check_item(node, item)
            more = item.count - len(topic.partitions)
            check_total(total + more)
            chosen = None if item.assignments is None else [list(one.broker_ids) for one in item.assignments]
            new = NewPartitions(topic.name, item.count, chosen)
            for error in node.control.refused_partitions([new]).values():
                raise error
            if not request.body.validate_only:
                node.throttle.mutate(request, more, clock())
            total += more
            ready.append(new)
        except KafkaError as error:
            refused[item.name] = error
    try:
        if ready and not request.body.validate_only:
            refused |= await node.topics.add_partitions(ready)
    except KafkaError as error:
        refused.update((new.name, error) for new in ready)
    make = partial(make_result, CreatePartitionsTopicResult)
    return CreatePartitionsResponse(results=[make(refused.get(name), name=name) for name in wanted])


def _check_item(node: Node, item: CreatePartitionsTopic) -> TopicImage:
    topic = find_topic(node, item.name)
    more = item.count - len(topic.partitions)
    if more <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name} has {len(topic.partitions)} partitions already: {item.count} is not more",
        )
    if topic.name in COORDINATORS:
        # Apache Kafka lets it grow, and after its next start looks for groups in the wrong partitions
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"the number of partitions of {topic.name} says where each group or transactional id is: it "
            "stays as it was made",
        )
    if item.assignments is not None and len(item.assignments) != more:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{len(item.assignments)} assignments for {more} new partitions: give one for each",
        )
    return topic


API = ServedApi(
    key=ApiKey.CREATE_PARTITIONS,
    versions=(0, 3),
    handler=handle,
    guard=topics(right(Operation.ALTER, ResourceType.TOPIC, "each topic")),
    errors=in_elements(Level("topics", "results", same_fields("name"))),
    refused_over_quota_from=3,
    by_controller=always,
)
