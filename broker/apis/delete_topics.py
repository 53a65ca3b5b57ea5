"""DeleteTopics (20), v1-6: by name, from v6 also by id (KIP-516). Groups' offsets are removed with the
topic.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from uuid import UUID

from ...cluster import TopicImage
from ...protocol import ApiKey, ErrorCode, KafkaError
from ...protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ..authorizer import Access, Operation, ResourceType, right
from ..event_loop.stopwatch import clock
from ..event_loop.time_slices import in_slices
from ..metadata.topics import NO_TOPIC_ID
from ..node import Node
from ..partitions.topic_names import COORDINATORS
from ._api import Guard, Request, ServedApi, always, make_result, refusal_error
from ._errors import ErrorShape, Level, same_fields
from ._guards import append_elements, each, topic_name
from ._lookup import find_topic

#: Version from which topics may be named by id (KIP-516).
_IDS_FROM = 6


async def handle(node: Node, request: Request[DeleteTopicsRequest]) -> DeleteTopicsResponse:
    """Delete topics by name or, from v6, by id; files go afterwards."""
    body = request.body
    if request.version >= _IDS_FROM:
        wanted = [(item.name, item.topic_id or NO_TOPIC_ID) for item in body.topics]
    else:
        wanted = [(name, NO_TOPIC_ID) for name in body.topic_names]
    make = partial(make_result, DeletableTopicResult)
    deleted: dict[UUID, TopicImage] = {}
    responses = []
    times = Counter(wanted)
    for name, topic_id in times:
        try:
            if times[name, topic_id] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "a topic is in the request twice")
            topic = _find_topic(node, name, topic_id)
            if topic.id in deleted:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "a topic is in the request by name and by id")
            node.throttle.mutate(request, len(topic.partitions), clock())
            deleted[topic.id] = topic
            responses.append(make(name=topic.name, topic_id=topic.id))
        except KafkaError as error:
            responses.append(make(error, name=name, topic_id=topic_id))
    if deleted:
        await node.topics.delete(deleted.values())
        await node.topics.clear()
    return DeleteTopicsResponse(responses=responses)


def _find_topic(node: Node, name: str | None, topic_id: UUID) -> TopicImage:
    if (name is None) == (topic_id == NO_TOPIC_ID):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a topic is named by its name or by its id")
    topic = find_topic(node, name or "", topic_id, by_id=name is None)
    if not node.settings.delete_topic_enable:
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false")
    if topic.name in COORDINATORS:
        # Apache Kafka deletes it, and creates it again without the groups' offsets and producers'
        # transactions
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{topic.name} is kept by the broker alone: delete groups, and let transactional ids expire",
        )
    return topic


_NAME_RIGHT = right(
    Operation.DESCRIBE,
    ResourceType.TOPIC,
    "the names of topics given by id: without it they are not told",
)
_DELETE_ANY_RIGHT = Access(
    Operation.DELETE,
    ResourceType.CLUSTER,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "each topic, if the next right is missing",
)
_DELETE_RIGHT = right(Operation.DELETE, ResourceType.TOPIC, "each topic")


async def _guard(node: Node, request: Request[DeleteTopicsRequest]) -> object:
    if request.shows(_DELETE_ANY_RIGHT):
        return await request.proceed(node)

    def is_missed(name: str) -> bool:
        """Return whether the topic does not exist, and the sender may know that."""
        return node.topics.get(name) is None and request.shows(_NAME_RIGHT, name)

    if request.version < _IDS_FROM:
        return await each(node, request, lambda name: None if is_missed(name) else (_DELETE_RIGHT, name))
    allowed, refused = [], []
    async for item in in_slices(request.body.topics):
        name = topic_name(node, item)
        if name is None or is_missed(name) or request.allows(_DELETE_RIGHT, name):
            allowed.append(item)
        else:
            told = name if item.name is not None or request.shows(_NAME_RIGHT, name) else None
            refused.append(item._replace(name=told))
    request.narrow(topics=allowed)
    answer = await request.proceed(node) if allowed else DeleteTopicsResponse()
    return append_elements(
        answer, "responses", request.element_errors(refused, refusal_error(_DELETE_RIGHT).code)
    )


API = ServedApi(
    key=ApiKey.DELETE_TOPICS,
    versions=(1, 6),
    handler=handle,
    guard=Guard((_NAME_RIGHT, _DELETE_ANY_RIGHT, _DELETE_RIGHT), _guard),
    errors=ErrorShape(
        levels={
            0: (Level("topic_names", "responses", {"": "name"}),),
            _IDS_FROM: (Level("topics", "responses", same_fields("name", "topic_id")),),
        }
    ),
    carried_out=True,
    refused_over_quota_from=5,
    by_controller=always,
)
