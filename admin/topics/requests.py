"""Requests about topics: metadata, configs, partitions."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...client import EARLIEST, LATEST, BrokerConnectionError, Cluster, ClusterMetadata
from ...client.requests import controller, error_of
from ...protocol import ApiKey, ErrorCode, KafkaError, KohortError, TopicPartition
from ...protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ..errors import advise_error

#: DescribeConfigs: types of resources, and the source of configs that were set on the topic itself.
_TOPIC, _BROKER = 2, 4
_SET_ON_TOPIC = 1
#: Partitions in one ListOffsets, and how often one is asked for its offset.
_ASKED_AT_ONCE: Final = 5_000
_TRIES: Final = 2
#: Operations of IncrementalAlterConfigs.
_SET, _DELETE = 0, 1
#: Where the value of a config comes from, by Kafka's numbers.
CONFIG_SOURCES: Final = {
    1: "topic",
    2: "broker, dynamic",
    3: "cluster, dynamic",
    4: "broker, file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}


@dataclass(frozen=True, slots=True)
class ListedTopic:
    """A row of ``list``."""

    topic: str
    topic_id: uuid.UUID | None
    partitions: int
    replication_factor: int
    internal: bool


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """A partition of a topic; ``leader`` and offsets are None while there is no leader."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: list[int]
    in_sync: list[int]
    start_offset: int | None
    end_offset: int | None


@dataclass(frozen=True, slots=True)
class Config:
    """A config of a topic; ``value`` is None where it is secret. ``source`` says where it was set."""

    name: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic, with the configs that were set on it, or with all; None where they may not be seen."""

    topic: str
    topic_id: uuid.UUID | None
    internal: bool
    replication_factor: int
    configs: list[Config] | None
    partitions: list[DescribedPartition]


async def topic_rows(cluster: Cluster, topics: Iterable[str] | None) -> dict[str, MetadataResponseTopic]:
    """Rows of Metadata, by name: of these topics, or all. Raises KafkaError for one that is not there."""
    wanted = None if topics is None else [MetadataRequestTopic(name=topic) for topic in dict.fromkeys(topics)]
    body = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    answer = await cluster.retrying(lambda: cluster.request(None, ApiKey.METADATA, body))
    rows = {row.name: row for row in answer.topics if row.name is not None}
    for name, row in rows.items():
        if row.error_code and wanted is not None:
            raise _refusal_of(name, row.error_code)
    return {name: row for name, row in sorted(rows.items()) if not row.error_code}


async def require_topics(cluster: Cluster, topics: Iterable[str]) -> ClusterMetadata:
    """The cluster's metadata, which have these topics; asks for those that are not known yet.

    Raises KafkaError for one that does not exist.
    """
    known = cluster.known_metadata
    if missing := [topic for topic in topics if topic not in known.topics and topic not in known.errors]:
        known = await cluster.metadata(missing)
    for topic in topics:
        if topic not in known.topics:
            raise _refusal_of(topic, known.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return known


def _refusal_of(topic: str, code: int) -> KafkaError:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        text = f"topic {topic!r} does not exist; `kohort topics list` shows which topics there are"
        return KafkaError(code, text)
    return advise_error(code, f"topic {topic!r}")


def replication_of(row: MetadataResponseTopic) -> int:
    """Most replicas of a partition; 0 if there are no partitions."""
    return max((len(partition.replica_nodes) for partition in row.partitions), default=0)


async def list_topics(cluster: Cluster) -> list[ListedTopic]:
    """All topics that this user may describe, by name."""
    return [
        ListedTopic(name, row.topic_id, len(row.partitions), replication_of(row), row.is_internal)
        for name, row in (await topic_rows(cluster, None)).items()
    ]


async def describe_topics(
    cluster: Cluster, topics: Sequence[str], *, all_configs: bool = False
) -> list[DescribedTopic]:
    """Topics, in the order given. Raises KafkaError for one that does not exist."""
    rows = await topic_rows(cluster, topics)
    places = [
        TopicPartition(name, each.partition_index) for name, row in rows.items() for each in row.partitions
    ]
    starts, ends, configs = await asyncio.gather(
        log_offsets(cluster, places, EARLIEST),
        log_offsets(cluster, places, LATEST),
        _visible_configs(cluster, rows, all_configs=all_configs),
    )
    return [
        DescribedTopic(
            name,
            rows[name].topic_id,
            rows[name].is_internal,
            replication_of(rows[name]),
            configs.get(name),
            [_describe_partition(name, each, starts, ends) for each in _by_number(rows[name].partitions)],
        )
        for name in dict.fromkeys(topics)
    ]


def _by_number(partitions: Iterable[MetadataResponsePartition]) -> list[MetadataResponsePartition]:
    return sorted(partitions, key=lambda each: each.partition_index)


def _describe_partition(
    topic: str,
    row: MetadataResponsePartition,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> DescribedPartition:

    place = TopicPartition(topic, row.partition_index)
    return DescribedPartition(
        row.partition_index,
        None if row.leader_id < 0 else row.leader_id,
        row.leader_epoch,
        list(row.replica_nodes),
        list(row.isr_nodes),
        starts.get(place),
        ends.get(place),
    )


async def _visible_configs(
    cluster: Cluster, topics: Iterable[str], *, all_configs: bool
) -> dict[str, list[Config]]:
    """``topic_configs`` of those topics that this user may DESCRIBE_CONFIGS. Raises KafkaError."""
    names = list(topics)
    try:
        return await topic_configs(cluster, names, all_configs=all_configs)
    except KafkaError as error:
        if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
    if len(names) == 1:
        return {}
    found = {}
    for name in names:
        found.update(await _visible_configs(cluster, [name], all_configs=all_configs))
    return found


async def topic_configs(
    cluster: Cluster, topics: Iterable[str], *, all_configs: bool
) -> dict[str, list[Config]]:
    """Return the configs of topics by topic: those that were set, or ``all_configs``. Raises KafkaError."""
    from ...protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

    body = DescribeConfigsRequest([DescribeConfigsResource(_TOPIC, topic, None) for topic in topics])

    async def attempt() -> dict[str, list[Config]]:
        found = {}
        for row in (await cluster.request(None, ApiKey.DESCRIBE_CONFIGS, body)).results:
            if row.error_code:
                raise error_of(row, f"configs of topic {row.resource_name!r}")
            found[row.resource_name] = [
                Config(one.name, one.value, CONFIG_SOURCES.get(one.config_source, "unknown"))
                for one in sorted(row.configs, key=lambda one: one.name)
                if all_configs or one.config_source == _SET_ON_TOPIC
            ]
        return found

    return await cluster.retrying(attempt)


async def alter_configs(
    cluster: Cluster, topic: str, changes: Mapping[str, str | None], *, only_ask: bool = False
) -> None:
    """Set configs of a topic; None restores the broker's value. Raises KafkaError, and then sets none."""
    await topic_rows(cluster, [topic])
    await set_configs(cluster, None, (_TOPIC, topic), changes, only_ask=only_ask)


async def alter_broker_configs(cluster: Cluster, node_id: int, changes: Mapping[str, str | None]) -> None:
    """Set configs of one broker; see ``alter_configs``."""
    await set_configs(cluster, node_id, (_BROKER, str(node_id)), changes)


async def set_configs(
    cluster: Cluster,
    node_id: int | None,
    resource: tuple[int, str],
    changes: Mapping[str, str | None],
    *,
    only_ask: bool = False,
) -> None:
    """Set configs at a broker, or at the controller (None)."""
    from ...protocol.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    rows = [AlterableConfig(name, _DELETE if to is None else _SET, to) for name, to in changes.items()]
    body = IncrementalAlterConfigsRequest([AlterConfigsResource(*resource, rows)], only_ask)

    async def attempt() -> None:
        node = await controller(cluster) if node_id is None else node_id
        answer = await cluster.request(node, ApiKey.INCREMENTAL_ALTER_CONFIGS, body)
        for row in answer.responses:
            if row.error_code:
                raise error_of(row, f"configs of {resource[1]!r}")

    await cluster.retrying(attempt)


async def create_partitions(cluster: Cluster, topic: str, count: int, *, only_ask: bool = False) -> None:
    """Increase a topic's partitions to ``count``, and wait until they have leaders. Raises KafkaError."""
    from ...protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

    await topic_rows(cluster, [topic])
    rows = [CreatePartitionsTopic(topic, count, None)]
    body = CreatePartitionsRequest(rows, cluster.request_timeout_ms, only_ask)

    async def attempt() -> None:
        answer = await cluster.request(await controller(cluster), ApiKey.CREATE_PARTITIONS, body)
        for row in answer.results:
            if row.error_code:
                raise error_of(row, f"partitions of topic {topic!r}")

    async def wait() -> None:
        known = await cluster.metadata([topic])
        led = [place for place in known.partitions(topic) if known.leader(place) is not None]
        if len(led) < count:
            text = f"new partitions of topic {topic!r} are still being set up"
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, text)

    await cluster.retrying(attempt)
    if not only_ask:
        await cluster.retrying(wait)


# offsets


async def log_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], at: int
) -> dict[TopicPartition, int]:
    """Offsets at EARLIEST, LATEST or a time in ms (then the end where no record is that late).

    Partitions that do not exist, have no leader or may not be seen are left out, so that the rest of a
    group can be shown.
    """
    wanted = set(partitions)
    if not wanted:
        return {}
    known = await cluster.metadata({partition.topic for partition in wanted})
    there = [partition for partition in sorted(wanted) if known.leader(partition) is not None]
    try:
        return await _ask_offsets(cluster, there, at)
    except (KafkaError, BrokerConnectionError):
        by_topic: dict[str, list[TopicPartition]] = defaultdict(list)
        for partition in there:
            by_topic[partition.topic].append(partition)
        answers = await asyncio.gather(
            *(_ask_offsets(cluster, part, at) for part in by_topic.values()), return_exceptions=True
        )
    found: dict[TopicPartition, int] = {}
    for answer in answers:
        if isinstance(answer, dict):
            found.update(answer)
        elif not isinstance(answer, (KafkaError, BrokerConnectionError)):
            raise answer
    return found


async def _ask_offsets(
    cluster: Cluster, partitions: list[TopicPartition], at: int
) -> dict[TopicPartition, int]:
    answers = await cluster.list_offsets(dict.fromkeys(partitions, at))
    found = {partition: answer.offset for partition, answer in answers.items()}
    late = [partition for partition, offset in found.items() if offset < 0]
    if late and at != LATEST:
        found.update(await _ask_offsets(cluster, late, LATEST))
    return found


async def find_offsets(
    cluster: Cluster, partitions: Collection[TopicPartition], at: int, *, read_committed: bool = False
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, KohortError]]:
    """Offsets at EARLIEST, LATEST or a time in ms (then -1 where no record is that late), and why those of
    other partitions are not known. Raises KafkaError only if no broker tells which partitions there are.
    """
    found: dict[TopicPartition, int] = {}
    errors: dict[TopicPartition, KohortError] = {}
    left = sorted(partitions)
    for attempt in range(_TRIES if partitions else 0):
        if attempt or any(cluster.known_metadata.leader(place) is None for place in left):
            await cluster.metadata({place.topic for place in left})
        errors = {}
        for begun in range(0, len(left), _ASKED_AT_ONCE):
            part = dict.fromkeys(left[begun : begun + _ASKED_AT_ONCE], at)
            answers = await cluster.list_offsets(part, read_committed=read_committed, errors=errors)
            found.update((place, row.offset) for place, row in answers.items())
        # a leader may have just moved
        left = [place for place, error in errors.items() if getattr(error, "retriable", False)]
        if not left:
            break
    return found, errors


async def offsets_at(
    cluster: Cluster, partitions: Iterable[TopicPartition], at: int, *, read_committed: bool = False
) -> dict[TopicPartition, int]:
    """Offsets of all these partitions at EARLIEST, LATEST or a time in ms (then -1 where no record is that
    late).

    Raises KafkaError.
    """
    found = await cluster.list_offsets(dict.fromkeys(partitions, at), read_committed=read_committed)
    return {partition: each.offset for partition, each in found.items()}


async def ranges(
    cluster: Cluster, partitions: Sequence[TopicPartition], *, read_committed: bool = False
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Starts and ends of these logs; with ``read_committed`` they end where a transaction is open."""
    first, last = await asyncio.gather(
        offsets_at(cluster, partitions, EARLIEST),
        offsets_at(cluster, partitions, LATEST, read_committed=read_committed),
    )
    return first, last
