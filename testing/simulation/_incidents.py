"""What happens at the moments that the plan has drawn, and the tool that asks for this and that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...client.errors import BrokerConnectionError
from ...client.offsets import CommittedOffset
from ...protocol import ApiKey, RequestContext, TopicPartition
from . import _bodies
from ._network import Call, Connection
from ._plan import ASIDE, SIMPLE_GROUP, Incident

if TYPE_CHECKING:
    from ._world import World

_TIMEOUT_MS = 1_000


class Tool:
    """Somebody who is no member; it sends and does not care for the answers, the checks do."""

    name = "tool"
    context = RequestContext("tool")
    versions: dict[int, int] = {
        ApiKey.OFFSET_COMMIT: 9,
        ApiKey.OFFSET_FETCH: 9,
        ApiKey.DELETE_GROUPS: 2,
        ApiKey.OFFSET_DELETE: 0,
    }

    def __init__(self, world: World) -> None:
        self.connection = Connection(world)
        self._world = world

    def send(self, api_key: int, body: Any) -> None:
        self.connection.send(Call(self._world, self, self.connection, api_key, body), _TIMEOUT_MS)

    def on_answer(self, _call: Call, _body: Any) -> None:
        """All that is to be known of it was seen where it was answered."""

    def on_failure(self, _call: Call, _error: BrokerConnectionError) -> None:
        """It may have been carried out, or not."""


class Incidents:
    """Carries incidents out."""

    def __init__(self, world: World) -> None:
        self.tool = Tool(world)
        self._world = world
        self._simple_offset = 0

    def plan(self) -> None:
        """Put all of them in their places."""
        for incident in self._world.plan.incidents:
            self._world.heap.at(incident.at_ms, self._happen, incident)

    def _happen(self, incident: Incident) -> None:
        world, broker = self._world, self._world.broker
        world.say(f"{incident.name}: {incident.kind}")
        world.stats.incidents += 1
        match incident.kind:
            case "kill":
                broker.crash(power=False)
            case "power-loss":
                broker.crash(power=True)
            case "stop":
                broker.stop()
            case "move":
                broker.move()
            case "clock-jump":
                broker.clock_jump(incident.draw)
            case "torn-write":
                broker.torn_write(incident.draw)
            case "fsync-error":
                broker.fsync_error()
            case "disk-full":
                broker.disk_full(incident.draw, incident.length_ms)
            case "short-write":
                broker.short_write(incident.draw)
            case "compaction":
                broker.compact()
            case "checkpoint":
                broker.checkpoint()
            case "arrive":
                self._arrive(incident)
            case "simple-commit" | "read" | "delete-group" | "delete-offsets" | "delete-topic":
                self._use_tool(incident)
            case _:
                self._meet_member(incident)

    # --- members ------------------------------------------------------------------------------------------

    def _meet_member(self, incident: Incident) -> None:
        living = [m for m in self._world.members.values() if m.alive and m.error is None and not m.leaving]
        if not living:
            return
        member = living[incident.who % len(living)]
        world = self._world
        world.say(f"... {member.name}")
        at_ms = world.heap.now + incident.length_ms
        match incident.kind:
            case "member-crash":
                member.kill()
                if incident.draw < 0.6:
                    world.heap.at(at_ms, world.start_member, member.name)
            case "pause":
                member.freeze(at_ms)
            case "leave":
                member.do(member.leave)
                if incident.draw < 0.6:
                    world.heap.at(at_ms, world.start_member, member.name)
            case "poll-stop":
                member.do(member.stop_polling, at_ms)
            case "rejoin":
                member.do(member.rejoin)
            case "resubscribe":
                topics = world.plan.groups[member.plan.group].topics
                member.do(member.subscribe, topics[:1], topics, at_ms)
            case _:
                raise NotImplementedError(f"nobody carries out {incident.kind!r}")

    def _arrive(self, incident: Incident) -> None:
        gone = [name for name, member in self._world.members.items() if not member.alive]
        if gone:
            self._world.start_member(gone[incident.who % len(gone)])

    # --- tools --------------------------------------------------------------------------------------------

    def _use_tool(self, incident: Incident) -> None:
        world, tool = self._world, self.tool
        groups = [*world.plan.groups, SIMPLE_GROUP]
        group = groups[incident.who % len(groups)]
        match incident.kind:
            case "simple-commit":
                self._simple_offset += 1
                offset = CommittedOffset(self._simple_offset, -1, "by hand")
                commit = _bodies.commit(SIMPLE_GROUP, {TopicPartition(ASIDE, 0): offset})
                tool.send(ApiKey.OFFSET_COMMIT, commit)
            case "read":
                tool.send(ApiKey.OFFSET_FETCH, _bodies.fetch(group, None))
            case "delete-group":
                tool.send(ApiKey.DELETE_GROUPS, _bodies.DeleteGroups([group]))
            case "delete-offsets":
                topic = _bodies.DeleteTopic(ASIDE, [_bodies.DeletePartition(0)])
                tool.send(ApiKey.OFFSET_DELETE, _bodies.OffsetDelete(SIMPLE_GROUP, [topic]))
            case _:
                for name in groups:
                    world.checks.book.gone(name, ASIDE)
                world.broker.delete_topic(ASIDE)
