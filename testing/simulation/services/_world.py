"""One schedule of whole services: the cluster, the processes, and the checks while they work."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from ....coordinator.consumer_groups.group import ConsumerGroup
from ....protocol import ApiKey
from ....protocol.messages.offset_commit import OffsetCommitResponse
from ....statemachine import MemberState
from ..engine._network import SimulatedCall, SimulatedLink
from ..engine._phases import LOOK_MS, PRODUCE_MS, Left
from ..groups._checks import Checks, stable_members
from ..groups._plan import ASIDE
from ..groups._world import World
from ._ledger import ServiceLedger
from ._limits import TimeLimits
from ._nodes import COORDINATOR, SimulatedNodes
from ._plan import NODES, ProcessPlan, ServicePlan
from ._process import ServiceProcess, ServiceSchedule
from ._topics import SimulatedTopics
from ._users import UsersService
from ._work import make_program

if TYPE_CHECKING:
    from ._zookeeper import SimulatedZooKeeper

#: Delay before a process that ended with an error is restarted.
_RESTART_MS: Final = 200
#: What a stop may take in addition to notice and drain, when all else is well.
_STOP_SLACK_MS: Final = 1_000
#: How long until all is settled and done, in addition to the group's own times.
_SETTLE_MS: Final = 8_000
#: The first version of Fetch that names topics by their ids.
_TOPIC_ID_VERSION: Final = 13


class ServiceChecks(Checks):
    """Reports OffsetCommits to the ledger as well."""

    ledger: ServiceLedger

    def on_answer(self, call: SimulatedCall, reply: object) -> None:
        super().on_answer(call, reply)
        if call.api_key == ApiKey.OFFSET_COMMIT and isinstance(reply, OffsetCommitResponse):
            self.ledger.on_answer(call, reply)


class ServiceWorld(World[ServicePlan], ServiceSchedule):
    """A schedule that is about to run; with ``users`` their service runs in place of planned ones."""

    checks: ServiceChecks

    def __init__(
        self,
        plan: ServicePlan,
        users: UsersService | None = None,
        *,
        checked: bool = True,
        traced: bool = False,
    ) -> None:
        super().__init__(plan, ServiceChecks, checked=checked, traced=traced)
        self.processes: dict[str, ServiceProcess] = {}
        self.restarting = 0
        self.topics = SimulatedTopics(NODES)
        self.ledger = self.checks.ledger = ServiceLedger(
            self, self.topics, None if users is None else users.record
        )
        self.cluster = SimulatedNodes(self, self.broker, self.topics, self.ledger)
        self.limits = TimeLimits(self)
        self._users = users
        #: Of a group without a coordinator.
        self.zookeeper: SimulatedZooKeeper | None = None
        if plan.protocol == "registry":
            from ._zookeeper import SimulatedZooKeeper

            self.zookeeper = SimulatedZooKeeper(self, self.limits.on_disturbed)
            self.ledger.owns = self.zookeeper.owns
        #: What is to be put right when the faults are over, if not before.
        self.to_undo: list[Callable[[], None]] = []
        self._all: list[ServiceProcess] = []
        self.database = f"file:kohort-simulation-{id(self)}?mode=memory&cache=shared"
        #: What handlers have done under exactly once.
        self._effects = sqlite3.connect(self.database, uri=True)
        self._effects.execute("CREATE TABLE effects (number INTEGER NOT NULL)")
        self._effects.commit()

    # --- what others ask ----------------------------------------------------------------------------------

    def topic_of_id(self, topic_id: UUID) -> str | None:
        found = self.topics.by_id(topic_id)
        return None if found is None else found.name

    def id_of_topic(self, name: str) -> UUID | None:
        found = self.topics.topics.get(name)
        return found.topic_id if found is not None and self.plan.protocol == "consumer" else None

    def partition_count(self, topic: str) -> int | None:
        if topic == ASIDE:
            return 1
        found = self.topics.topics.get(topic)
        return None if found is None else len(found.logs)

    def _living(self) -> list[ServiceProcess]:
        return [process for process in self.processes.values() if process.alive]

    def connections_broke(self) -> None:
        self.limits.on_disturbed()
        for process in self._living():
            self.heap.at(self.heap.now + int(self.rng.random() * 20), self.on_lost, process, COORDINATOR)

    def on_lost(self, process: ServiceProcess, number: int) -> None:
        """A process finds its connections to a node broken."""
        if process.alive:
            process.connection_lost(self.cluster.nodes[number])

    def until_healed(self, length_ms: int, undo: Callable[[], None]) -> None:
        """Call ``undo`` later, or when the faults are over."""

        def once() -> None:
            if undo in self.to_undo:
                self.to_undo.remove(undo)
                self.limits.on_disturbed()
                undo()
                self.topics.changed()

        self.to_undo.append(undo)
        self.heap.at(self.heap.now + length_ms, once)

    # --- what consumers do --------------------------------------------------------------------------------

    def open_zookeeper(self, process: ServiceProcess, *given: Any) -> Any:
        from ._zookeeper import RegistrySession

        assert self.zookeeper is not None, "the plan has a group without a coordinator"
        return RegistrySession(process, self.zookeeper, *given)

    def sending(self, process: ServiceProcess, call: SimulatedCall) -> None:
        self.limits.on_sent(process, call)
        if call.api_key == ApiKey.OFFSET_COMMIT:
            self.ledger.sending(process, call)

    # --- processes ----------------------------------------------------------------------------------------

    def start_process(self, plan: ProcessPlan) -> None:
        """Start a process, unless it runs."""
        there = self.processes.get(plan.name)
        if there is None or not there.alive:
            self.say(f"{plan.name} starts")
            self.limits.on_disturbed()
            make = make_program if self._users is None else self._users.program
            process = self.processes[plan.name] = ServiceProcess(self, plan, make)
            self._all.append(process)

    def start_later(self, plan: ProcessPlan, delay_ms: int) -> None:
        """Start it later, or when the faults are over."""
        self.restarting += 1

        def start() -> None:
            self.restarting -= 1
            self.start_process(plan)

        self.until_healed(delay_ms, start)

    def arrive(self, *, static: bool) -> None:
        """Add a process for the rest of the schedule."""
        name = f"p{len(self.processes) + 10}"
        self.start_process(ProcessPlan(name, f"i{name}" if static else None, self.heap.now))

    def stop(self, process: ServiceProcess, restart_ms: int | None = None) -> None:
        """Ask a process to end cleanly; it is started again later, unless that is None."""
        if process.stopping_ms is not None:
            return
        self.limits.on_disturbed()
        process.restart_ms = restart_ms
        process.stop()
        if self.plan.sound:
            bound_ms = 2 * self.plan.heartbeat_ms + self.plan.drain_ms + _STOP_SLACK_MS
            self.heap.at(self.heap.now + bound_ms, self._must_have_ended, process)

    def _must_have_ended(self, process: ServiceProcess) -> None:
        if not process.alive or process.stopping_ms is None:
            return
        took_ms = self.heap.now - process.stopping_ms
        text = f"{process.name} was asked to stop {took_ms} ms ago and is still there"
        self.found("S13", f"{text}; the drain is {self.plan.drain_ms} ms")

    def process_ended(self, process: ServiceProcess, error: BaseException | None) -> None:
        self.say(f"{process.name} ends{'' if error is None else f': {error!r}'}")
        self.limits.on_disturbed()
        if process.stopping_ms is None:
            if error is None:
                self.found("S0", f"{process.name} has ended, and nobody asked it to")
            self.start_later(process.plan, _RESTART_MS)
        elif process.restart_ms is not None:
            self.start_later(process.plan, process.restart_ms)

    # --- topics -------------------------------------------------------------------------------------------

    def make_topic(self, name: str) -> None:
        if name not in self.topics.topics:
            self.topics.make(name, self.plan.topics[name], self.heap.now)
            self.ledger.on_created(name)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, with its committed offsets."""
        self.topics.delete(name)
        self.ledger.on_deleted(name)
        self.checks.book.on_gone(self.plan.group, name)
        self.broker.delete_topic(name)

    def _produce(self) -> None:
        if not self.healed:
            for name in self.plan.topics:
                topic = self.topics.topics.get(name)
                for partition in topic.partitions() if topic is not None else ():
                    log = topic.logs[partition.partition] if topic is not None else None
                    if log is not None and log.leader >= 0 and self.rng.random() < self.plan.busy:
                        self.ledger.produce(partition, log, self.rng.randint(1, 3))
            self.topics.changed()
            self.heap.at(self.heap.now + PRODUCE_MS, self._produce)

    # --- the run ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        plan = self.plan
        with self._own_random():
            for name in plan.topics:
                if (at_ms := plan.made_at_ms.get(name)) is None:
                    self.make_topic(name)
                else:
                    self.heap.at(at_ms, self.make_topic, name)
            for name in plan.dead_letter_topics:
                self.topics.make(name, 2, 0)
            self.broker.start()
            for process in plan.processes:
                self.heap.at(process.starts_ms, self.start_process, process)
            self._plan_incidents()
            self._produce()
            self._watch()
            self._let_pass(plan.faults_ms)
            self._heal()
            settle_ms = plan.session_ms + 2 * plan.rebalance_ms + plan.drain_ms + _SETTLE_MS
            self._wait(settle_ms, self._still_waited_for)
            self._end()

    def _watch(self) -> None:
        self.limits.look()
        self.heap.at(self.heap.now + LOOK_MS, self._watch)

    def _heal(self) -> None:
        self.say("the faults are over")
        self.limits.on_disturbed()
        self.healed = True
        self.ledger.on_healed()
        undo, self.to_undo = self.to_undo, []
        for each in undo:
            each()
        self.broker.heal()
        for topic in self.plan.topics:
            self.make_topic(topic)
        for process in self._living():
            process.heal()
        if self.plan.network:
            lines: list[SimulatedLink] = [c.line for process in self._living() for c in process.connections]
            for line in [*lines, self.tool.connection]:
                line.reset("the network was mended")
        self.topics.changed()

    def _still_waited_for(self) -> Left:
        shard, living = self.shard, self._living()
        if shard is None:
            return "L1", "the coordinator does not serve"
        stopping = [process.name for process in living if process.stopping_ms is not None]
        if stopping or self.to_undo:
            return "L1", f"{stopping} are about to end, {self.restarting} to start"
        for process in living:
            consumer = process.consumer
            if consumer is None or consumer.state.state is not MemberState.STABLE:
                return "L1", f"{process.name} is {consumer}"
        if not living:
            return None
        if self.zookeeper is not None:
            if len(there := self.zookeeper.registered_members(self.plan.group)) != len(living):
                return "L1", f"registered are {there}, alive are {living}"
        elif stable_members(shard, self.plan.group) != len(living):
            return "L1", f"{self.plan.group} is {shard.state.find(self.plan.group)}, alive are {living}"
        if left := self.ledger.left():
            return "L3", f"{left[0]} is not done, and in {len(left) - 1} other partitions is one"
        for partition, end in self.topics.ends().items():
            if self.zookeeper is not None:
                committed = self.zookeeper.offset(self.plan.group, partition)
            else:
                entry = shard.state.durable.offset(self.plan.group, partition)
                committed = None if entry is None else entry.offset
            if partition.topic in self.plan.topics and end and committed != end:
                name = f"{partition.topic}-{partition.partition}"
                return "L3", f"{name} ends at {end}, committed is {committed}"
        return None

    def _end(self) -> None:
        """Stop all processes, one after the other."""
        for process in self._living():
            self.say(f"{process.name} is to end")
            self.plan.sound = True  # whatever was before
            self.stop(process)
            while process.alive and self.pending is None:
                self._let_pass(self.heap.now + LOOK_MS)
            self._let_pass(self.heap.now + 50)
        group: Any = None if self.shard is None else self.shard.state.find(self.plan.group)
        members = [] if group is None else list(group.members.values())
        told = [m.metadata for m in members] if isinstance(group, ConsumerGroup) else members
        left: list[Any] = [each for each in told if each.instance_id is None]
        if self.zookeeper is not None:
            left = self.zookeeper.left_behind(self.plan.group)
        if left:
            self.fail("L5", f"all processes have ended, and in {self.plan.group} are still {left}")
        if self.plan.kind == "once":
            self._look_at_effects()
        if self._users is not None:
            try:
                self._users.settled(self.ledger.rows())
            except Exception as error:
                self.fail("A", f"the application: {error!r}")

    def _look_at_effects(self) -> None:
        counts = Counter(number for (number,) in self._effects.execute("SELECT number FROM effects"))
        by_name = self.plan.versions[ApiKey.FETCH] < _TOPIC_ID_VERSION
        for entry in self.ledger.entries:
            done = counts[entry.number]
            if done > 1 and by_name and entry.partition.topic in self.ledger.remade:
                continue  # records of the new topic came under the id of the former one
            if done > 1 or (done == 0 and not entry.gone and not entry.aside):
                self.fail("S18", f"{entry} took effect {done} times")

    def close(self) -> None:
        for process in self._all:
            process.close()
        self._all.clear()
        self.processes.clear()
        self.cluster.close()
        self._effects.close()
        super().close()

    def describe(self) -> dict[str, object]:
        plan = self.plan
        work = plan.work
        return {
            **super().describe(),
            "kind": f"{plan.kind}, lanes {plan.lanes}, concurrency {plan.concurrency}, calm {plan.calm}",
            "drain (ms)": plan.drain_ms,
            "work": work,
            "settings": {k: v for k, v in plan.config.items() if k != "assignor"},
            "topics made at (ms)": plan.made_at_ms,
            "a handler for each topic, retries after (ms)": (plan.several, plan.retry_after_ms),
            "processes": [process.name for process in plan.processes],
        }
