"""kohort's assignors, and your own, in consumers of kafka-python and of aiokafka.

    KafkaConsumer("orders", partition_assignment_strategy=[for_kafka_python("cooperative-sticky")])
    AIOKafkaConsumer("orders", partition_assignment_strategy=[for_aiokafka("sticky")])

They use the names and bytes of kohort's own consumers and of Java's, so all of these can share a group.
Assignors keep state, so call the function for each consumer. The racks of partitions are not known in these
clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from ..protocol import Subscription, TopicPartition, encode_subscription
from .base import Assignor, Member, RebalanceProtocol, TopicInfo
from .registry import AssignorError, load_assignor
from .user_data import NO_GENERATION
from .validation import validate_assignment

if TYPE_CHECKING:
    from aiokafka.cluster import ClusterMetadata
    from aiokafka.coordinator.protocol import (
        ConsumerProtocolMemberAssignment,
        ConsumerProtocolMemberMetadata,
    )
    from kafka.cluster import ClusterMetadata as KafkaPythonMetadata
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
    from kafka.protocol.consumer import JoinGroupResponse
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment


def for_kafka_python(
    spec: str | type[Assignor] | Assignor, *, rack: str | None = None
) -> AbstractPartitionAssignor:
    """Return an assignor for ``kafka.KafkaConsumer``. ``rack``: the rack of this consumer.

    ``spec`` as for :func:`load_assignor`. Raises AssignorError.
    """
    return _kafka_python_class()(load_assignor(spec), rack)


def for_aiokafka(spec: str | type[Assignor] | Assignor) -> Any:
    """Return an assignor for ``aiokafka.AIOKafkaConsumer``.

    ``spec`` as for :func:`load_assignor`. Raises AssignorError, also for a cooperative assignor: aiokafka
    does not tell its assignors what members own, so a member could be given a partition that another one
    still reads.
    """
    assignor = load_assignor(spec)
    if RebalanceProtocol.COOPERATIVE in assignor.rebalance_protocols:
        raise AssignorError(
            f"{assignor.name}: aiokafka does not tell assignors what members own, which a cooperative one "
            "has to know; take one that is eager, such as 'sticky'"
        )
    return _OfAiokafka(assignor)


#: Partition numbers by topic, in the form that both clients take.
Shares = list[tuple[str, list[int]]]


class _OwnedPartition(Protocol):
    """A partition in either client's own type."""

    topic: str
    partition: int


class _State:
    """The assignor of one consumer, and the partitions that the consumer owns."""

    def __init__(self, assignor: Assignor, rack: str | None = None) -> None:
        self._assignor = assignor
        self._rack = rack
        self._owned: tuple[TopicPartition, ...] = ()
        self._generation = NO_GENERATION
        self.cooperative = RebalanceProtocol.COOPERATIVE in assignor.rebalance_protocols

    def metadata(self, topics: Iterable[str]) -> bytes:
        """Return the encoded subscription to send to the leader."""
        wanted = tuple(sorted(topics))
        owned, generation = (self._owned, self._generation) if self.cooperative else ((), NO_GENERATION)
        return encode_subscription(
            Subscription(wanted, self._assignor.user_data(wanted), owned, generation, self._rack)
        )

    def take_assignment(self, partitions: Iterable[_OwnedPartition], generation: int) -> None:
        """Take in this consumer's assignment."""
        self._owned = tuple(TopicPartition(one.topic, one.partition) for one in partitions)
        self._generation = generation
        self._assignor.on_assignment(self._owned, generation)

    def share_out(
        self, cluster: ClusterMetadata | KafkaPythonMetadata, members: Mapping[str, Member]
    ) -> dict[str, Shares]:
        """Return the partitions of each member. Raises AssignorError for an invalid assignment."""
        counts = {
            topic: len(cluster.partitions_for_topic(topic) or ())
            for topic in {topic for member in members.values() for topic in member.topics}
        }
        topics = {topic: TopicInfo(count) for topic, count in counts.items() if count}
        given = self._assignor.assign(MappingProxyType(topics), MappingProxyType(dict(members)))
        protocol = RebalanceProtocol.COOPERATIVE if self.cooperative else RebalanceProtocol.EAGER
        if problems := validate_assignment(topics, members, given, protocol):
            more = f"; and {len(problems) - 1} more problems" if len(problems) > 1 else ""
            raise AssignorError(f"{self._assignor.name}: {problems[0]}{more}")
        return {member_id: _by_topic(given.get(member_id, ())) for member_id in members}


def _by_topic(partitions: Iterable[TopicPartition]) -> Shares:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return list(found.items())


class _OfAiokafka:
    """Interface that aiokafka expects of an assignor."""

    def __init__(self, assignor: Assignor) -> None:
        self.name = assignor.name
        self._state = _State(assignor)

    def metadata(self, topics: Iterable[str]) -> bytes:
        return self._state.metadata(topics)

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        self._state.take_assignment(assignment.partitions(), NO_GENERATION)

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

        found = {
            member_id: Member(member_id, Subscription(tuple(said.subscription), said.user_data))
            for member_id, said in members.items()
        }
        given = self._state.share_out(cluster, found)
        return {name: ConsumerProtocolMemberAssignment(0, mine, b"") for name, mine in given.items()}


@cache
def _kafka_python_class() -> type[AbstractPartitionAssignor]:
    # kafka-python only takes instances of its own base class; importing it takes a quarter of a second
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
    from kafka.coordinator.assignors.abstract import RebalanceProtocol as Theirs
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

    class OfKafkaPython(AbstractPartitionAssignor):  # type: ignore[misc]  # kafka-python is not typed
        """Interface that kafka-python expects of an assignor."""

        name = ""

        def __init__(self, assignor: Assignor, rack: str | None) -> None:
            self.name = assignor.name
            # only one: the adapter does not learn which of several its consumer has chosen
            self._protocols = [Theirs(int(max(assignor.rebalance_protocols)))]
            self._state = _State(assignor, rack)

        def supported_protocols(self) -> list[Theirs]:
            return self._protocols

        def metadata(self, topics: Iterable[str]) -> bytes:
            return self._state.metadata(topics)

        def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
            self._state.take_assignment(assignment.partitions(), generation)

        def assign(
            self, cluster: KafkaPythonMetadata, members: Iterable[JoinGroupResponse.JoinGroupResponseMember]
        ) -> dict[str, ConsumerProtocolAssignment]:
            found = {each.member_id: _member_of(each) for each in members}
            given = self._state.share_out(cluster, found)
            return {name: ConsumerProtocolAssignment(0, mine, None) for name, mine in given.items()}

    return OfKafkaPython


def _member_of(row: JoinGroupResponse.JoinGroupResponseMember) -> Member:
    said = row.metadata
    owned = tuple(
        TopicPartition(topic.topic, number)
        for topic in getattr(said, "owned_partitions", None) or ()
        for number in topic.partitions
    )
    subscription = Subscription(
        tuple(said.topics),
        said.user_data,
        owned,
        getattr(said, "generation_id", NO_GENERATION),
        getattr(said, "rack_id", None),
    )
    return Member(row.member_id, subscription, getattr(row, "group_instance_id", None))
