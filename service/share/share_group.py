"""What a service asks brokers about its share group: how often it delivers a record, and its lag."""

from __future__ import annotations

from collections.abc import Iterable

from ...client.cluster import Cluster
from ...protocol import ApiKey, ErrorCode, KafkaError, TopicPartition
from ...protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ...protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)

#: Kinds of resources in DescribeConfigs.
_BROKER, _GROUP = 4, 32
#: A group may have its own limit, from Apache Kafka 4.3 on; before, it is a config of brokers.
_OF_GROUP, _OF_BROKER = "share.delivery.count.limit", "group.share.delivery.count.limit"


async def read_delivery_limit(cluster: Cluster, group: str) -> int:
    """How often the group delivers a record. Raises KohortError, most likely since the right to read configs
    of both the group and the cluster is missing.
    """
    refusal: KafkaError | None = None
    try:
        limit = await _read_config(cluster, None, _GROUP, group, _OF_GROUP)
    except KafkaError as error:
        limit, refusal = None, error
    if limit is None:
        node = min((await cluster.metadata(())).nodes)
        try:
            limit = await _read_config(cluster, node, _BROKER, str(node), _OF_BROKER)
        except KafkaError as error:
            raise refusal or error from error
    if limit is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"brokers have no config {_OF_BROKER}")
    return int(limit)


async def _read_config(cluster: Cluster, node: int | None, kind: int, name: str, config: str) -> str | None:
    body = DescribeConfigsRequest([DescribeConfigsResource(kind, name, [config])])
    (row,) = (await cluster.request(node, ApiKey.DESCRIBE_CONFIGS, body)).results
    if row.error_code:
        raise KafkaError(row.error_code, row.error_message or f"reading config {config} of {name!r}")
    return next((found.value for found in row.configs if found.name == config), None)


async def read_share_lag(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """How many records of each partition the group has not done, where its coordinator knows it.

    Raises KohortError.
    """
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    asked = [DescribeShareGroupOffsetsRequestTopic(topic, numbers) for topic, numbers in topics.items()]
    body = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, asked)])
    (row,) = (await cluster.request_coordinator(group, body)).groups
    if row.error_code:
        raise KafkaError(row.error_code, row.error_message or f"reading the lag of group {group!r}")
    return {
        TopicPartition(topic.topic_name, part.partition_index): part.lag
        for topic in row.topics
        for part in topic.partitions
        if not part.error_code and part.lag >= 0
    }
