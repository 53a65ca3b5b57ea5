"""CreateTopics and DeleteTopics through a cluster: enough for tests, tools and dead-letter topics."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from ..protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ..protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

if TYPE_CHECKING:
    from .cluster import Cluster


async def create_topics(
    cluster: Cluster,
    topics: Mapping[str, int],
    replication_factor: int,
    configs: Mapping[str, str],
    if_not_exists: bool,
) -> dict[str, uuid.UUID | None]:
    """See Cluster.create_topics."""
    rows = [
        CreatableTopic(
            name=name,
            num_partitions=count,
            replication_factor=replication_factor,
            assignments=[],
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in configs.items()],
        )
        for name, count in topics.items()
    ]
    body = CreateTopicsRequest(topics=rows, timeout_ms=cluster.request_timeout_ms, validate_only=False)

    async def attempt() -> None:
        response = await cluster.request(await _controller(cluster), ApiKey.CREATE_TOPICS, body)
        for row in response.topics:
            if row.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
                continue
            if row.error_code:
                raise KafkaError(row.error_code, row.error_message or f"creating topic {row.name!r}")

    await cluster.retrying(attempt)
    await cluster.retrying(lambda: _wait_for_leaders(cluster, topics))
    return {name: topic.topic_id for name in topics if (topic := cluster.topic(name))}


async def delete_topics(cluster: Cluster, names: Iterable[str]) -> None:
    """See Cluster.delete_topics."""
    wanted = sorted(set(names))
    body = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=uuid.UUID(int=0)) for name in wanted],
        topic_names=wanted,
        timeout_ms=cluster.request_timeout_ms,
    )

    async def attempt() -> None:
        response = await cluster.request(await _controller(cluster), ApiKey.DELETE_TOPICS, body)
        for row in response.responses:
            if row.error_code not in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise KafkaError(row.error_code, row.error_message or f"deleting topic {row.name!r}")

    await cluster.retrying(attempt)


async def _controller(cluster: Cluster) -> int | None:
    """The controller where it is known, else any node (which forwards in a KRaft cluster)."""
    known = cluster.known
    if known.controller_id not in known.nodes:
        known = await cluster.metadata([])
    return known.controller_id if known.controller_id in known.nodes else None


async def _wait_for_leaders(cluster: Cluster, topics: Mapping[str, int]) -> None:
    known = await cluster.metadata(topics)
    for name in topics:
        partitions = known.partitions(name)
        if not partitions or any(known.leader(TopicPartition(*p)) is None for p in partitions):
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name!r} is still being set up")
