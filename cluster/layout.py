"""The layout of a metadata store: paths, and the values of their entries.

Paths and values are those of Apache Kafka's own ZooKeeper layout where it has any for the purpose;
docs/cluster.md lists those of a cluster, whose functions follow the line "of a cluster" in this file. The
folder of a single broker holds:

=========================  ================================================================================
path                       value, as JSON
=========================  ================================================================================
/brokers/topics/NAME       ``TopicRecord``: id, partitions, configs (in a cluster ``TopicAssignment``)
/admin/delete_topics/ID    name of a topic whose files or committed offsets may not all be gone; null where
                           a former version did not keep it (in a cluster ``TopicDeletion``)
/latest_producer_id_block  end of the last block of producer ids that was taken
paths of ``DOCUMENTS``     settings changed while the broker ran, access rules, SCRAM users, client quotas,
                           configs of groups, levels of features: each a document that its owner reads
=========================  ================================================================================
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias
from uuid import UUID

from ..protocol import JsonObject
from ._image import BrokerRegistration, Endpoint, PartitionState, TopicImage

TOPICS: Final = "/brokers/topics"
DELETED_TOPICS: Final = "/admin/delete_topics"
PRODUCER_IDS: Final = "/latest_producer_id_block"

#: Paths of documents, which are one entry each, by the kind in the file's name.
DOCUMENTS: Final = {
    "settings": "/config/settings",
    "acls": "/kafka-acl",
    "scram-users": "/config/users",
    "client-quotas": "/config/quotas",
    "groups": "/config/groups",
    "features": "/feature",
}


def topic_path(name: str) -> str:
    """Path of a topic's id and configs."""
    return f"{TOPICS}/{name}"


def deleted_topic_path(topic_id: UUID) -> str:
    """Path of a deleted topic, until all its replicas are removed."""
    return f"{DELETED_TOPICS}/{topic_id}"


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One topic: ``configs`` holds only what was set for it, by name with underscores, typed."""

    id: UUID
    partitions: int
    configs: JsonObject = field(default_factory=dict)

    @classmethod
    def parse(cls, value: JsonObject) -> TopicRecord:
        """Raises ValueError, KeyError or TypeError for what is no topic."""
        return cls(UUID(value["id"]), int(value["partitions"]), dict(value["configs"]))

    def to_document(self) -> JsonObject:
        """Return the record as it is stored."""
        return {"id": str(self.id), "partitions": self.partitions, "configs": self.configs}


# -- of a cluster --------------------------------------------------------------------------------------------

BROKERS: Final = "/brokers/ids"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
CLUSTER_ID: Final = "/cluster/id"
TOPIC_CONFIGS: Final = "/config/topics"
#: Ours: states of partitions, up to ``STATES_IN_ENTRY`` in each entry, whose name is a number.
PARTITION_STATES: Final = "/kohort/partitions"
STATES_IN_ENTRY: Final = 500

#: Ids of topics that are kept with their text: every state of a partition is stored with one.
_IDS: Final = 1 << 17

#: A partition by its topic's id and its number.
PartitionKey: TypeAlias = tuple[UUID, int]


def broker_path(node_id: int) -> str:
    """Path of a broker's registration, an ephemeral entry."""
    return f"{BROKERS}/{node_id}"


def topic_config_path(name: str) -> str:
    """Path of a topic's configs, where Apache Kafka has them."""
    return f"{TOPIC_CONFIGS}/{name}"


def states_path(number: int) -> str:
    """Path of one of the entries that share the states of partitions."""
    return f"{PARTITION_STATES}/{number}"


@lru_cache(_IDS)
def id_text(topic_id: UUID) -> str:
    """A topic id as Apache Kafka writes it."""
    return urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


@lru_cache(_IDS)
def parse_id(text: str) -> UUID:
    """Raises ValueError."""
    return UUID(bytes=urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def stored_broker(broker: BrokerRegistration, timestamp_ms: int) -> dict[str, object]:
    """The value of a broker's entry."""
    first = broker.endpoints[0] if broker.endpoints else Endpoint("", "", "", -1)
    value = {
        "version": 5,
        "host": first.host,
        "port": first.port,
        "jmx_port": -1,
        "timestamp": str(timestamp_ms),
        "endpoints": [f"{each.listener}://{each.host}:{each.port}" for each in broker.endpoints],
        "listener_security_protocol_map": {each.listener: each.protocol for each in broker.endpoints},
        "features": {},
    }
    if broker.rack is not None:
        value["rack"] = broker.rack
    if broker.version:
        value["software"] = broker.version
    return value | changing_of_broker(broker)


def changing_of_broker(broker: BrokerRegistration) -> dict[str, object]:
    """The parts of its entry that change while it is registered."""
    value: dict[str, object] = {}
    if broker.shutting_down:
        value["shutting_down"] = True
    for name, replicas in (("damaged", broker.damaged), ("lost", broker.lost)):
        if replicas:
            by_topic: dict[str, list[int]] = {}
            for topic_id, partition in sorted(replicas):
                by_topic.setdefault(id_text(topic_id), []).append(partition)
            value[name] = by_topic
    if broker.strays:
        value["strays"] = sorted(broker.strays)
    if broker.newer_epochs:
        epochs: dict[str, dict[str, int]] = {}
        for (topic_id, partition), epoch in sorted(broker.newer_epochs.items()):
            epochs.setdefault(id_text(topic_id), {})[str(partition)] = epoch
        value["newer_epochs"] = epochs
    return value


def parse_broker(node_id: int, value: JsonObject, epoch: int) -> BrokerRegistration:
    """Parse a broker's entry. Raises ValueError, KeyError or TypeError."""
    endpoints = []
    for address in value["endpoints"]:
        listener, _, place = address.partition("://")
        host, _, port = place.rpartition(":")
        protocol = value["listener_security_protocol_map"][listener]
        endpoints.append(Endpoint(listener, protocol, host, int(port)))
    return BrokerRegistration(
        node_id,
        value.get("rack"),
        epoch,
        tuple(endpoints),
        str(value.get("software", "")),
        bool(value.get("shutting_down")),
        _replica_set(value.get("damaged", {})),
        _replica_set(value.get("lost", {})),
        frozenset(map(str, value.get("strays", ()))),
        {
            (parse_id(topic), int(number)): int(epoch)
            for topic, numbers in value.get("newer_epochs", {}).items()
            for number, epoch in numbers.items()
        },
    )


def _replica_set(by_topic: Mapping[str, Sequence[int]]) -> frozenset[tuple[UUID, int]]:
    return frozenset((parse_id(topic), int(each)) for topic, numbers in by_topic.items() for each in numbers)


def stored_controller(node_id: int, timestamp_ms: int) -> dict[str, object]:
    """Return the content of ``/controller``, as Apache Kafka writes it."""
    return {"version": 2, "brokerid": node_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1}


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """A topic of a cluster: the replicas of each partition, and those that a reassignment adds and
    removes.
    """

    id: UUID
    replicas: tuple[tuple[int, ...], ...]
    adding: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    removing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, topic_id: UUID, partitions: Sequence[PartitionState]) -> TopicAssignment:
        """Take replicas, and those that come and go, from the states of a topic's partitions."""
        return cls(
            topic_id,
            tuple(each.replicas for each in partitions),
            {number: each.adding for number, each in enumerate(partitions) if each.adding},
            {number: each.removing for number, each in enumerate(partitions) if each.removing},
        )

    @classmethod
    def parse(cls, value: JsonObject) -> TopicAssignment:
        """Raises ValueError, KeyError or TypeError for what is no topic."""

        def lists(name: str) -> dict[int, tuple[int, ...]]:
            return {int(number): tuple(map(int, ids)) for number, ids in value.get(name, {}).items()}

        replicas = lists("partitions")
        return cls(
            parse_id(value["topic_id"]),
            tuple(replicas[number] for number in range(len(replicas))),
            lists("adding_replicas"),
            lists("removing_replicas"),
        )

    def to_document(self) -> JsonObject:
        """Return the assignment in Apache Kafka's format, version 3."""
        return {
            "version": 3,
            "topic_id": id_text(self.id),
            "partitions": {str(number): list(ids) for number, ids in enumerate(self.replicas)},
            "adding_replicas": {str(number): list(ids) for number, ids in self.adding.items()},
            "removing_replicas": {str(number): list(ids) for number, ids in self.removing.items()},
        }


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    """A topic that somebody has deleted: its name, and the brokers that may still have its files."""

    name: str
    brokers: frozenset[int]

    @classmethod
    def of(cls, topic: TopicImage) -> TopicDeletion:
        """Return the deletion of a topic: every broker with a replica has to remove it."""
        return cls(topic.name, frozenset(each for state in topic.partitions for each in state.replicas))

    @classmethod
    def parse(cls, value: JsonObject) -> TopicDeletion:
        """Raises ValueError, KeyError or TypeError for what is no deletion of a cluster's topic."""
        return cls(str(value["name"]), frozenset(map(int, value["brokers"])))

    def to_document(self) -> JsonObject:
        """Return the deletion as it is stored."""
        return {"version": 1, "name": self.name, "brokers": sorted(self.brokers)}

    def without(self, node_id: int) -> TopicDeletion:
        """The same after a broker has removed its replicas."""
        return TopicDeletion(self.name, self.brokers - {node_id})


def stored_cluster_id(cluster_id: str) -> dict[str, object]:
    """Return the content of ``/cluster/id``."""
    return {"version": "1", "id": cluster_id}


def stored_configs(configs: Mapping[str, str]) -> JsonObject:
    """The value of an entry below ``/config``: settings by Kafka's names, as text."""
    return {"version": 1, "config": dict(configs)}


def stored_states(states: Mapping[PartitionKey, PartitionState]) -> dict[str, object]:
    """The value of an entry of partition states; their replicas are in the topic's entry."""
    topics: dict[str, dict[str, object]] = {}
    for (topic_id, number), state in states.items():
        stored = {
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
            "partition_epoch": state.partition_epoch,
        }
        if state.recovering:
            stored["recovering"] = True
        topics.setdefault(id_text(topic_id), {})[str(number)] = stored
    return {"version": 1, "topics": topics}


def parse_states(value: JsonObject) -> dict[PartitionKey, PartitionState]:
    """The states of one entry, without replicas. Raises ValueError, KeyError or TypeError."""
    return {
        (parse_id(topic), int(number)): PartitionState(
            int(stored["leader"]),
            int(stored["leader_epoch"]),
            tuple(map(int, stored["isr"])),
            (),
            partition_epoch=int(stored["partition_epoch"]),
            recovering=bool(stored.get("recovering")),
        )
        for topic, partitions in value["topics"].items()
        for number, stored in partitions.items()
    }
