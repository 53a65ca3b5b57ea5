"""One schedule: everything that takes part, and its two phases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar
from uuid import UUID

from ....client.errors import BrokerConnectionError
from ....coordinator.classic_groups.group import live_classic
from ....coordinator.consumer_groups.assigning import RETRY_MS
from ....coordinator.consumer_groups.group import ConsumerGroup
from ....coordinator.consumer_groups.group import live_consumer_group as live_consumers
from ....coordinator.consumer_groups.regex import RESOLUTION_PAUSE_MS
from ....coordinator.groups.subscribed_topics import Topic
from ....protocol import ApiKey, RequestContext, TopicPartition, api_key_of
from ....statemachine import ConsumerGroupState, GroupState, MemberState
from ..engine._network import Receiver, SimulatedCall, SimulatedLink
from ..engine._phases import LOOK_MS, PRODUCE_MS, Phases
from ..engine._schedule import Schedule
from ._broker import CoordinatorProcess
from ._checks import Checks
from ._member import Application, Consumers, SimulatedMember
from ._plan import ASIDE, PLUG_IN, GroupsPlan

G = TypeVar("G", bound=GroupsPlan, covariant=True)

_TOOL_TIMEOUT_MS: Final = 1_000
#: Extra time for a coordinator that has just crashed, and for its members' back-off.
_SLACK_MS: Final = 1_500


class Tool:
    """A client that is no member; it ignores the answers, which the checks inspect."""

    name = "tool"
    context = RequestContext("tool")
    versions: dict[int, int] = {
        ApiKey.OFFSET_COMMIT: 9,
        ApiKey.OFFSET_FETCH: 9,
        ApiKey.DELETE_GROUPS: 2,
        ApiKey.OFFSET_DELETE: 0,
    }

    def __init__(self, schedule: Schedule[GroupsPlan], broker: Receiver) -> None:
        self.connection = SimulatedLink(schedule, broker)

    def send(self, body: object) -> None:
        self.connection.send(SimulatedCall(self, self.connection, api_key_of(body), body), _TOOL_TIMEOUT_MS)

    def on_answer(self, _call: SimulatedCall, _body: object) -> None:
        """Do nothing: the checks saw the answer where it was sent."""

    def on_failure(self, _call: SimulatedCall, _error: BrokerConnectionError) -> None:
        """It may have been carried out, or not."""


class World(Phases[G]):
    """A schedule with its coordinator."""

    def __init__(self, plan: G, checks: Callable[[World[G]], Checks], *, checked: bool, traced: bool) -> None:
        super().__init__(plan, checked=checked, traced=traced)
        self.checks = checks(self)
        self.broker = CoordinatorProcess(self, self.checks)
        self.tool = Tool(self, self.broker)

    @property
    def machine(self) -> CoordinatorProcess:
        return self.broker

    def look(self) -> None:
        super().look()
        self.checks.look()
        self.broker.look()

    def close(self) -> None:
        """Drop the participants, so that they are freed now: finding the reference cycles would take the
        garbage collector longer than creating them took.
        """
        self.broker.close()
        self.heap.clear()
        for part in (self.checks, self.tool):
            vars(part).clear()
        del self.happen

    def describe(self) -> dict[str, object]:
        plan = self.plan
        return super().describe() | {
            "rebalance (ms)": plan.rebalance_ms,
            "members": [member.name for member in plan.members],
        }


class MemberWorld(World[GroupsPlan]):
    """A schedule of light members."""

    def __init__(
        self,
        plan: GroupsPlan,
        *,
        checked: bool = True,
        application: Application | None = None,
        traced: bool = False,
    ) -> None:
        super().__init__(plan, Checks, checked=checked, traced=traced)
        self.members: dict[str, SimulatedMember] = {}
        self.consumers = Consumers(self, self.members, application)
        self.checks.removed = self.consumers.removed
        self._topics_version = object()
        #: When a topic was last made, grown or deleted.
        self.topics_changed_ms: int | None = None

    def _connections(self) -> list[SimulatedLink]:
        """Return every connection, also of ended processes: their last requests may be on the way."""
        of_members = (c for member in self.members.values() for c in member.connections.values())
        return [*of_members, self.tool.connection]

    def connections_broke(self) -> None:
        for connection in self._connections():
            if connection.under_way:
                late_ms = int(self.rng.random() * 20)
                self.heap.at(self.heap.now + late_ms, connection.reset, "closed by the broker")
            else:
                connection.close()

    def topic_of_id(self, topic_id: UUID) -> str | None:
        found = (name for name, topic in self.consumers.topics.items() if topic.id == topic_id)
        return next(found, None)

    def id_of_topic(self, name: str) -> UUID | None:
        found = self.consumers.topics.get(name)
        return None if found is None or not self.plan.mixed else found.id

    def topic_names(self) -> Iterable[str]:
        return self.consumers.topics

    def topics_version(self) -> object:
        return self._topics_version

    def partition_count(self, topic: str) -> int | None:
        found = self.consumers.topics.get(topic)
        return 1 if topic == ASIDE else None if found is None else found.partition_count

    def set_topic(self, name: str, count: int) -> None:
        """A topic has this many partitions from now on; 0: it does not exist. One that is recreated has the
        records that it had, but another id.
        """
        self.say(f"{name} has {count} partitions")
        topics, old = self.consumers.topics, self.consumers.topics.pop(name, None)
        self._topics_version = object()
        self.topics_changed_ms = self.heap.now
        if count:
            topics[name] = Topic(UUID(int=self.rng.getrandbits(128)) if old is None else old.id, count)
            for number in range(count):
                self.consumers.ends.setdefault(TopicPartition(name, number), 3)
        else:
            self.consumers.remade.add(name)
            for group in self.plan.groups:
                self.checks.book.on_gone(group, name)
        for member in self.members.values():
            member.later(self.rng.randint(1, self.plan.heartbeat_ms), member.learn_topics)
        if not count:
            self.broker.delete_topic(name)

    def start_member(self, name: str) -> None:
        plan = next((plan for plan in self.plan.members if plan.name == name), None)
        if plan is not None and (name not in self.members or not self.members[name].alive):
            self.say(f"{name} starts")
            self.members[name] = SimulatedMember(self, self.broker, self.consumers, plan)

    def _run(self) -> None:
        plan = self.plan
        self.broker.start()
        for member in plan.members:
            self.heap.at(member.starts_ms, self.start_member, member.name)
        self._plan_incidents()
        self._produce()
        self._let_pass(plan.faults_ms)
        self._heal()
        self._settle()
        rebalances = self.stats.rebalances
        # what an empty group has expires, and little else happens in it
        alone = not any(self.living(group) for group in plan.groups)
        self._let_pass(self.heap.now + (max(plan.quiet_ms, 2 * plan.session_ms) if alone else plan.quiet_ms))
        if self.stats.rebalances > rebalances:
            self.fail("L4", "a rebalance in a group that was settled")
        self.consumers.check_results()

    def _produce(self) -> None:
        if not self.healed:
            for partition in self.consumers.ends:
                if self.rng.random() < 0.4:
                    self.consumers.ends[partition] += self.rng.randint(1, 3)
            self.heap.at(self.heap.now + PRODUCE_MS, self._produce)

    def _heal(self) -> None:
        self.say("the faults are over")
        self.healed = True
        for partition in self.consumers.ends:
            # a late duplicate may have taken an offset back: what follows is committed beyond it
            self.consumers.ends[partition] += 1
        self.broker.heal()
        for member in self.members.values():
            member.frozen_until = 0
            member.later(0, member.deliver)
        for connection in self._connections():
            connection.reset("the network was mended")

    def _settle(self) -> None:
        """Wait until everything is settled: one generation within a time limit, all else (which takes one
        more round under COOPERATIVE) within another.
        """
        plan, start = self.plan, self.heap.now
        bound_ms = plan.rebalance_ms + plan.session_ms + 2 * plan.heartbeat_ms + _SLACK_MS
        if any(member.regex for member in plan.members):
            bound_ms += RESOLUTION_PAUSE_MS
        if any(incident.kind in PLUG_IN for incident in plan.incidents):
            # one that hangs, and is asked again
            bound_ms += 2 * plan.session_ms + RETRY_MS
        joined = False
        while (left := self._still_waited_for()) is not None:
            name, text = left
            joined = joined or name != "L1"
            elapsed_ms = self.heap.now - start
            if elapsed_ms >= (2 * bound_ms if joined else bound_ms):
                self.fail(name, f"{text}, {elapsed_ms} ms after the last fault")
                return
            self._let_pass(self.heap.now + LOOK_MS)

    def living(self, group: str) -> list[SimulatedMember]:
        """The members of a group that are alive and stay."""
        members = (member for member in self.members.values() if member.plan.group == group)
        return [m for m in members if m.alive and m.error is None and not m.paused and not m.leaving]

    def _still_waited_for(self) -> tuple[str, str] | None:
        """The invariant that does not hold yet, and why; None when all is settled.

        L1 until each group is one Stable generation of all its living members, then what is not done.
        """
        shard, changed_ms = self.shard, self.topics_changed_ms
        if shard is None:
            return "L1", "the coordinator does not serve"
        if changed_ms is not None and self.heap.now <= changed_ms + self.plan.heartbeat_ms:
            return "L1", "members do not know yet which topics there are"
        leaving = [member for member in self.members.values() if member.leaving and member.alive]
        if leaving:
            return "L1", f"{leaving} are about to leave"
        for name in self.plan.groups:
            members, group = self.living(name), live_classic(shard, name)
            consumers = live_consumers(shard, name)
            if consumers is not None:
                if (text := _why_unsettled(consumers, members)) is not None:
                    return "L1", text
                continue
            state = GroupState.STABLE if members else GroupState.EMPTY
            if group is None:
                if members:
                    return "L1", f"{name} is missing"
                continue
            ids = {member.membership.member_id for member in members}
            if group.state is not state or ids != group.members.keys():
                return "L1", f"{name} is {group.state} of {list(group.members)}, alive are {sorted(ids)}"
            for member in members:
                membership = member.membership
                if membership.state is not MemberState.STABLE or membership.generation != group.generation:
                    return "L1", f"{member.name} is {membership}, the group in generation {group.generation}"
        for name in self.plan.groups:
            living = self.living(name)
            if any(not member.idle for member in living):
                return "L2", f"one of {living} has not finished a step"
            if (
                self.topics_changed_ms is not None
                and live_classic(shard, name)
                and living
                and not any(member.membership.is_leader for member in living)
            ):
                # who took the place of the last consumer made it a classic group without a rebalance: nobody
                # was told that it is the leader, who looks after topics
                living[0].rejoin()
                return "L3", f"{name} has no leader"
            for partition, end in self.consumers.ends.items() if living else ():
                done = self.consumers.done_before[name, partition]
                entry = shard.state.durable.offset(name, partition)
                committed = None if entry is None else entry.offset
                if done < end or committed != end:
                    if done == end and partition.topic in self.consumers.remade:
                        # a commit names its topic: one for the topic before this one, that came late, has
                        # taken its offset back. What follows is committed beyond it
                        self.consumers.ends[partition] += 1
                    return "L3", f"{partition} of {name} ends at {end}, done {done}, committed {committed}"
        waiting = self.checks.unanswered_calls()
        return ("L2", f"{waiting} are not answered") if waiting else None

    def close(self) -> None:
        for member in self.members.values():
            member.close()
        vars(self.consumers).clear()
        self.members.clear()
        super().close()


def _why_unsettled(group: ConsumerGroup, members: list[SimulatedMember]) -> str | None:
    """Why a group is not one of these members, each at its target and aware of it; None if it is."""
    state = ConsumerGroupState.STABLE if members else ConsumerGroupState.EMPTY
    ids = {member.membership.member_id for member in members}
    if group.state is not state or ids != group.members.keys():
        return f"{group.group_id} is {group.state} of {list(group.members)}, alive are {sorted(ids)}"
    if group.patterns and group.topics_resolved is not group.topics.version():
        return f"{group.group_id} has to look for the topics of its expressions again"
    if unresolved := group.patterns.keys() - group.regexes.keys():
        return f"{group.group_id} has not looked for the topics of {sorted(unresolved)} yet"
    for member in members:
        membership, known = member.membership, group.members[member.membership.member_id]
        has = _partitions(group, known.current.assigned)
        aware = membership.state is MemberState.STABLE and membership.generation == group.epoch
        if not aware or membership.owned != has or known.current.epoch != group.epoch:
            return f"{member.name} is {membership} and has {sorted(membership.owned)}, known is {known}"
        said = known.metadata
        if not said.regex and membership.subscription != set(said.topics):
            # it has changed, and a full disk has refused that so far
            return f"{member.name} subscribes to {sorted(membership.subscription)}, known is {said}"
        if has != _partitions(group, group.targets.get(known.member_id, {})):
            return f"{member.name} has {sorted(has)}, and is to have {group.targets.get(known.member_id)}"
    return None


def _partitions(group: ConsumerGroup, having: Mapping[UUID, Iterable[int]]) -> set[TopicPartition]:
    return {
        TopicPartition(group.topics.topic_of_id(topic_id) or str(topic_id), number)
        for topic_id, numbers in having.items()
        for number in numbers
    }
