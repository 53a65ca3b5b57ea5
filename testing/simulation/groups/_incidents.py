"""Incidents of members and tools, carried out when the plan says."""

from __future__ import annotations

from ....client.offsets import CommittedOffset
from ....protocol import TopicPartition
from ....protocol.messages.delete_groups import DeleteGroupsRequest
from ....protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ..engine._plan import Incident
from ._offsets import commit_request, fetch_request
from ._plan import ASIDE, SIMPLE_GROUP
from ._world import MemberWorld


class Incidents:
    """Carries out the incidents of a schedule of light members."""

    def __init__(self, world: MemberWorld) -> None:
        self._world = world
        self._simple_offset = 0
        world.happen = self._happen

    def _happen(self, incident: Incident) -> None:
        if incident.kind == "arrive":
            self._arrive(incident)
        elif incident.kind in ("grow-topic", "remake-topic"):
            self._change_topic(incident)
        elif incident.kind in ("simple-commit", "read", "delete-group", "delete-offsets", "delete-topic"):
            self._use_tool(incident)
        else:
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
                member.frozen_until = at_ms
            case "switch":
                if incident.draw < 0.5:
                    member.kill()
                else:
                    member.do(member.leave)
                member.plan.consumer = not member.plan.consumer
                world.heap.at(at_ms, world.start_member, member.name)
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

    # --- topics -------------------------------------------------------------------------------------------

    def _change_topic(self, incident: Incident) -> None:
        world, topics = self._world, sorted(self._world.consumers.topics)
        if not topics:
            return
        name = topics[incident.who % len(topics)]
        count = world.consumers.topics[name].partition_count
        if incident.kind == "grow-topic":
            world.set_topic(name, count + 1)
        else:
            world.heap.at(world.heap.now + incident.length_ms, world.set_topic, name, count)
            world.set_topic(name, 0)

    # --- tools --------------------------------------------------------------------------------------------

    def _use_tool(self, incident: Incident) -> None:
        world, tool = self._world, self._world.tool
        groups = [*world.plan.groups, SIMPLE_GROUP]
        group = groups[incident.who % len(groups)]
        match incident.kind:
            case "simple-commit":
                self._simple_offset += 1
                offset = CommittedOffset(self._simple_offset, -1, "by hand")
                tool.send(commit_request(SIMPLE_GROUP, {TopicPartition(ASIDE, 0): offset}))
            case "read":
                tool.send(fetch_request(group, None))
            case "delete-group":
                tool.send(DeleteGroupsRequest([group]))
            case "delete-offsets":
                topic = OffsetDeleteRequestTopic(ASIDE, [OffsetDeleteRequestPartition(0)])
                tool.send(OffsetDeleteRequest(SIMPLE_GROUP, [topic]))
            case _:
                for name in groups:
                    world.checks.book.on_gone(name, ASIDE)
                world.broker.delete_topic(ASIDE)
