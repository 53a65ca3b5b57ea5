"""Metadata (3), v0-13: brokers, topics and their partitions; may create topics (KIP-4, KIP-516)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from ...cluster import NO_LEADER, PartitionState, TopicImage
from ...cluster.controller import NewTopic
from ...protocol import ApiKey, ErrorCode, KafkaError, PreparedArray
from ...protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ..authorizer import Access, Operation, ResourceType, right
from ..event_loop.time_slices import in_slices
from ..metadata.topics import NO_TOPIC_ID
from ..node import Node
from ..partitions.topic_names import check_name
from ._api import Guard, Request, ServedApi
from ._errors import ErrorShape, Level, same_fields
from ._guards import only_shown, topic_name, with_operations
from ._lookup import (
    CLUSTER_OPERATIONS_RIGHT,
    OPERATIONS_NOT_ASKED,
    brokers_of,
    cluster_operations,
    find_topic,
)
from .create_topics import check_total, create_all

#: Responses have topic ids from v10 on, requests may have them from v12 on (KIP-516).
_IDS_ASKED_FROM = 12
#: Version from which a name may be null.
_NULL_NAME_FROM = 12
_NO_IDS = (None, NO_TOPIC_ID)


async def handle(node: Node, request: Request[MetadataRequest]) -> MetadataResponse:
    """Describe brokers and topics; topics have ids from v10 and can be asked for by id from v12."""
    if request.version < _IDS_ASKED_FROM and any(item.topic_id for item in request.body.topics or ()):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"topics cannot be asked for by id before v{_IDS_ASKED_FROM}"
        )
    image = node.image
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.node_id, host=host, port=port, rack=each.rack)
            for each, host, port in brokers_of(node, request)
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=await _describe_topics(node, request),
        cluster_authorized_operations=cluster_operations(request),
    )


def _topics_meant(topics: Iterable[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    """The topics of a request, without repeats. As in Apache Kafka, a name beside an id is ignored."""
    topics = list(topics)
    by_id = {item.topic_id: item for item in topics if item.topic_id not in (None, NO_TOPIC_ID)}
    if by_id:
        return [MetadataRequestTopic(topic_id, None) for topic_id in by_id]
    return list({item.name: item for item in topics}.values())


async def _describe_topics(node: Node, request: Request[MetadataRequest]) -> list[MetadataResponseTopic]:
    topics = request.body.topics
    if topics is None or (request.version == 0 and not topics):
        return [_describe_topic(node, request, topic) async for topic in in_slices(node.topics.all())]
    wanted = _topics_meant(topics)
    names = [item.name for item in wanted if item.name and item.topic_id in _NO_IDS]
    refused = await _create_missing(node, request, names)
    return [_asked_for(node, request, item, refused) async for item in in_slices(wanted)]


async def _create_missing(
    node: Node, request: Request[MetadataRequest], names: list[str]
) -> dict[str, KafkaError]:
    """Create the missing topics, if the request and the settings allow it; return errors by name."""
    if not _may_create(node, request):
        return {}
    refused: dict[str, KafkaError] = {}
    plans = []
    missing = [name for name in names if node.topics.get(name) is None]
    for name in missing:
        try:
            check_total(len(missing) * node.settings.num_partitions)
            node.topics.check_free(name)
            count, factor = node.settings.num_partitions, node.settings.default_replication_factor
            plans.append(NewTopic(name, partitions=count, replication_factor=factor))
        except KafkaError as error:
            refused[name] = error
    refused |= await create_all(node, request, plans)
    # a topic that another request is creating is missing for a moment: clients retry
    return {name: error for name, error in refused.items() if error.code != ErrorCode.TOPIC_ALREADY_EXISTS}


def _asked_for(
    node: Node,
    request: Request[MetadataRequest],
    item: MetadataRequestTopic,
    refused: Mapping[str, KafkaError],
) -> MetadataResponseTopic:
    topic_id = item.topic_id or NO_TOPIC_ID
    if topic_id != NO_TOPIC_ID:
        topic = node.topics.by_id(topic_id)
        if topic is None:
            return _missing_topic(request, None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
        return _describe_topic(node, request, topic)
    try:
        return _describe_topic(node, request, _by_name(node, item.name, refused))
    except KafkaError as error:
        return _missing_topic(request, item.name, NO_TOPIC_ID, error.code)


def _by_name(node: Node, name: str | None, refused: Mapping[str, KafkaError]) -> TopicImage:
    if name is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "neither a name nor an id")
    if name in refused:
        raise refused[name]
    if node.topics.get(name) is None:
        check_name(name)
    return find_topic(node, name)


def _describe_topic(
    node: Node, request: Request[MetadataRequest], topic: TopicImage
) -> MetadataResponseTopic:
    if topic.described is None:
        try:
            topic = node.topics.with_epochs(topic)
        except KafkaError:
            # no file can be opened now: clients retry
            return _missing_topic(request, topic.name, topic.id, ErrorCode.LEADER_NOT_AVAILABLE)
        topic.described = PreparedArray(
            [_describe_partition(index, state) for index, state in enumerate(topic.partitions)]
        )
    # written as an array is, though it is none
    partitions: Any = topic.described
    wanted = request.body.include_topic_authorized_operations
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=partitions,
        topic_authorized_operations=request.operations(ResourceType.TOPIC, topic.name)
        if wanted
        else OPERATIONS_NOT_ASKED,
    )


def _describe_partition(index: int, state: PartitionState) -> MetadataResponsePartition:
    code = ErrorCode.LEADER_NOT_AVAILABLE if state.leader == NO_LEADER else ErrorCode.NONE
    return MetadataResponsePartition(
        code, index, state.leader, state.leader_epoch, state.replicas, state.isr, state.offline
    )


def _missing_topic(
    request: Request[MetadataRequest], name: str | None, topic_id: UUID, code: ErrorCode
) -> MetadataResponseTopic:
    # a null name is new in v12
    return MetadataResponseTopic(
        error_code=code, name=name if name is not None or request.version >= 12 else "", topic_id=topic_id
    )


_TOPIC_RIGHT = right(
    Operation.DESCRIBE, ResourceType.TOPIC, "each topic asked for; of all topics, the others are left out"
)
_CREATE_ANY_RIGHT = Access(
    Operation.CREATE,
    ResourceType.CLUSTER,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "each topic to be created on the way, if the next right is missing",
)
_CREATE_RIGHT = right(Operation.CREATE, ResourceType.TOPIC, "each topic to be created on the way")


async def _guard(node: Node, request: Request[MetadataRequest]) -> object:
    body, version = request.body, request.version
    if body.topics is None or (version == 0 and not body.topics):
        refused: list[MetadataRequestTopic] = []
        answer = await request.proceed(node)
        topics = await only_shown(request, answer.topics, _TOPIC_RIGHT, lambda topic: topic.name or "")
    else:
        allowed, refused = await _sorted_out(node, request, body.topics)
        request.narrow(topics=allowed)
        answer = await request.proceed(node)
        # in v0 an empty list stands for all topics
        topics = answer.topics if allowed else []
    if body.include_topic_authorized_operations:
        field = "topic_authorized_operations"
        topics = [
            with_operations(request, topic, ResourceType.TOPIC, topic.name, field) if topic.name else topic
            async for topic in in_slices(topics)
        ]
    errors = request.element_errors(refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return answer._replace(topics=[*topics, *errors])


async def _sorted_out(
    node: Node, request: Request[MetadataRequest], topics: Iterable[MetadataRequestTopic]
) -> tuple[list[MetadataRequestTopic], list[MetadataRequestTopic]]:
    """Split the requested topics into those that the sender may describe, and the others."""
    allowed: list[MetadataRequestTopic] = []
    refused: list[MetadataRequestTopic] = []
    async for item in in_slices(_topics_meant(topics)):
        name = topic_name(node, item)
        may = name is None or request.allows(_TOPIC_RIGHT, name)
        missing = name is not None and node.topics.get(name) is None
        if name is not None and may and missing and _may_create(node, request):
            may = request.shows(_CREATE_ANY_RIGHT) or request.allows(_CREATE_RIGHT, name)
        (allowed if may else refused).append(item)
    return allowed, refused


def _may_create(node: Node, request: Request[MetadataRequest]) -> bool:
    return bool(node.settings.auto_create_topics_enable and request.body.allow_auto_topic_creation)


API = ServedApi(
    key=ApiKey.METADATA,
    versions=(0, 13),
    handler=handle,
    guard=Guard((_TOPIC_RIGHT, _CREATE_ANY_RIGHT, _CREATE_RIGHT, CLUSTER_OPERATIONS_RIGHT), _guard),
    errors=ErrorShape(
        top=(13, 13),
        levels={
            0: (Level("topics", "topics", same_fields("name", "topic_id"), for_null={"name": ""}),),
            _NULL_NAME_FROM: (Level("topics", "topics", same_fields("name", "topic_id")),),
        },
    ),
    reads_only=True,
)
