"""The interface of a cluster that requests need, and the requests about coordinators and topics."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from ..protocol import ApiKey, ErrorCode, KafkaError, RequestBody, TopicPartition
from ..protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ..protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ..protocol.messages.find_coordinator import FindCoordinatorRequest
from .metadata import Address, ClusterMetadata, Node, TopicMetadata
from .pool import Channel

T = TypeVar("T")

#: Key types of FindCoordinator.
GROUP, TRANSACTION, SHARE = 0, 1, 2

#: Errors for rights that are missing.
NO_RIGHT = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


class Requests(Protocol):
    """The methods of ``Cluster`` that functions of this package call. They are described there."""

    request_timeout_ms: int

    @property
    def known_metadata(self) -> ClusterMetadata: ...

    def leader(self, partition: TopicPartition) -> int | None: ...

    def topic(self, name: str) -> TopicMetadata | None: ...

    async def metadata(self, topics: Iterable[str] | None, *, create: bool = False) -> ClusterMetadata: ...

    async def request(
        self,
        node_id: int | None,
        api_key: int,
        body: RequestBody[T],
        *,
        channel: Channel = Channel.CONTROL,
        timeout_ms: float | None = None,
        max_version: int | None = None,
        on_answer: Callable[[T], None] | None = None,
    ) -> T: ...

    async def request_coordinator(
        self,
        key: str,
        body: RequestBody[T],
        *,
        key_type: int = GROUP,
        channel: Channel = Channel.CONTROL,
        timeout_ms: float | None = None,
        max_version: int | None = None,
        sent: Callable[[], None] = ...,
    ) -> T: ...

    async def retrying(self, call: Callable[[], Awaitable[T]], *, timeout_ms: float | None = None) -> T: ...

    async def at_coordinator(
        self, key: str, call: Callable[[], Awaitable[T]], key_type: int = GROUP
    ) -> T: ...


class Refusable(Protocol):
    """A response, or a part of one, that says with words why it is an error."""

    @property
    def error_code(self) -> int: ...

    @property
    def error_message(self) -> str | None: ...


def refusal_text(row: Refusable, asked: str) -> str:
    """What a broker says of its refusal, or what it was ``asked`` if it says nothing. Of missing rights
    Apache Kafka says "Authorization failed.", or shows the request as Java prints it.
    """
    return asked if not row.error_message or row.error_code in NO_RIGHT else row.error_message


def error_of(row: Refusable, asked: str) -> KafkaError:
    """The error that a broker has answered with; see ``refusal_text``."""
    return KafkaError(row.error_code, refusal_text(row, asked))


def partition_name(partition: TopicPartition) -> str:
    """Name a partition as Kafka's log messages do: ``orders-0``."""
    return f"{partition.topic}-{partition.partition}"


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partition numbers by topic, in the order given."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        numbers[topic].append(number)
    return numbers


def leader_or_raise(cluster: Requests, partition: TopicPartition) -> int:
    """Return the node id of the leader. Raises KafkaError, with the topic's error code, if there is none."""
    leader = cluster.leader(partition)
    if leader is not None:
        return leader
    code = cluster.known_metadata.errors.get(partition.topic)
    if (
        code is None
        and (topic := cluster.topic(partition.topic))
        and partition.partition not in topic.partitions
    ):
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    raise KafkaError(code or ErrorCode.LEADER_NOT_AVAILABLE, f"no leader of {partition_name(partition)}")


# coordinators


async def find_coordinator(cluster: Requests, key: str, key_type: int = GROUP) -> Node:
    """Look up the coordinator of a group, or of a transactional id, in one attempt.

    Raises KafkaError while there is none.
    """
    body = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
    response = await cluster.request(None, ApiKey.FIND_COORDINATOR, body)
    row = response.coordinators[0] if response.coordinators else response
    if row.error_code:
        what = f"the coordinator of {'group' if key_type == GROUP else 'transaction'} {key!r}"
        raise error_of(row, f"asking for {what}")
    return Node(row.node_id, Address(row.host, row.port))


# topics


async def create_topics(
    cluster: Requests,
    topics: Mapping[str, int],
    *,
    replication_factor: int = -1,
    configs: Mapping[str, str] | None = None,
    if_not_exists: bool = True,
) -> dict[str, uuid.UUID | None]:
    """Create topics with these numbers of partitions, and return the topic ids when every partition has a
    leader.

    -1 stands for the broker's default number of partitions or replicas. Raises KafkaError, also for a topic
    that exists (TOPIC_ALREADY_EXISTS) unless ``if_not_exists`` is set.
    """
    rows = [
        CreatableTopic(
            name=name,
            num_partitions=count,
            replication_factor=replication_factor,
            assignments=[],
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in (configs or {}).items()],
        )
        for name, count in topics.items()
    ]
    body = CreateTopicsRequest(topics=rows, timeout_ms=cluster.request_timeout_ms, validate_only=False)

    async def attempt() -> None:
        response = await cluster.request(await controller(cluster), ApiKey.CREATE_TOPICS, body)
        for row in response.topics:
            if row.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
                continue
            if row.error_code:
                raise error_of(row, f"creating topic {row.name!r}")

    await cluster.retrying(attempt)
    await cluster.retrying(lambda: _wait_for_leaders(cluster, topics))
    return {name: topic.topic_id for name in topics if (topic := cluster.topic(name))}


async def delete_topics(cluster: Requests, names: Iterable[str]) -> None:
    """Delete topics; a topic that does not exist is ignored. Raises KafkaError."""
    wanted = sorted(set(names))
    body = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=uuid.UUID(int=0)) for name in wanted],
        topic_names=wanted,
        timeout_ms=cluster.request_timeout_ms,
    )

    async def attempt() -> None:
        response = await cluster.request(await controller(cluster), ApiKey.DELETE_TOPICS, body)
        for row in response.responses:
            if row.error_code not in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise error_of(row, f"deleting topic {row.name!r}")

    await cluster.retrying(attempt)


async def controller(cluster: Requests) -> int | None:
    """Return the node id of the controller; None (any node) if it is unknown: in KRaft, any node forwards.

    Requests the metadata each time, because the controller may have changed.
    """
    known = await cluster.metadata([])
    return known.controller_id if known.controller_id in known.nodes else None


async def _wait_for_leaders(cluster: Requests, topics: Mapping[str, int]) -> None:
    known = await cluster.metadata(topics)
    for name in topics:
        partitions = known.partitions(name)
        if not partitions or any(known.leader(TopicPartition(*p)) is None for p in partitions):
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name!r} is still being set up")
