"""Where the partitions of a share consumer are: names of their topics, leaders, and the brokers that gave the
records that are held, which may lead them no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from ...client.cluster import Cluster
from ...client.errors import ConsumerClosedError
from ...client.requests import partition_name
from ...client.waiting import Backoff, Signal
from ...protocol import ErrorCode, KafkaError, KohortError, TopicPartition
from ..events import BrokerUnavailable, Event, TopicMissing
from .records import PartitionId

_MISSING_TOPIC_MS = 1_000.0


@dataclass(slots=True, eq=False)
class PartitionPlaces:
    """Run ``watch_topics`` as a task; fire ``look_again`` when leaders may have changed. ``on_look`` is
    called when names and leaders may have become known.
    """

    cluster: Cluster
    backoff: Backoff
    max_age_ms: float
    _: KW_ONLY
    topics: Callable[[], frozenset[str]]
    assignment: Callable[[], frozenset[PartitionId]]
    report: Callable[[Event], None]
    on_look: Callable[[], None]
    names: dict[PartitionId, TopicPartition] = field(default_factory=dict)
    #: Where the records that are held were acquired.
    acquired_at: dict[PartitionId, int] = field(default_factory=dict)
    look_again: Signal = field(default_factory=Signal)
    _missing: frozenset[str] = frozenset()

    async def watch_topics(self) -> None:
        """Keep the metadata of the topics fresh; until cancelled."""
        failures = 0
        while True:
            topics, wanted = self.topics(), self.assignment()
            try:
                known = await self.cluster.metadata(topics)
                if ids := {place.topic_id for place in wanted} - {t.topic_id for t in known.topics.values()}:
                    known = await self.cluster.metadata_by_id(ids)
            except ConsumerClosedError:
                return
            except KohortError as error:
                self.report(BrokerUnavailable("asking for topics", error))
                await self.look_again.wait(self.backoff.delay_ms(failures))
                failures += 1
                continue
            failures = 0
            wanted = self.assignment()  # which may have changed meanwhile
            names = {topic.topic_id: name for name, topic in known.topics.items()}
            self.names |= {
                place: TopicPartition(names[place.topic_id], place.partition)
                for place in wanted
                if place.topic_id in names
            }
            missing = topics - known.topics.keys()
            for name in sorted(missing - self._missing):
                code = known.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                self.report(TopicMissing(name, KafkaError(code, f"topic {name!r}")))
            self._missing = missing
            self.on_look()
            soon = (
                missing or topics != self.topics() or any(self.leader_of(place) is None for place in wanted)
            )
            await self.look_again.wait(_MISSING_TOPIC_MS if soon else self.max_age_ms)

    def leader_of(self, place: PartitionId) -> int | None:
        """Node of the leader; None if it is not known, or the topic was deleted, perhaps remade."""
        name = self.names.get(place)
        if name is None or self.cluster.known_metadata.topic_id(name.topic) != place.topic_id:
            return None
        return self.cluster.leader(name)

    def node_of(self, place: PartitionId) -> int | None:
        """Node that has given records of a partition, or else its leader."""
        node = self.acquired_at.get(place)
        return self.leader_of(place) if node is None else node

    def all(self) -> set[PartitionId]:
        """Partitions that are assigned, or of which records are held."""
        return {*self.assignment(), *self.acquired_at}

    def at(self, node: int) -> list[PartitionId]:
        """Those of all that a broker has given records of, or else leads."""
        return [place for place in self.all() if self.node_of(place) == node]

    def show(self, place: PartitionId) -> str:
        """Return the partition as messages name it."""
        name = self.names.get(place)
        return str(place) if name is None else partition_name(name)
