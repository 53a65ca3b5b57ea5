"""A cluster whose brokers come and go at once; decisions are carried out on a memory home."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar
from uuid import UUID

from kohort.cluster import (
    BrokerRegistration,
    Change,
    ClusterImage,
    ClusterView,
    Create,
    Delete,
    PartitionState,
    Put,
    StoreEntry,
)
from kohort.cluster.controller import Decision, Rules, tidy_partitions
from kohort.cluster.controller.writes import Entries, steps_to_write
from kohort.cluster.layout import CLUSTER_ID, broker_path, states_path, stored_broker
from kohort.testing.memory_store import MemoryHome

T = TypeVar("T")
A = TypeVar("A")


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("it waits")


class Cluster:
    """Brokers, topics and the image of them. ``tidy`` lets partitions follow, as the controller does."""

    def __init__(self, *node_ids: int, racks: dict[int, str] | None = None) -> None:
        self.rules = Rules()
        self._racks = racks or {}
        self._store = MemoryHome().open()
        self._view = ClusterView(self._store)
        self._write(Create(CLUSTER_ID, {"version": "1", "id": "c"}))
        for node_id in node_ids:
            self.start(node_id)

    @property
    def image(self) -> ClusterImage:
        return self._view.image

    def entries(self) -> Entries:
        return self._view.entries()

    def stored(self, path: str) -> StoreEntry | None:
        return self._store.get(path)

    def start(self, node_id: int) -> None:
        value = stored_broker(BrokerRegistration(node_id, self._racks.get(node_id)), 0)
        self._write(Create(broker_path(node_id), value))
        self.tidy()

    def kill(self, node_id: int) -> None:
        self._write(Delete(broker_path(node_id)))
        self.tidy()

    def shut_down(self, node_id: int) -> None:
        broker = self.image.brokers[node_id]._replace(shutting_down=True)
        self._write(Put(broker_path(node_id), stored_broker(broker, 0)))
        self.tidy()

    def damage(self, node_id: int, *replicas: tuple[UUID, int]) -> None:
        broker = self.image.brokers[node_id]._replace(damaged=frozenset(replicas))
        self._write(Put(broker_path(node_id), stored_broker(broker, 0)))
        self.tidy()

    def lose(self, node_id: int, *replicas: tuple[UUID, int]) -> None:
        broker = self.image.brokers[node_id]._replace(lost=frozenset(replicas))
        self._write(Put(broker_path(node_id), stored_broker(broker, 0)))
        self.tidy()

    def report_epoch(self, node_id: int, replica: tuple[UUID, int], epoch: int) -> None:
        broker = self.image.brokers[node_id]._replace(newer_epochs={replica: epoch})
        self._write(Put(broker_path(node_id), stored_broker(broker, 0)))
        self.tidy()

    def lose_states(self) -> None:
        """As where they are removed while all brokers are away."""
        self._write(*(Delete(states_path(number)) for number in self.entries()))
        self._view = ClusterView(self._store)

    def do(self, decision: Decision[A]) -> A:
        """Carry a decision out; returns its answer. What is read afterwards is what was decided."""
        for step in steps_to_write(self.image, self._view.entries(), self.stored, decision):
            self._write(*step)
        for topic in decision.topics:
            found = self.image.topic(topic.name)
            assert found is not None
            assert (found.id, found.configs) == (topic.id, topic.configs)
            assert [plain(each) for each in found.partitions] == [plain(each) for each in topic.partitions]
        for topic in decision.deleted:
            assert self.image.topic_by_id(topic.id) is None
        return decision.answer

    def tidy(self) -> None:
        self.do(tidy_partitions(self.image, self.image.topics(), self.rules))
        assert tidy_partitions(self.image, self.image.topics(), self.rules).topics == [], "once is enough"

    def state(self, topic: str, partition: int = 0) -> PartitionState:
        found = self.image.topic(topic)
        assert found is not None
        return plain(found.partitions[partition])

    def states(self, topic: str) -> list[PartitionState]:
        found = self.image.topic(topic)
        return [] if found is None else [plain(each) for each in found.partitions]

    def _write(self, *changes: Change) -> None:
        at_once(self._store.commit(*changes))


def plain(state: PartitionState) -> PartitionState:
    """A state without what follows from the brokers."""
    return state._replace(offline=())
