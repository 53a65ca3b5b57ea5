"""One schedule: everything that takes part, and its two phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from random import Random
from typing import Any, Final, TypeAlias
from uuid import UUID

from ...coordinator.classic.group import live
from ...protocol import TopicPartition
from ...statemachine import GroupState, MemberState
from ..faults import SimulatedCrash
from ._broker import Broker
from ._checks import Checks
from ._consumers import Application, Consumers
from ._heap import Heap
from ._incidents import Incidents
from ._member import Member
from ._network import Connection
from ._plan import ASIDE, Plan
from ._violation import Violation

#: How often records are produced, and how often the end is looked for.
_PRODUCE_MS: Final = 250
_LOOK_MS: Final = 100
#: What a coordinator that has just crashed, and its members' pauses, may take on top.
_SLACK_MS: Final = 1_500
_TRACE_LINES: Final = 100_000

#: Tells what is waited for, to whom that has taken too long.
Why: TypeAlias = Callable[[], str]


@dataclass(slots=True)
class Stats:
    """What one schedule contained, or several together."""

    schedules: int = 0
    events: int = 0
    requests: int = 0
    crashes: int = 0
    reloads: int = 0
    commits: int = 0
    rebalances: int = 0
    records: int = 0
    compactions: int = 0
    removals: int = 0
    network_faults: int = 0
    incidents: int = 0
    virtual_ms: int = 0

    def add(self, other: Stats) -> None:
        """Count another one's in."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class World:
    """A schedule that is about to run. With ``trace`` it says what happens."""

    def __init__(
        self,
        plan: Plan,
        *,
        checked: bool = True,
        application: Application | None = None,
        traced: bool = False,
    ) -> None:
        self.plan = plan
        self.rng = Random(plan.run_seed)
        self.heap = Heap(self.rng)
        self.trace: list[str] | None = [] if traced else None
        self.stats = Stats(schedules=1)
        self.healed = False
        self.members: dict[str, Member] = {}
        self.ends = {TopicPartition(t, n): 3 for t, count in plan.topics.items() for n in range(count)}
        self.checks = Checks(self, enabled=checked)
        self.consumers = Consumers(self, application)
        self.broker = Broker(self)
        self._incidents = Incidents(self)
        self._faults = sorted(plan.network.items())
        self._faulty = sum(plan.network.values())
        self._ids = 0

    # --- what others ask ----------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """A line of the trace."""
        if self.trace is not None and len(self.trace) < _TRACE_LINES:
            self.trace.append(f"{self.heap.now / 1000:9.3f}  {text}")

    def new_id(self) -> str:
        """What makes a member id unique."""
        self._ids += 1
        return f"{self._ids:08x}-0000-4000-8000-000000000000"

    def network_fault(self) -> str | None:
        """What happens to the next message, if anything."""
        drawn = self.rng.random()
        if drawn >= self._faulty:
            return None
        self.stats.network_faults += 1
        for name, chance in self._faults:
            if drawn < chance:
                return name
            drawn -= chance
        return None

    def connections(self) -> list[Connection]:
        """Every connection of a process that lives."""
        found = [c for member in self.members.values() if member.alive for c in member.connections]
        return [*found, self._incidents.tool.connection]

    def connections_broke(self) -> None:
        """The broker is gone: each connection is found broken a little later."""
        for connection in self.connections():
            if connection.under_way:
                late_ms = int(self.rng.random() * 20)
                self.heap.at(self.heap.now + late_ms, connection.reset, "closed by the broker")
            else:
                connection.close()

    def topic_of_id(self, topic_id: UUID) -> str | None:
        """The name of a topic; None where topics have no ids, as those that light members read."""
        del topic_id
        return None

    def partition_count(self, topic: str) -> int | None:
        """How many partitions a topic has; None if it does not exist."""
        return 1 if topic == ASIDE else self.plan.topics.get(topic)

    def start_member(self, name: str) -> None:
        """A process of a member starts."""
        plan = next((plan for plan in self.plan.members if plan.name == name), None)
        if plan is not None and (name not in self.members or not self.members[name].alive):
            self.say(f"{name} starts")
            self.members[name] = Member(self, plan)

    # --- the run ------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Both phases. Raises Violation."""
        try:
            self._run()
        finally:
            self.stats.events = self.heap.events
            self.stats.crashes = self.broker.crashes
            self.stats.reloads = self.broker.reloads
            self.stats.virtual_ms = self.heap.now

    def _run(self) -> None:
        plan = self.plan
        self.broker.start()
        for member in plan.members:
            self.heap.at(member.starts_ms, self.start_member, member.name)
        self._incidents.plan()
        self._produce()
        self._let_pass(plan.faults_ms)
        self._heal()
        self._settle()
        rebalances = self.stats.rebalances
        # what an empty group has expires, and little else happens in it
        alone = not any(self.living(group) for group in plan.groups)
        self._let_pass(self.heap.now + (max(plan.quiet_ms, 2 * plan.session_ms) if alone else plan.quiet_ms))
        if self.stats.rebalances > rebalances:
            self.checks.fail("L4", "a rebalance in a group that was settled")
        self.consumers.settled()

    def _let_pass(self, end: int) -> None:
        while True:
            try:
                self.heap.run(end, self.checks)
                return
            except SimulatedCrash:
                self.broker.crashed()
            except Violation:
                raise
            except Exception as error:
                if self.checks.enabled:
                    raise Violation("S0", f"{type(error).__name__}: {error}") from error

    def _produce(self) -> None:
        if not self.healed:
            for partition in self.ends:
                if self.rng.random() < 0.4:
                    self.ends[partition] += self.rng.randint(1, 3)
            self.heap.at(self.heap.now + _PRODUCE_MS, self._produce)

    def _heal(self) -> None:
        self.say("the faults are over")
        self.healed = True
        for partition in self.ends:
            # a late duplicate may have taken an offset back: what follows is committed beyond it
            self.ends[partition] += 1
        self.broker.heal()
        for member in self.members.values():
            member.frozen_until = 0
            member.later(0, member.deliver)
        for connection in self.connections():
            connection.reset("the network was mended")

    def _settle(self) -> None:
        """Wait until all is well: one generation within the bound, all else (under COOPERATIVE that takes one
        more round) within another.
        """
        plan, start = self.plan, self.heap.now
        bound_ms = plan.rebalance_ms + plan.session_ms + 2 * plan.heartbeat_ms + _SLACK_MS
        joined = False
        while True:
            unsettled = self._unsettled()
            joined = joined or unsettled is None
            name, why = ("L1", unsettled) if unsettled is not None else self._unfinished()
            if why is None:
                return
            elapsed_ms = self.heap.now - start
            if elapsed_ms >= (2 * bound_ms if joined else bound_ms):
                self.checks.fail(name, f"{why()}, {elapsed_ms} ms after the last fault")
                return
            self._let_pass(self.heap.now + _LOOK_MS)

    def living(self, group: str) -> list[Member]:
        """The members of a group that are there to stay."""
        members = (member for member in self.members.values() if member.plan.group == group)
        return [m for m in members if m.alive and m.error is None and not m.paused and not m.leaving]

    def _unsettled(self) -> Why | None:
        """What keeps a group from being one Stable generation of all its living members."""
        shard = self.broker.shard
        if shard is None:
            return lambda: "the coordinator does not serve"
        leaving = [member for member in self.members.values() if member.leaving and member.alive]
        if leaving:
            return lambda: f"{leaving} are about to leave"
        for name in self.plan.groups:
            members = self.living(name)
            group = live(shard, name)
            if group is None or not members:
                if members:
                    return partial("{} is missing".format, name)
                if group is not None and group.members:
                    return partial("{} has {}, who are gone".format, name, list(group.members))
                if group is not None and group.state is not GroupState.EMPTY:
                    return partial("{} is {}".format, name, group.state)
                continue
            if group.state is not GroupState.STABLE:
                return partial("{} is {}".format, name, group.state)
            ids = {member.membership.member_id for member in members}
            if ids != group.members.keys():
                return partial("{} has {}, alive are {}".format, name, list(group.members), sorted(ids))
            for member in members:
                membership = member.membership
                if membership.state is not MemberState.STABLE or membership.generation != group.generation:
                    text = "{} is {}, the group in generation {}"
                    return partial(text.format, member.name, membership, group.generation)
        return None

    def _unfinished(self) -> tuple[str, Why | None]:
        """What is not done or committed yet, or waits."""
        shard = self.broker.shard
        if shard is None:
            return "L3", lambda: "the coordinator does not serve"
        for name in self.plan.groups:
            living = self.living(name)
            for member in living:
                if not member.idle:
                    return "L2", partial("{} has not finished a step".format, member)
            if not living:
                continue
            for partition, end in self.ends.items():
                done = self.consumers.done_before(name, partition)
                entry = shard.state.durable.offset(name, partition)
                committed = None if entry is None else entry.offset
                if done < end or committed != end:
                    text = "{} of {} ends at {}, done {}, committed {}"
                    return "L3", partial(text.format, partition, name, end, done, committed)
        waiting = self.checks.unanswered()
        return "L2", (lambda: f"{waiting} are not answered") if waiting else None

    def close(self) -> None:
        """Forget who took part, so that all of it is freed now: everybody knows everybody, and would wait for
        the garbage collector, which takes more time than they did to be made.
        """
        self.broker.close()
        self.heap.clear()
        for member in self.members.values():
            member.close()
        for part in (self.checks, self.consumers, self._incidents.tool, self._incidents):
            vars(part).clear()
        self.members.clear()

    def describe(self) -> dict[str, Any]:
        """The plan in few words, for a trace."""
        plan = self.plan
        return {
            "topics": plan.topics,
            "session, rebalance (ms)": (plan.session_ms, plan.rebalance_ms),
            "fsync": plan.fsync,
            "members": [member.name for member in plan.members],
            "network": sorted(plan.network),
            "incidents": [f"{i.name}: {i.kind} at {i.at_ms / 1000:.3f}" for i in plan.incidents],
        }
