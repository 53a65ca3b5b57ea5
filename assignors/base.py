"""The base class of assignors, and the types that it is given.

An assignor is a pure, synchronous function from topics and members to an assignment; it runs in the group's
leader, or in the coordinator (KIP-848). State that it keeps between rebalances belongs to its instance: two
consumers in one process have two instances, and the coordinator makes one for each time.
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


#: How coordinators make the id of a member that has no instance id.
_CLIENT_AND_UUID = re.compile(r"(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL)


class RebalanceProtocol(IntEnum):
    """Way of handing partitions over (KIP-429). The consumer takes the highest that all its assignors have.

    EAGER: everyone gives up everything before joining. COOPERATIVE: a member keeps what it owns while
    joining, so an assignment must not give a partition to one member while another still claims it.
    """

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic as the leader's metadata has it.

    ``partition_count``: partitions are numbered from 0 to ``partition_count - 1``. ``racks``: for each
    partition the racks of all its replicas, offline ones included; empty where racks are not known.
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
    """A member of the group as its leader, or its coordinator, sees it. ``instance_id`` is set for static
    members (KIP-345), ``known_client_id`` where the coordinator assigns.
    """

    member_id: str
    subscription: Subscription
    instance_id: str | None = None
    known_client_id: str | None = None

    @property
    def topics(self) -> tuple[str, ...]:
        """Subscribed topics as the member sent them: in any order, maybe twice, maybe unknown."""
        return self.subscription.topics

    @property
    def rack(self) -> str | None:
        return self.subscription.rack

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """Partitions that the member says it owns: some may be gone, or claimed by others."""
        return self.subscription.owned

    @property
    def generation(self) -> int:
        """The generation of ``owned``; -1 for none."""
        return self.subscription.generation

    @property
    def user_data(self) -> bytes | None:
        """Bytes from the member's assignor, or another client's assignor of the same name."""
        return self.subscription.user_data

    @property
    def client_id(self) -> str | None:
        """The client id; None where it cannot be known: a leader reads it off dynamic members' ids."""
        if self.known_client_id is not None:
            return self.known_client_id
        found = None if self.instance_id is not None else _CLIENT_AND_UUID.fullmatch(self.member_id)
        return None if found is None else found[1]


class Assignor(ABC):
    """Base of every assignor. Subclasses set ``name`` and write :meth:`assign`; the rest has defaults.

    ``name`` goes over the wire: a group settles on an assignor that all its members know by that name, so
    change the name when the answer changes. The class must be constructible without arguments to be found by
    name; an instance may be passed where it is not.
    """

    name: str
    #: Of the class, for people: `kohort assignors list` shows it. It does not go over the wire.
    version: int = 0
    rebalance_protocols: frozenset[RebalanceProtocol] = frozenset({RebalanceProtocol.EAGER})

    @abstractmethod
    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        """Return the partitions of each member.

        ``topics`` has the topics that exist; members may subscribe to others, which are skipped. The answer
        has an entry for every member, and every partition of every subscribed topic exactly once, at a
        member that subscribes to it (COOPERATIVE: a partition may be left out while another member claims
        it). It depends on the arguments alone, and not on the order of either mapping. Neither argument is
        changed.
        """

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """Bytes that this member sends to the leader with its subscription to ``topics``; None for none."""
        del topics
        return None

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:  # noqa: B027
        """Called at every member with its assignment, before the next :meth:`user_data`."""


_MEMBER_ID, _INSTANCE_ID = attrgetter("member_id"), attrgetter("instance_id")


def in_member_order(members: Iterable[Member]) -> list[Member]:
    """Static members by instance id, then dynamic ones by member id: Kafka's order for range and roundrobin.

    Text is compared by UTF-16 units, as Java does (``c10`` comes before ``c2``).
    """
    found = list(members)
    if set(map(_INSTANCE_ID, found)) == {None} and "".join(map(_MEMBER_ID, found)).isascii():
        return sorted(found, key=_MEMBER_ID)  # the same order, without code of Python's for each
    return sorted(found, key=lambda member: member_key(member.member_id, member.instance_id))


def member_key(member_id: str, instance_id: str | None) -> tuple[bool, bytes, bytes]:
    """Sort key of ``in_member_order``."""
    key = _utf16(member_id)
    return (True, key, key) if instance_id is None else (False, _utf16(instance_id), key)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
