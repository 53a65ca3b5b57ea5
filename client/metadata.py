"""Cluster metadata: broker addresses, topics, partitions and their leaders."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter

from ..protocol import TopicPartition
from ..protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from ..protocol.named_tuples import NamedTuple
from .errors import ConfigError

DEFAULT_PORT = 9092
_NO_ID = uuid.UUID(int=0)


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(bootstrap: str | Iterable[str]) -> list[Address]:
    """Parse ``"a:9092,b"``, or a list. IPv6 hosts are in brackets; the port defaults to 9092.

    Raises ConfigError.
    """
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = [_parse_one(part.strip()) for part in parts if part.strip()]
    if not addresses:
        raise ConfigError('bootstrap is empty: give at least one broker, as "host:port"')
    return addresses


def _parse_one(text: str) -> Address:
    if "://" in text:
        scheme = text.partition("://")[0]
        raise ConfigError(f'bootstrap {text!r}: write "host:port" alone, without {scheme}://')
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        raise ConfigError(f"bootstrap {text!r}: write an IPv6 address in brackets, as [::1]:9092")
    else:
        host, _, port = text.partition(":")
    if not host:
        raise ConfigError(f'bootstrap {text!r} has no host: write "host:port"')
    if not port:
        return Address(host, DEFAULT_PORT)
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"bootstrap {text!r}: {port!r} is no port number from 1 to 65535")
    return Address(host, int(port))


@dataclass(frozen=True, slots=True)
class Node:
    """A broker. ``rack`` is None if the broker has none."""

    node_id: int
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition. ``leader`` is -1 while there is none, ``leader_epoch`` -1 if it is not known."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One topic. ``topic_id`` is None if the broker has no topic ids (before Kafka 2.8)."""

    name: str
    topic_id: uuid.UUID | None
    partitions: dict[int, PartitionMetadata]
    internal: bool = False


@dataclass(slots=True)
class ClusterMetadata:
    """Cached metadata of a cluster. ``errors``: error codes of topics that were refused, by name."""

    cluster_id: str | None = None
    controller_id: int = -1
    nodes: dict[int, Node] = field(default_factory=dict)
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)

    def leader(self, partition: TopicPartition) -> int | None:
        """Node id of a partition's leader; None while unknown."""
        found = self._partition_of(partition)
        return found.leader if found is not None and found.leader in self.nodes else None

    def leader_epoch(self, partition: TopicPartition) -> int:
        """The last known leader epoch; -1 while unknown."""
        found = self._partition_of(partition)
        return found.leader_epoch if found is not None else -1

    def _partition_of(self, partition: TopicPartition) -> PartitionMetadata | None:
        topic = self.topics.get(partition.topic)
        return topic.partitions.get(partition.partition) if topic else None

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """The topic's id; None while unknown, and if topics have no ids."""
        found = self.topics.get(topic)
        return found.topic_id if found is not None else None

    def partitions(self, topic: str) -> list[TopicPartition]:
        """All partitions of a topic, by number; empty while the topic is unknown."""
        known = self.topics.get(topic)
        return [TopicPartition(topic, number) for number in sorted(known.partitions)] if known else []

    def without_epochs(self) -> ClusterMetadata:
        """Return this metadata for a cluster that may have begun anew: what it says of leaders next is
        believed, as by a client that has just started.
        """
        topics = {
            name: replace(
                topic,
                partitions={number: replace(p, leader_epoch=-1) for number, p in topic.partitions.items()},
            )
            for name, topic in self.topics.items()
        }
        return replace(self, topics=topics)

    def update_from(self, response: MetadataResponse, asked: frozenset[str] | None) -> ClusterMetadata:
        """Return new metadata: this, updated by a Metadata response to a request for the topics ``asked``.

        ``asked`` is None if all topics were requested. For each partition the highest leader epoch wins,
        since a broker that lags behind may name a former leader.
        """
        topics = {} if asked is None else {k: v for k, v in self.topics.items() if k not in asked}
        errors = {} if asked is None else {k: v for k, v in self.errors.items() if k not in asked}
        for row in response.topics:
            if row.error_code:
                if row.name is not None:  # else it was requested by an id that no topic has
                    errors[row.name] = row.error_code
            else:
                name = row.name or ""
                topics[name] = _topic_of(row, self.topics.get(name))
        return ClusterMetadata(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            nodes={
                row.node_id: Node(row.node_id, Address(row.host, row.port), row.rack or None)
                for row in response.brokers
            },
            topics=topics,
            errors=errors,
        )


def _topic_of(row: MetadataResponseTopic, before: TopicMetadata | None) -> TopicMetadata:
    topic_id = row.topic_id if row.topic_id and row.topic_id != _NO_ID else None
    same = before is not None and topic_id is not None and topic_id == before.topic_id
    known = before.partitions if before is not None and same else {}
    partitions = {
        p.partition_index: _newest_partition(p, known.get(p.partition_index))
        for p in sorted(row.partitions, key=_NUMBER)
    }
    return TopicMetadata(row.name or "", topic_id, partitions, row.is_internal)


#: The number of a partition in a Metadata response.
_NUMBER = attrgetter("partition_index")


def _newest_partition(row: MetadataResponsePartition, before: PartitionMetadata | None) -> PartitionMetadata:
    """Return what is known of a partition now: what was before, if that is newer or the same."""
    replicas = tuple(row.replica_nodes)
    if before is not None:
        if 0 <= row.leader_epoch < before.leader_epoch:
            return before
        now = row.leader_id, row.leader_epoch, row.error_code, replicas
        if now == (before.leader, before.leader_epoch, before.error_code, before.replicas):
            return before
    return PartitionMetadata(row.partition_index, row.leader_id, row.leader_epoch, replicas, row.error_code)
