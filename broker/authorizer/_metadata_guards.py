"""Guards of Metadata and DescribeCluster: what a client is told of topics and of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol import ApiKey, ErrorCode
from .._error_answers import element_errors
from ._access import ACCESS, Access
from ._acls import ResourceType
from ._guard import Asked, Wanted, topic_name


async def metadata(asked: Asked) -> Any:
    describe, create_any, create, cluster = ACCESS[ApiKey.METADATA]
    request, body = asked.request, asked.request.body
    if body.topics is None or (request.version == 0 and not body.topics):
        answer = await asked.proceed()
        answer.topics = [topic for topic in answer.topics if asked.shows(describe, topic.name)]
    else:

        def wanted(item: Any) -> Wanted:
            name = topic_name(asked, item)
            if name is None:
                return None
            if asked.may(describe, name) and _is_created(asked, name) and not asked.shows(create_any):
                return create, name
            return describe, name

        # an empty list would mean all of them in v0
        answer = await _each_of_metadata(asked, wanted)
    if body.include_topic_authorized_operations:
        for topic in answer.topics:
            if not topic.error_code:
                topic.authorized_operations = asked.operations(ResourceType.TOPIC, topic.name)
    return _with_cluster_operations(asked, cluster, answer)


async def _each_of_metadata(asked: Asked, wanted_of: Callable[[Any], Wanted]) -> Any:
    body = asked.request.body
    refused: list[Any] = []
    allowed: list[Any] = []
    for item in body.topics:
        wanted = wanted_of(item)
        (allowed if wanted is None or asked.may(*wanted) else refused).append(item)
    body.topics = allowed
    answer = await asked.proceed()
    errors = element_errors(asked.request, refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answer.topics = [*(answer.topics if allowed else ()), *errors]
    return answer


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
        seen = asked.shows(cluster)
        answer.authorized_operations = asked.operations(ResourceType.CLUSTER) if seen else frozenset()
    return answer
