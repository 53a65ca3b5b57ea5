"""Incidents of processes, topics and nodes, carried out when the plan says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ....protocol import ErrorCode, TopicPartition
from ..engine._plan import Incident
from ._nodes import COORDINATOR
from ._process import ServiceProcess
from ._topics import SimulatedLog
from ._world import ServiceWorld

#: Time after which a deleted topic is recreated.
_REMADE_MS: Final = 300
#: Longest time for which OffsetCommits are refused, in most cases.
_REFUSED_MS: Final = 800
#: More records than a consumer decodes at once.
_BIG_BATCHES: Final = 10
#: Errors with which OffsetCommits are refused for a while.
_PASSING: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
)


class ServiceIncidents:
    """Carries out the incidents of a schedule of services."""

    def __init__(self, world: ServiceWorld) -> None:
        self._world = world
        world.happen = self._happen

    def _happen(self, incident: Incident) -> None:
        self._world.limits.on_disturbed()
        kind = "hang" if incident.kind == "hang-big" else incident.kind
        getattr(self, f"_{kind.replace('-', '_')}")(incident)

    def _later(self, incident: Incident, action: Callable[[], None]) -> None:
        self._world.until_healed(incident.length_ms, action)

    # --- processes ----------------------------------------------------------------------------------------

    def _process(self, incident: Incident) -> ServiceProcess | None:
        living = [process for process in self._world.processes.values() if process.alive]
        if not living:
            return None
        process = living[incident.who % len(living)]
        self._world.say(f"... {process.name}")
        return process

    def _process_kill(self, incident: Incident) -> None:
        if (process := self._process(incident)) is not None:
            process.kill()
            process.ended = True
            self._world.start_later(process.plan, incident.length_ms)

    def _process_pause(self, incident: Incident) -> None:
        if (process := self._process(incident)) is not None:
            # what waits for the end of a pause does so when the faults are over, too
            until_ms = self._world.heap.now + incident.length_ms
            process.freeze(min(until_ms, self._world.plan.faults_ms))

    def _process_stop(self, incident: Incident) -> None:
        if (process := self._process(incident)) is not None:
            self._world.stop(process, restart_ms=incident.length_ms)

    def _arrive(self, incident: Incident) -> None:
        self._world.arrive(static=incident.draw < 0.2)

    # --- topics -------------------------------------------------------------------------------------------

    def _partition(self, incident: Incident) -> tuple[TopicPartition, SimulatedLog] | None:
        topics = self._world.topics.topics
        found = [
            (p, topics[t].logs[p.partition]) for t in self._read_topics() for p in topics[t].partitions()
        ]
        if not found:
            return None
        chosen = found[incident.who % len(found)]
        self._world.say(f"... {chosen[0].topic}-{chosen[0].partition}")
        return chosen

    def _read_topics(self) -> list[str]:
        return [topic for topic in self._world.plan.topics if topic in self._world.topics.topics]

    def _topic(self, incident: Incident) -> str | None:
        found = self._read_topics()
        return found[incident.who % len(found)] if found else None

    def _leaderless(self, incident: Incident) -> None:
        world = self._world
        if (found := self._partition(incident)) is None:
            return
        partition, log = found
        log.leader = -1
        world.topics.changed()

        def lead_again() -> None:
            if world.topics.log(partition) is log and log.leader < 0:
                log.on_elected(world.topics.leader_of(partition.partition), world.heap.now)

        self._later(incident, lead_again)

    def _new_leader(self, incident: Incident) -> None:
        world = self._world
        if (found := self._partition(incident)) is not None and (log := found[1]).leader >= 0:
            log.on_elected((log.leader + 1) % len(world.cluster.nodes), world.heap.now)
            world.topics.changed()

    def _cut(self, incident: Incident) -> None:
        world = self._world
        if (found := self._partition(incident)) is None:
            return
        partition, log = found
        if log.leader < 0 or not log.end:
            return
        offset = int(log.end * (0.4 + 0.6 * incident.draw))
        log.cut(offset, (log.leader + 1) % len(world.cluster.nodes), world.heap.now)
        world.ledger.cut(partition, log.end)
        world.say(f"... {partition.topic}-{partition.partition} ends at {log.end} now")
        # others follow at once, where those were
        world.ledger.produce(partition, log, world.rng.randint(1, 12))
        world.topics.changed()

    def _delete(self, incident: Incident) -> str | None:
        if (topic := self._topic(incident)) is not None:
            self._world.say(f"... {topic}")
            self._world.delete_topic(topic)
        return topic

    def _delete_topic(self, incident: Incident) -> None:
        if (topic := self._delete(incident)) is not None:
            self._later(incident, lambda: self._world.make_topic(topic))

    def _remake_topic(self, incident: Incident) -> None:
        if (topic := self._delete(incident)) is not None:
            self._world.until_healed(_REMADE_MS, lambda: self._world.make_topic(topic))

    def _grow_topic(self, incident: Incident) -> None:
        if (topic := self._topic(incident)) is not None:
            self._world.say(f"... {topic}")
            self._world.topics.grow(topic, self._world.heap.now)

    def _lose_rights(self, incident: Incident) -> None:
        world = self._world
        if (name := self._topic(incident)) is None:
            return
        topic = world.topics.topics[name]
        topic.readable = False
        world.topics.changed()

        def allow() -> None:
            topic.readable, topic.readable_since_ms = True, world.heap.now

        self._later(incident, allow)

    def _hang(self, incident: Incident) -> None:
        world = self._world
        if (found := self._partition(incident)) is not None:
            world.ledger.produce(*found, 1, hangs=True)
            # what is done after it
            world.ledger.produce(*found, 8)
            for _ in range(_BIG_BATCHES if incident.kind == "hang-big" else 0):
                world.ledger.produce(*found, 1, big=True)
            if incident.draw > 0.6:
                world.ledger.flood(*found)
            world.topics.changed()

    def _flood(self, incident: Incident) -> None:
        if (found := self._partition(incident)) is not None:
            self._world.ledger.flood(*found)
            self._world.topics.changed()

    # --- ZooKeeper ----------------------------------------------------------------------------------------

    def _zookeeper_cut(self, incident: Incident) -> None:
        process = self._process(incident)
        if process is None or not process.sessions:
            return
        session = process.sessions[-1]
        # it breaks at once, or nothing comes any more
        session.silent = True
        if incident.draw < 0.5:
            session.on_broken()
        self._later(incident, session.mend)

    def _zookeeper_away(self, incident: Incident) -> None:
        zookeeper = self._world.zookeeper
        assert zookeeper is not None, "the plan has a group without a coordinator"
        zookeeper.away = True
        for session in list(zookeeper.sessions.values()):
            session.on_broken()
        self._later(incident, lambda: setattr(zookeeper, "away", False))

    def _zookeeper_expires(self, incident: Incident) -> None:
        assert self._world.zookeeper is not None, "the plan has a group without a coordinator"
        self._world.zookeeper.interfere(incident.who, end=True)

    def _zookeeper_removed(self, incident: Incident) -> None:
        assert self._world.zookeeper is not None, "the plan has a group without a coordinator"
        self._world.zookeeper.interfere(incident.who, end=False)

    # --- brokers ------------------------------------------------------------------------------------------

    def _node_down(self, incident: Incident) -> None:
        world = self._world
        number = COORDINATOR + 1
        node = world.cluster.nodes[number]
        node.down = True
        for process in world.processes.values():
            world.on_lost(process, number)
        self._later(incident, lambda: setattr(node, "down", False))

    def _refuse_commits(self, incident: Incident) -> None:
        cluster = self._world.cluster
        cluster.commit_error = _PASSING[incident.who % len(_PASSING)]
        # mostly long enough for retries to meet changes made meanwhile
        length_ms = int(incident.draw * _REFUSED_MS) if incident.draw < 0.8 else incident.length_ms
        self._world.until_healed(length_ms, lambda: setattr(cluster, "commit_error", None))

    def _lose_group_rights(self, incident: Incident) -> None:
        cluster = self._world.cluster
        cluster.group_allowed = False
        self._later(incident, lambda: setattr(cluster, "group_allowed", True))
