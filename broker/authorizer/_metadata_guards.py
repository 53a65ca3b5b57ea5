"""Guards of Metadata and DescribeCluster: what a client is told of topics and of itself."""

from __future__ import annotations

from typing import Any

from ...protocol import ApiKey, ErrorCode, operation_bits
from .._error_answers import element_errors
from .._metadata_request import topics_meant
from ._access import ACCESS, Access
from ._acls import ResourceType
from ._guard import Asked, topic_name


async def metadata(asked: Asked) -> Any:
    describe, create_any, create, cluster = ACCESS[ApiKey.METADATA]
    body, version = asked.request.body, asked.request.version
    if body.topics is None or (version == 0 and not body.topics):
        refused: list[Any] = []
        answer = await asked.proceed()
        topics = [topic for topic in answer.topics if asked.shows(describe, topic.name)]
    else:
        allowed, refused = _sorted_out(asked, describe, create_any, create)
        asked.narrow(topics=allowed)
        answer = await asked.proceed()
        # v0 took an empty list for all of them
        topics = answer.topics if allowed else []
    if body.include_topic_authorized_operations:
        topics = [_with_operations(asked, topic) if topic.name else topic for topic in topics]
    errors = element_errors(asked.request, refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return _with_cluster_operations(asked, cluster, answer._replace(topics=[*topics, *errors]))


def _with_operations(asked: Asked, topic: Any) -> Any:
    operations = asked.operations(ResourceType.TOPIC, topic.name)
    return topic._replace(topic_authorized_operations=operation_bits(operations))


def _sorted_out(
    asked: Asked, describe: Access, create_any: Access, create: Access
) -> tuple[list[Any], list[Any]]:
    """The topics that are asked for: what may be answered, and what may not."""
    allowed: list[Any] = []
    refused: list[Any] = []
    for item in topics_meant(asked.request.body.topics):
        name = topic_name(asked, item)
        may = name is None or asked.may(describe, name)
        if name is not None and may and _is_created(asked, name):
            may = asked.shows(create_any) or asked.may(create, name)
        (allowed if may else refused).append(item)
    return allowed, refused


def _is_created(asked: Asked, name: str) -> bool:
    """Whether a topic would be created on the way."""
    node = asked.node
    return (
        node.settings.auto_create_topics_enable
        and asked.request.body.allow_auto_topic_creation
        and node.topics.get(name) is None
    )


async def describe_cluster(asked: Asked) -> Any:
    (cluster,) = ACCESS[ApiKey.DESCRIBE_CLUSTER]
    return _with_cluster_operations(asked, cluster, await asked.proceed())


def _with_cluster_operations(asked: Asked, cluster: Access, answer: Any) -> Any:
    if asked.request.body.include_cluster_authorized_operations:
        operations = asked.operations(ResourceType.CLUSTER) if asked.shows(cluster) else ()
        return answer._replace(cluster_authorized_operations=operation_bits(operations))
    return answer
