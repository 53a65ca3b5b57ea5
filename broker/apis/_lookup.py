"""Topics and partitions of requests, and checks and constants that several APIs share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from ...cluster import BrokerRegistration, TopicImage
from ...protocol import ErrorCode, KafkaError
from ..authorizer import Access, Operation, ResourceType
from ..node import Node
from ..partitions.partition import LocalTopic, Partition
from ._api import AnyRequest

#: No epoch known or given.
NO_EPOCH = -1

#: Authorized operations in a response if the client did not request them.
OPERATIONS_NOT_ASKED = -(1 << 31)

#: The right to see, in Metadata and DescribeCluster, the allowed operations on the cluster.
CLUSTER_OPERATIONS_RIGHT: Final = Access(
    Operation.DESCRIBE,
    ResourceType.CLUSTER,
    None,
    "the authorized operations of the cluster; without it none is told",
)


def find_topic(node: Node, name: str, topic_id: UUID | None = None, *, by_id: bool = False) -> TopicImage:
    """A topic by its id or name. Raises KafkaError: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION."""
    if by_id:
        topic = None if topic_id is None else node.topics.image.topic_by_id(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic_id}")
        return topic
    topic = node.topics.image.topic(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return topic


def find_partition(
    node: Node,
    name: str,
    topic_id: UUID | None,
    index: int,
    *,
    by_id: bool = False,
    known_epoch: int = NO_EPOCH,
    any_replica: bool = False,
    only_end: bool = False,
) -> Partition:
    """A partition as ``partition_of`` finds it. Also raises the errors of ``find_topic``."""
    topic = find_topic(node, name, topic_id, by_id=by_id)
    here = node.logs.topic(topic.name)
    return partition_of(
        topic, here, index, known_epoch=known_epoch, any_replica=any_replica, only_end=only_end
    )


def partition_of(
    topic: TopicImage,
    here: LocalTopic | None,
    index: int,
    *,
    known_epoch: int,
    any_replica: bool,
    only_end: bool = False,
) -> Partition:
    """A partition that this broker leads, or with ``any_replica`` has; ``here`` is what it has of the topic.

    With ``only_end`` its files are not read if it is known without where they end.

    Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, FENCED_LEADER_EPOCH and
    UNKNOWN_LEADER_EPOCH for another epoch than the client knows (KIP-320), NOT_LEADER_OR_FOLLOWER.
    """
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic.name} has {len(topic.partitions)} partitions, there is no {index}",
        )
    partition = None if here is None else here.partitions.get(index)
    if partition is not None:
        if not (only_end and partition.noted_end is not None):
            partition.check_usable()
        if known_epoch != NO_EPOCH and known_epoch != partition.leader_epoch:
            raise _other_epoch(partition.leader_epoch, known_epoch)
    if partition is None or not (any_replica or partition.is_led):
        raise KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"{topic.name}-{index} is led by broker {topic.partitions[index].leader}: ask that one",
        )
    return partition


def brokers_of(node: Node, request: AnyRequest) -> Iterator[tuple[BrokerRegistration, str, int]]:
    """Live brokers, with host and port for this client: of a single broker the address of this connection, in
    a cluster the address of the same listener; brokers without it are left out.

    There is always one: this broker, where none is known to be registered, as when all sessions have ended at
    once. A client that hears of no broker may forget how to reach any.
    """
    if node.cluster is None:
        for broker in node.image.brokers.values():
            yield broker, *request.endpoint
        return
    listener = request.context.listener
    there = [(each, each.address(listener)) for each in node.image.brokers.values()]
    own = node.cluster.registration.broker
    for broker, address in there if any(address for _, address in there) else [(own, own.address(listener))]:
        if address is not None:
            yield broker, *address


def cluster_operations(request: AnyRequest) -> int:
    """What the sender may do to the cluster, if it asks for that in Metadata or DescribeCluster."""
    if not request.body.include_cluster_authorized_operations:
        return OPERATIONS_NOT_ASKED
    return request.operations(ResourceType.CLUSTER) if request.shows(CLUSTER_OPERATIONS_RIGHT) else 0


def _other_epoch(leader_epoch: int, known: int) -> KafkaError:
    code = ErrorCode.FENCED_LEADER_EPOCH if known < leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
    return KafkaError(code, f"the leader epoch is {leader_epoch}, the request says {known}")
