"""What happens to processes, topics and brokers at the moments that the plan has drawn."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from ....coordinator.replies import NO_TOPIC_ID, join_failed
from ....protocol import ApiKey, ErrorCode, TopicPartition
from ....protocol.messages.heartbeat import HeartbeatResponse
from ....protocol.messages.leave_group import LeaveGroupResponse
from ....protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ....protocol.messages.sync_group import SyncGroupResponse
from .._incidents import Incidents
from .._network import Call
from .._plan import Incident
from ._nodes import COORDINATOR
from ._process import Process

if TYPE_CHECKING:
    from ._world import ServiceWorld

#: After so long a deleted topic is there again.
_REMADE_MS: Final = 300
#: OffsetCommits are refused for so long at most, in most cases.
_REFUSED_MS: Final = 800
#: So many that no consumer takes all of them apart at once.
_BIG_BATCHES: Final = 10
#: What an OffsetCommit is refused with for a while.
_PASSING: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
)


class ServiceIncidents(Incidents):
    """Carries incidents out."""

    def __init__(self, world: ServiceWorld) -> None:
        super().__init__(world)
        self._of = world
        self.refusing: ErrorCode | None = None
        self._happens: dict[str, Callable[[Incident], None]] = {
            "process-kill": self._kill_process,
            "process-pause": self._pause_process,
            "process-stop": self._stop_process,
            "refuse-commits": self._refuse_commits,
            "node-down": self._node_down,
            "leaderless": self._leaderless,
            "new-leader": self._new_leader,
            "cut": self._cut,
            "delete-topic": self._delete_topic,
            "remake-topic": self._remake_topic,
            "grow-topic": self._grow_topic,
            "lose-rights": self._lose_rights,
            "lose-group-rights": self._lose_group_rights,
            "hang": self._hang,
            "hang-big": self._hang,
            "flood": self._flood,
        }

    def _meet_member(self, incident: Incident) -> None:
        self._of.disturbed()
        self._happens[incident.kind](incident)

    def _use_tool(self, incident: Incident) -> None:
        # the topic that is deleted is one that services read
        self._meet_member(incident)

    def _later(self, incident: Incident, action: Callable[[], None]) -> None:
        self._of.until_healed(incident.length_ms, action)

    # --- processes ----------------------------------------------------------------------------------------

    def _process(self, incident: Incident) -> Process | None:
        living = [process for process in self._of.processes.values() if process.alive]
        if not living:
            return None
        process = living[incident.who % len(living)]
        self._of.say(f"... {process.name}")
        return process

    def _kill_process(self, incident: Incident) -> None:
        if (process := self._process(incident)) is not None:
            process.kill()
            process.ended = True
            self._of.start_later(process.plan, incident.length_ms)

    def _pause_process(self, incident: Incident) -> None:
        if (process := self._process(incident)) is not None:
            process.freeze(self._of.heap.now + incident.length_ms)

    def _stop_process(self, incident: Incident) -> None:
        if (process := self._process(incident)) is not None:
            self._of.stop(process, restart_ms=incident.length_ms)

    def _arrive(self, incident: Incident) -> None:
        self._of.disturbed()
        self._of.arrive(static=incident.draw < 0.2)

    # --- topics -------------------------------------------------------------------------------------------

    def _partition(self, incident: Incident) -> TopicPartition | None:
        found = [p for topic in self._read_topics() for p in self._of.topics.topics[topic].partitions()]
        if not found:
            return None
        chosen = found[incident.who % len(found)]
        self._of.say(f"... {chosen.topic}-{chosen.partition}")
        return chosen

    def _read_topics(self) -> list[str]:
        return [topic for topic in self._of.plan.topics if topic in self._of.topics.topics]

    def _topic(self, incident: Incident) -> str | None:
        found = self._read_topics()
        return found[incident.who % len(found)] if found else None

    def _leaderless(self, incident: Incident) -> None:
        world = self._of
        if (partition := self._partition(incident)) is None or (log := world.topics.log(partition)) is None:
            return
        log.leader = -1
        world.topics.changed()

        def lead_again() -> None:
            if world.topics.log(partition) is log and log.leader < 0:
                log.elected(world.topics.leader_of(partition.partition), world.heap.now)

        self._later(incident, lead_again)

    def _new_leader(self, incident: Incident) -> None:
        world = self._of
        if (partition := self._partition(incident)) is not None:
            log = world.topics.log(partition)
            if log is not None and log.leader >= 0:
                log.elected((log.leader + 1) % len(world.nodes), world.heap.now)
                world.topics.changed()

    def _cut(self, incident: Incident) -> None:
        world = self._of
        if (partition := self._partition(incident)) is None:
            return
        log = world.topics.log(partition)
        if log is None or log.leader < 0 or not log.end:
            return
        log.cut(
            int(log.end * (0.4 + 0.6 * incident.draw)), (log.leader + 1) % len(world.nodes), world.heap.now
        )
        world.ledger.cut(partition, log.end)
        world.say(f"... {partition.topic}-{partition.partition} ends at {log.end} now")
        # others follow at once, where those were
        world.ledger.produce(partition, log, world.rng.randint(1, 12))
        world.topics.changed()

    def _delete(self, incident: Incident) -> str | None:
        if (topic := self._topic(incident)) is not None:
            self._of.say(f"... {topic}")
            self._of.delete_topic(topic)
        return topic

    def _delete_topic(self, incident: Incident) -> None:
        if (topic := self._delete(incident)) is not None:
            self._later(incident, lambda: self._of.make_topic(topic))

    def _remake_topic(self, incident: Incident) -> None:
        if (topic := self._delete(incident)) is not None:
            self._of.until_healed(_REMADE_MS, lambda: self._of.make_topic(topic))

    def _grow_topic(self, incident: Incident) -> None:
        if (topic := self._topic(incident)) is not None:
            self._of.say(f"... {topic}")
            self._of.topics.grow(topic, self._of.heap.now)

    def _lose_rights(self, incident: Incident) -> None:
        world = self._of
        if (name := self._topic(incident)) is None:
            return
        topic = world.topics.topics[name]
        topic.readable = False
        world.topics.changed()

        def allow() -> None:
            topic.readable, topic.readable_since_ms = True, world.heap.now

        self._later(incident, allow)

    def _hang(self, incident: Incident) -> None:
        world = self._of
        if (partition := self._partition(incident)) is not None:
            log = world.topics.log(partition)
            assert log is not None
            world.ledger.produce(partition, log, 1, hangs=True)
            # what is done behind it
            world.ledger.produce(partition, log, 8)
            for _ in range(_BIG_BATCHES if incident.kind == "hang-big" else 0):
                world.ledger.produce(partition, log, 1, big=True)
            if incident.draw > 0.6:
                world.ledger.flood(partition, log)
            world.topics.changed()

    def _flood(self, incident: Incident) -> None:
        world = self._of
        if (partition := self._partition(incident)) is not None:
            log = world.topics.log(partition)
            assert log is not None
            world.ledger.flood(partition, log)
            world.topics.changed()

    # --- brokers ------------------------------------------------------------------------------------------

    def _node_down(self, incident: Incident) -> None:
        world = self._of
        node = world.nodes[COORDINATOR + 1]
        node.down = True
        for process in world.processes.values():
            if process.alive:
                process.connection_lost(node)

        def up() -> None:
            node.down = False

        self._later(incident, up)

    def _refuse_commits(self, incident: Incident) -> None:
        self.refusing = _PASSING[incident.who % len(_PASSING)]
        # mostly for so long that what is tried again meets what was done meanwhile
        short_ms = int(incident.draw * _REFUSED_MS)
        self._of.until_healed(short_ms if incident.draw < 0.8 else incident.length_ms, self._take_commits)

    def _take_commits(self) -> None:
        self.refusing = None

    def _lose_group_rights(self, incident: Incident) -> None:
        world = self._of
        world.group_allowed = False

        def allow() -> None:
            world.group_allowed = True

        self._later(incident, allow)

    def group_refusal(self, call: Call) -> Any | None:
        """What a request about the group is answered without the coordinator having seen it."""
        if not self._of.group_allowed:
            return _refused(call, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if self.refusing is not None and call.api_key == ApiKey.OFFSET_COMMIT:
            return _refused(call, self.refusing)
        return None


def _refused(call: Call, code: ErrorCode) -> Any:
    """The answer of an error, as a broker gives it before its coordinator has a look."""
    body = call.body
    match call.api_key:
        case ApiKey.OFFSET_COMMIT:
            topics = []
            for topic in body.topics:
                rows = [OffsetCommitResponsePartition(row.partition_index, code) for row in topic.partitions]
                topics.append(OffsetCommitResponseTopic(topic.name, NO_TOPIC_ID, rows))
            return OffsetCommitResponse(0, topics)
        case ApiKey.OFFSET_FETCH:
            row = SimpleNamespace(group_id=body.groups[0].group_id, error_code=code, topics=[])
            return SimpleNamespace(groups=[row])
        case ApiKey.JOIN_GROUP:
            return join_failed(call.version, code, body.member_id)
        case ApiKey.SYNC_GROUP:
            return SyncGroupResponse(0, code)
        case ApiKey.HEARTBEAT:
            return HeartbeatResponse(0, code)
        case _:
            return LeaveGroupResponse(0, code)
