"""Somebody asks the controller for other leaders and other replicas."""

from __future__ import annotations

from ....cluster import PartitionState
from ....protocol import KafkaError, TopicPartition
from ..brokers._process import BrokerProcess
from ..brokers._world import AnyWorld
from ..engine._plan import Incident


class ControllerRequestFaults:
    """Carries out ``move-leader``, ``leader-unheard`` and ``reassign`` with a partition of one of
    ``topics``.
    """

    def __init__(self, world: AnyWorld, topics: tuple[str, ...]) -> None:
        self._world = world
        self._topics = topics

    def meet(self, incident: Incident) -> bool:
        """Carry out an incident; return False if it is another one."""
        if incident.kind == "move-leader":
            self._move_leader(incident)
        elif incident.kind == "leader-unheard":
            self._replace_leader(incident)
        elif incident.kind == "reassign":
            self._reassign(incident)
        else:
            return False
        return True

    def _move_leader(self, incident: Incident) -> None:
        """Ask the controller to reorder a partition's replicas."""
        found = self._partition_of(incident)
        if found is not None:
            broker, key, state = found
            replicas = list(state.replicas)
            self._world.rng.shuffle(replicas)
            broker.do(self._move(broker, key, replicas, elects=True))

    def _replace_leader(self, incident: Incident) -> None:
        """Let another replica lead; who leads now learns of it late, and serves on."""
        found = self._partition_of(incident)
        if found is None:
            return
        broker, key, state = found
        leader = self._world.brokers.get(state.leader)
        if leader is not None and leader.session is not None:
            others = [each for each in state.replicas if each != state.leader]
            self._world.rng.shuffle(others)
            leader.session.hold(self._world.heap.now + incident.length_ms)
            broker.do(self._move(broker, key, [*others, state.leader], elects=True))

    def _reassign(self, incident: Incident) -> None:
        """Ask the controller to reassign a partition, or to cancel that."""
        found = self._partition_of(incident)
        if found is None:
            return
        broker, key, state = found
        world = self._world
        target: list[int] | None
        if (state.adding or state.removing) and incident.draw < 0.5:
            target = None
        elif len(state.replicas) < len(world.brokers):
            target = list(world.brokers)
        else:
            target = [each for each in state.replicas if each != world.met.number]
            if incident.who // 16 % 2:
                # the broker gets it back later
                world.heap.at(world.heap.now + incident.length_ms, self._reassign, incident)
        broker.do(self._move(broker, key, target, elects=False))

    def _partition_of(
        self, incident: Incident
    ) -> tuple[BrokerProcess, TopicPartition, PartitionState] | None:
        """The controller, the partition of an incident, and its state there."""
        for broker in self._world.brokers.values():
            parts = broker.parts
            if parts is not None and parts.node.control.is_active:
                topic = parts.node.topics.image.topic(self._topics[incident.who % len(self._topics)])
                if topic is not None:
                    index = incident.who // 4 % len(topic.partitions)
                    return broker, TopicPartition(topic.name, index), topic.partitions[index]
        return None

    async def _move(
        self, broker: BrokerProcess, key: TopicPartition, replicas: list[int] | None, *, elects: bool
    ) -> None:
        assert broker.parts is not None
        control = broker.parts.node.control
        self._world.say(f"{key} is to have replicas {replicas}")
        try:
            await control.reassign({key: replicas})
            if elects:
                await control.elect([key], unclean=False)
        except KafkaError as error:
            self._world.say(f"{key} was not moved: {error}")
