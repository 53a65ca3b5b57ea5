"""Metadata (3), v0-13: the broker, topics and their partitions; creates what it may (KIP-4, KIP-516)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ...cluster import NO_LEADER, PartitionState, TopicImage
from ...protocol import ErrorCode, KafkaError, PreparedArray
from ...protocol.messages.metadata import MetadataResponse, MetadataResponsePartition
from .._metadata_request import topics_meant
from .._requests import Request
from .._topics import NO_TOPIC_ID
from .._turns import in_slices
from ._operations import CLUSTER_OPERATIONS, OPERATIONS_NOT_ASKED, TOPIC_OPERATIONS
from .create_topics import check_total, create_all

if TYPE_CHECKING:
    from .._node import Node


#: Answers carry topic ids from v10, questions may from v12 (KIP-516).
_IDS_ASKED_FROM = 12
_NO_IDS = (None, NO_TOPIC_ID)


async def handle(node: Node, request: Request) -> Any:
    body = request.body
    if request.version < _IDS_ASKED_FROM and any(item.topic_id for item in body.topics or ()):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"topics cannot be asked for by id before v{_IDS_ASKED_FROM}"
        )
    host, port = request.endpoint
    make = request.part("MetadataResponseBroker")
    image = node.image
    # a broker listens where it was asked
    answer = MetadataResponse(
        brokers=[make(node_id=each, host=host, port=port) for each in image.brokers],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=await _topics(node, request),
    )
    if body.include_cluster_authorized_operations:
        return answer._replace(cluster_authorized_operations=CLUSTER_OPERATIONS)
    return answer


async def _topics(node: Node, request: Request) -> list[Any]:
    wanted = request.body.topics
    wanted = topics_meant(wanted) if wanted else wanted
    if wanted is None or (request.version == 0 and not wanted):
        return [_described(node, request, topic) async for topic in in_slices(node.topics.all())]
    once = {(item.name, item.topic_id): item for item in wanted}
    refused = await _create_missing(
        node, request, [name for name, topic_id in once if name and topic_id in _NO_IDS]
    )
    return [_asked_for(node, request, item, refused) async for item in in_slices(once.values())]


async def _create_missing(node: Node, request: Request, names: list[str]) -> dict[str, KafkaError]:
    """Create the topics that are not there, where that is wanted; why one could not be, by name."""
    if not (node.settings.auto_create_topics_enable and request.body.allow_auto_topic_creation):
        return {}
    refused: dict[str, KafkaError] = {}
    plans = []
    missing = [name for name in names if node.topics.get(name) is None]
    for name in missing:
        try:
            check_total(len(missing) * node.settings.num_partitions)
            plans.append(node.topics.plan(name, node.settings.num_partitions, {}))
        except KafkaError as error:
            refused[name] = error
    return refused | await create_all(node, request, plans)


def _asked_for(node: Node, request: Request, item: Any, refused: Mapping[str, KafkaError]) -> Any:
    topic_id = item.topic_id or NO_TOPIC_ID
    if topic_id != NO_TOPIC_ID:
        topic = node.topics.by_id(topic_id)
        if topic is None:
            return _missing(request, None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
        return _described(node, request, topic)
    try:
        return _described(node, request, _by_name(node, item.name, refused))
    except KafkaError as error:
        return _missing(request, item.name, NO_TOPIC_ID, error.code)


def _by_name(node: Node, name: str | None, refused: Mapping[str, KafkaError]) -> TopicImage:
    if name is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "neither a name nor an id")
    if name in refused:
        raise refused[name]
    topic = node.topics.get(name)
    if topic is None:
        node.topics.check_name(name)
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return topic


def _described(node: Node, request: Request, topic: TopicImage) -> Any:
    if topic.described is None:
        try:
            topic = node.topics.with_epochs(topic)
        except KafkaError:
            # no file can be opened now: clients come again
            return _missing(request, topic.name, topic.id, ErrorCode.LEADER_NOT_AVAILABLE)
        topic.described = PreparedArray(
            [_partition(index, state) for index, state in enumerate(topic.partitions)]
        )
    operations = (
        TOPIC_OPERATIONS if request.body.include_topic_authorized_operations else OPERATIONS_NOT_ASKED
    )
    return request.part("MetadataResponseTopic")(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=topic.described,
        topic_authorized_operations=operations,
    )


def _partition(index: int, state: PartitionState) -> MetadataResponsePartition:
    code = ErrorCode.LEADER_NOT_AVAILABLE if state.leader == NO_LEADER else ErrorCode.NONE
    return MetadataResponsePartition(
        code, index, state.leader, state.leader_epoch, state.replicas, state.isr, state.offline
    )


def _missing(request: Request, name: str | None, topic_id: UUID, code: ErrorCode) -> Any:
    # a null name is new in v12
    return request.part("MetadataResponseTopic")(
        error_code=code, name=name if name is not None or request.version >= 12 else "", topic_id=topic_id
    )
