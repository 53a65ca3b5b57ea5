"""The image of the cluster that a broker uses: brokers, topics and the states of their partitions.

An image is immutable; a change makes another one, which shares the unchanged parts, so that it costs the same
however many topics there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

from ..protocol import PreparedArray
from ..protocol.named_tuples import NamedTuple

K = TypeVar("K")
V = TypeVar("V")

#: The leader of a partition that has none.
NO_LEADER: Final = -1
#: The leader epoch of a partition whose log has not been opened since the start.
UNKNOWN_EPOCH: Final = -1

#: Topics that brokers write themselves.
INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

#: Parts of a map; a change copies only those that it touches.
_SHARDS: Final = 256


class PartitionState(NamedTuple):
    """State of a partition: node ids of the leader, the in-sync replicas and all replicas. ``offline`` are
    the replicas that cannot be used. Node ids of brokers.

    A reassignment is under way while ``adding`` or ``removing`` name replicas (KIP-455). ``partition_epoch``
    rises with each change of the state. ``recovering``: the leader was elected although it may lack records,
    and has not reported yet that it has recovered (KIP-704).
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    offline: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    partition_epoch: int = 0
    recovering: bool = False


class Endpoint(NamedTuple):
    """One listener of a broker: its name, security protocol, host and port."""

    listener: str
    protocol: str
    host: str
    port: int


class BrokerRegistration(NamedTuple):
    """A live broker. A single broker has no endpoints here: its address depends on the listener that a client
    uses. ``epoch`` is that of its registration: a broker that comes back has a higher one.
    """

    node_id: int
    rack: str | None = None
    epoch: int = -1
    endpoints: tuple[Endpoint, ...] = ()
    #: The version of its build; empty for one that does not tell.
    version: str = ""
    #: The broker is about to stop, and wants to lead nothing.
    shutting_down: bool = False
    #: Replicas that cannot be used, because their files are damaged or their disk fails.
    damaged: frozenset[tuple[UUID, int]] = frozenset()
    #: Those that count as in sync, and that its data folder, a new one, does not have.
    lost: frozenset[tuple[UUID, int]] = frozenset()
    #: Topics of coordinators that its disk has and the metadata do not.
    strays: frozenset[str] = frozenset()
    #: Leader epochs that its logs have and the metadata had not when it started: these are an older copy.
    newer_epochs: Mapping[tuple[UUID, int], int] = MappingProxyType({})

    def address(self, listener: str) -> tuple[str, int] | None:
        """Host and port that it advertises for a listener; None if it has no such listener."""
        found = (each for each in self.endpoints if each.listener == listener)
        return next(((each.host, each.port) for each in found), None)

    @property
    def unusable(self) -> frozenset[tuple[UUID, int]]:
        """Its replicas of which others are to lead."""
        return self.damaged | self.lost if self.lost else self.damaged


@dataclass(slots=True, eq=False, repr=False)
class TopicImage:
    """A topic. ``configs`` is what was set for it, ``partitions`` has the state of each by number.

    ``order`` is its place among all topics, by creation; the image that it is added to sets it.
    ``described`` caches its part of Metadata responses.
    """

    name: str
    id: UUID
    configs: Mapping[str, Any]
    partitions: Sequence[PartitionState]
    #: Whether clients are told that brokers write it themselves.
    internal: bool = field(init=False)
    order: int = field(default=-1, init=False)
    described: PreparedArray | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.partitions = tuple(self.partitions)
        self.internal = self.name in INTERNAL

    def __repr__(self) -> str:
        return f"TopicImage({self.name}, {len(self.partitions)} partitions)"

    def having(self, **changes: Any) -> TopicImage:
        """The topic with other ``configs`` or ``partitions``."""
        return replace(self, **changes)


#: A mapping that is never changed: the shard that holds a key is found by its hash.
_Shards: TypeAlias = tuple[dict[K, V], ...]

_EMPTY: Final[tuple[dict[Any, Any], ...]] = ({},) * _SHARDS


def _change_shards(shards: _Shards[K, V], there: Iterable[tuple[K, V]], gone: Iterable[K]) -> _Shards[K, V]:
    """Return another mapping, which shares the unchanged shards."""
    copies: dict[int, dict[K, V]] = {}

    def shard_of(key: K) -> dict[K, V]:
        number = hash(key) % _SHARDS
        if number not in copies:
            copies[number] = dict(shards[number])
        return copies[number]

    for key in gone:
        shard_of(key).pop(key, None)
    for key, value in there:
        shard_of(key)[key] = value
    made = list(shards)
    for number, copy in copies.items():
        made[number] = copy
    return tuple(made)


class ClusterImage:
    """The cluster: its id, its controller, its brokers by node id, and its topics. ``deletions`` has the ids
    of topics that were deleted, each with the brokers that may still have files of it.
    """

    __slots__ = (
        "_all",
        "_by_id",
        "_by_name",
        "_created",
        "brokers",
        "cluster_id",
        "controller_id",
        "deletions",
    )

    def __init__(
        self, cluster_id: str, controller_id: int, brokers: Mapping[int, BrokerRegistration]
    ) -> None:
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = brokers
        self.deletions: Mapping[UUID, frozenset[int]] = {}
        self._by_name: _Shards[str, TopicImage] = _EMPTY
        # by the id as an integer: the hash of a UUID is slow
        self._by_id: _Shards[int, TopicImage] = _EMPTY
        self._created = 0
        self._all: list[TopicImage] | None = None

    def __repr__(self) -> str:
        return f"ClusterImage({self.cluster_id}, {len(self.brokers)} brokers, {len(self.topics())} topics)"

    def topic(self, name: str) -> TopicImage | None:
        """Find a topic by its name."""
        return self._by_name[hash(name) % _SHARDS].get(name)

    def topic_by_id(self, topic_id: UUID | None) -> TopicImage | None:
        """The topic with this id; None if there is none. Requests without a topic id pass None."""
        if topic_id is None:
            return None
        number = topic_id.int
        return self._by_id[hash(number) % _SHARDS].get(number)

    def topics(self) -> Sequence[TopicImage]:
        """Every topic, the oldest first."""
        if self._all is None:
            every = chain.from_iterable(shard.values() for shard in self._by_name if shard)
            self._all = sorted(every, key=attrgetter("order"))
        return self._all

    def with_changes(
        self,
        topics: Iterable[TopicImage] = (),
        *,
        deleted: Iterable[TopicImage] = (),
        brokers: Mapping[int, BrokerRegistration] | None = None,
        controller_id: int | None = None,
    ) -> ClusterImage:
        """The image with these topics added, or replaced by name, and without the deleted ones; with other
        brokers, or another controller.
        """
        image = ClusterImage(
            self.cluster_id,
            self.controller_id if controller_id is None else controller_id,
            self.brokers if brokers is None else brokers,
        )
        image.deletions = self.deletions
        image._created = self._created
        topics, deleted = list(topics), list(deleted)
        for each in topics:
            before = self.topic(each.name)
            if before is not None:
                each.order = before.order
            else:
                each.order = image._created
                image._created += 1
        image._by_name = _change_shards(
            self._by_name, [(each.name, each) for each in topics], [each.name for each in deleted]
        )
        image._by_id = _change_shards(
            self._by_id, [(each.id.int, each) for each in topics], [each.id.int for each in deleted]
        )
        return image
