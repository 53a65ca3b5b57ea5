"""The base class of assignors, and the types of its arguments.

An assignor is a pure, synchronous function from topics and members to an assignment. It runs in the group's
leader, or in the coordinator (KIP-848). It may keep state between rebalances in its instance: each consumer
has an instance of its own, and the coordinator creates a new one for each assignment.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import attrgetter

from ..protocol import Subscription, TopicPartition

#: Partitions of each member, by member id; every member of the group has an entry.
GroupAssignment = dict[str, list[TopicPartition]]


#: Member id that a coordinator gives to a dynamic member: client id, "-", UUID.
_CLIENT_AND_UUID = re.compile(r"(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL)


class RebalanceProtocol(IntEnum):
    """How partitions change owners in a rebalance (KIP-429).

    EAGER: every member gives up all its partitions before it joins. COOPERATIVE: members keep their
    partitions while they join, so an assignment must not give a partition to one member while another still
    claims it. A consumer uses the highest protocol that all its assignors support.
    """

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """Partitions of one topic, from the leader's metadata.

    ``partition_count``: partitions are numbered from 0 to ``partition_count - 1``. ``racks``: for each
    partition the racks of all its replicas, offline ones included; empty if the racks are not known.
    Raises ValueError for a negative count, and for a number of racks other than the count.
    """

    partition_count: int
    racks: tuple[frozenset[str], ...] = ()

    def __post_init__(self) -> None:
        if self.partition_count < 0:
            raise ValueError(f"partition_count is {self.partition_count}: give 0 or more")
        if self.racks and len(self.racks) != self.partition_count:
            raise ValueError(
                f"racks of {len(self.racks)} partitions for a topic of {self.partition_count}: "
                "give one set for each partition, or none at all"
            )


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the group, as the group's leader or coordinator knows it.

    ``instance_id`` is set for static members (KIP-345), ``known_client_id`` only if the coordinator assigns.
    """

    member_id: str
    subscription: Subscription
    instance_id: str | None = None
    known_client_id: str | None = None

    @property
    def topics(self) -> tuple[str, ...]:
        """Subscribed topics as the member sent them: in any order, perhaps repeated, perhaps nonexistent."""
        return self.subscription.topics

    @property
    def rack(self) -> str | None:
        """Rack that the member gave (``client.rack``)."""
        return self.subscription.rack

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """Partitions that the member says it owns: some may not exist, or be claimed by other members too."""
        return self.subscription.owned

    @property
    def generation(self) -> int:
        """Generation in which the member was assigned ``owned``; -1 if unknown."""
        return self.subscription.generation

    @property
    def user_data(self) -> bytes | None:
        """Bytes that the member's assignor sent, which may be another client's assignor of the same name."""
        return self.subscription.user_data

    @property
    def client_id(self) -> str | None:
        """The client id. A leader derives it from the ids of dynamic members; for static ones it is None."""
        if self.known_client_id is not None:
            return self.known_client_id
        found = None if self.instance_id is not None else _CLIENT_AND_UUID.fullmatch(self.member_id)
        return None if found is None else found[1]


class Assignor(ABC):
    """Base class of assignors. A subclass sets ``name`` and implements :meth:`assign`; all else has defaults.

    ``name`` goes over the wire: a group uses an assignor that all its members know by that name. So change
    the name when the assignments change. To be loaded by name, the class must be constructible without
    arguments; otherwise pass an instance.
    """

    name: str
    #: Version of the class, shown by `kohort assignors list`. It does not go over the wire.
    version: int = 0
    rebalance_protocols: frozenset[RebalanceProtocol] = frozenset({RebalanceProtocol.EAGER})

    @abstractmethod
    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        """Return the partitions of each member, by member id.

        ``topics`` has the topics that exist, by name; skip other topics that members subscribe to.
        ``members`` are by member id. The result must have an entry for every member, and every partition of
        every subscribed topic exactly once, at a member that subscribes to it (COOPERATIVE: a partition may
        be left out while another member claims it). It must depend on nothing but the arguments, and not on
        the order of either mapping. Do not change the arguments. If this raises, or the result breaks these
        rules, another assignor is used (see docs/assignors.md).
        """

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return bytes that this member sends to the leader with its subscription to ``topics``, or None."""
        del topics
        return None

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:  # noqa: B027
        """Called in every member with its assignment, before the next :meth:`user_data`."""


_MEMBER_ID, _INSTANCE_ID = attrgetter("member_id"), attrgetter("instance_id")


def in_member_order(members: Iterable[Member]) -> list[Member]:
    """Sort static members by instance id, then dynamic ones by member id: Kafka's order (``MemberInfo``).

    Text is compared by UTF-16 units, as in Java (``c10`` comes before ``c2``).
    """
    found = list(members)
    if set(map(_INSTANCE_ID, found)) == {None} and "".join(map(_MEMBER_ID, found)).isascii():
        return sorted(found, key=_MEMBER_ID)  # the same order, without a Python call for each member
    return sorted(found, key=lambda member: member_key(member.member_id, member.instance_id))


def member_key(member_id: str, instance_id: str | None) -> tuple[bool, bytes, bytes]:
    """Sort key of ``in_member_order``."""
    key = _utf16_key(member_id)
    return (True, key, key) if instance_id is None else (False, _utf16_key(instance_id), key)


def _utf16_key(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
