"""One schedule of whole services: the cluster, the processes, and what is looked at while they work."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from ....client.metadata import Address
from ....protocol import ApiKey, TopicPartition
from .._checks import Checks
from .._network import Call
from .._network import Connection as Line
from .._plan import ASIDE
from .._violation import Violation
from .._world import World
from ._incidents import ServiceIncidents
from ._ledger import Ledger
from ._limits import Limits
from ._nodes import PORT, Node
from ._plan import NODES, ProcessPlan, ServicePlan
from ._process import Process
from ._settled import look_at_the_end, still_waited_for
from ._topics import Topics
from ._users import UsersService
from ._work import MakeProgram, make_program

_PRODUCE_MS: Final = 250
_LOOK_MS: Final = 100
#: Whoever ended by an error is started again.
_RESTART_MS: Final = 200
#: What a stop may take beside notice and drain, when all else is well.
_STOP_SLACK_MS: Final = 1_000
#: How long until all is settled and done, beside the group's own times.
_SETTLE_MS: Final = 8_000

#: With these a member may lose its session, its partitions, or its commits.
_UNSOUND: Final = frozenset(
    {
        "process-pause",
        "process-kill",
        "kill",
        "power-loss",
        "stop",
        "move",
        "refuse-commits",
        "lose-group-rights",
        "node-down",
    }
)


class ServiceChecks(Checks):
    """What was found where nobody could raise it comes out here."""

    def look(self) -> None:
        pending = self._world.pending  # type: ignore[attr-defined]
        if pending is not None:
            raise pending
        super().look()

    def answered(self, call: Call, reply: Any) -> None:
        super().answered(call, reply)
        if call.api_key == ApiKey.OFFSET_COMMIT:
            for topic in reply.topics:
                for index, error in topic.partitions:
                    if not error:
                        self._world.acknowledged(call, TopicPartition(topic.name, index))  # type: ignore[attr-defined]


class ServiceWorld(World):
    """A schedule that is about to run; ``make`` makes what a process runs."""

    plan: ServicePlan

    def __init__(
        self,
        plan: ServicePlan,
        *,
        checked: bool = True,
        traced: bool = False,
        make: MakeProgram = make_program,
        users: UsersService | None = None,
    ) -> None:
        super().__init__(plan, checked=checked, traced=traced)
        self.checks = ServiceChecks(self, enabled=checked)
        self.pending: Violation | None = None
        self.group_allowed = True
        self.processes: dict[str, Process] = {}
        self.restarting = 0
        self.topics = Topics(NODES)
        self.nodes = {number: Node(self, number) for number in range(NODES)}
        self.topics.changed = self._look_at_topics
        self.ledger = Ledger(self)
        self.limits = Limits(self)
        self.incidents = self._incidents = ServiceIncidents(self)
        #: When something last happened that may hold partitions up.
        self.disturbed_ms = 0
        self.sound = not plan.network and not any(i.kind in _UNSOUND for i in plan.incidents)
        self.users = users
        self._make = make
        #: What is to be put right when the faults are over, if not before.
        self.to_undo: list[Callable[[], None]] = []
        self._all: list[Process] = []
        self._asked: dict[Call, dict[TopicPartition, int]] = {}
        self.database = f"file:kohort-simulation-{id(self)}?mode=memory&cache=shared"
        #: What handlers have done under exactly once.
        self.effects = sqlite3.connect(self.database, uri=True)
        self.effects.execute("CREATE TABLE effects (number INTEGER NOT NULL)")
        self.effects.commit()

    # --- what others ask ----------------------------------------------------------------------------------

    def found(self, name: str, text: str) -> None:
        """Something does not hold; the schedule ends with the event."""
        if self.checks.enabled and self.pending is None:
            self.pending = Violation(name, text)
            self.checks.touched = True

    def node_at(self, address: Address) -> Node | None:
        """The node of an address; any that can be reached for one that is not in the metadata."""
        node = self.nodes.get(address.port - PORT)
        if node is not None:
            return node
        return next((node for node in self.nodes.values() if node.reachable), None)

    def topic_of_id(self, topic_id: UUID) -> str | None:
        found = self.topics.by_id(topic_id)
        return None if found is None else found.name

    def partition_count(self, topic: str) -> int | None:
        if topic == ASIDE:
            return 1
        found = self.topics.topics.get(topic)
        return None if found is None else len(found.logs)

    def connections(self) -> list[Line]:
        lines = [c.line for p in self.processes.values() if p.alive for c in p.connections]
        return [*lines, self._incidents.tool.connection]

    def connections_broke(self) -> None:
        self.disturbed()
        for process in self.processes.values():
            if process.alive:
                late_ms = int(self.rng.random() * 20)
                self.heap.at(self.heap.now + late_ms, self._lost, process)

    def _lost(self, process: Process) -> None:
        if process.alive:
            process.connection_lost(self.nodes[0])

    def group_refusal(self, call: Call) -> Any | None:
        return self.incidents.group_refusal(call)

    def disturbed(self) -> None:
        """Something happens that may hold partitions up for a while."""
        self.disturbed_ms = self.heap.now

    def until_healed(self, length_ms: int, undo: Callable[[], None]) -> None:
        """Call ``undo`` in a while, or when the faults are over."""

        def once() -> None:
            if undo in self.to_undo:
                self.to_undo.remove(undo)
                self.disturbed()
                undo()
                self.topics.changed()

        self.to_undo.append(undo)
        self.heap.at(self.heap.now + length_ms, once)

    # --- what consumers do --------------------------------------------------------------------------------

    def sending(self, process: Process, call: Call) -> None:
        """A consumer sends a request."""
        self.limits.sent(process, call)
        if call.api_key == ApiKey.OFFSET_COMMIT:
            asked = self._asked[call] = {}
            for topic in call.body.topics:
                for row in topic.partitions:
                    partition = TopicPartition(topic.name, row.partition_index)
                    asked[partition] = row.committed_offset
                    if self.trace is not None:
                        more = f", {row.committed_metadata}" if row.committed_metadata else ""
                        self.say(f"{process.name} commits {partition}: {row.committed_offset}{more}")
                    self.ledger.committing(process, partition, row)

    def acknowledged(self, call: Call, partition: TopicPartition) -> None:
        """A commit was taken by the coordinator."""
        if partition in self._asked.get(call, ()):
            self.ledger.acknowledged(partition, self._asked[call][partition])

    # --- processes ----------------------------------------------------------------------------------------

    def start_process(self, plan: ProcessPlan) -> None:
        """A process starts, unless it is there."""
        there = self.processes.get(plan.name)
        if there is None or not there.alive:
            self.say(f"{plan.name} starts")
            self.disturbed()
            process = self.processes[plan.name] = Process(self, plan, self._make)
            self._all.append(process)

    def start_later(self, plan: ProcessPlan, delay_ms: int) -> None:
        """Start it in a while, or when the faults are over."""
        self.restarting += 1

        def start() -> None:
            self.restarting -= 1
            self.start_process(plan)

        self.until_healed(delay_ms, start)

    def arrive(self, *, static: bool) -> None:
        """One more process, for the rest of the schedule."""
        name = f"p{len(self.processes) + 10}"
        self.start_process(ProcessPlan(name, f"i{name}" if static else None, self.heap.now))

    def stop(self, process: Process, restart_ms: int | None = None) -> None:
        """Ask a process to end in good order; it is started again later, unless that is None."""
        if process.stopping_ms is not None:
            return
        self.disturbed()
        process.restart_ms = restart_ms
        process.stop()
        if self.sound:
            bound_ms = 2 * self.plan.heartbeat_ms + self.plan.drain_ms + _STOP_SLACK_MS
            self.heap.at(self.heap.now + bound_ms, self._must_have_ended, process)

    def _must_have_ended(self, process: Process) -> None:
        if not process.alive or process.stopping_ms is None:
            return
        took_ms = self.heap.now - process.stopping_ms
        text = f"{process.name} was asked to stop {took_ms} ms ago and is still there"
        self.found("S13", f"{text}; the drain is {self.plan.drain_ms} ms")

    def process_ended(self, process: Process, error: BaseException | None) -> None:
        """A process is over."""
        self.say(f"{process.name} ends{'' if error is None else f': {error!r}'}")
        self.disturbed()
        if process.stopping_ms is None:
            if error is None:
                self.found("S0", f"{process.name} has ended, and nobody asked it to")
            self.start_later(process.plan, _RESTART_MS)
        elif process.restart_ms is not None:
            self.start_later(process.plan, process.restart_ms)

    # --- topics -------------------------------------------------------------------------------------------

    def make_topic(self, name: str) -> None:
        """A topic is made, with as many partitions as planned."""
        if name not in self.topics.topics:
            self.topics.make(name, self.plan.topics[name], self.heap.now)
            self.ledger.made(name)

    def delete_topic(self, name: str) -> None:
        """A topic is deleted, and with it what was committed of it."""
        self.topics.delete(name)
        self.ledger.deleted(name)
        self.checks.book.gone(self.plan.group, name)
        self.broker.delete_topic(name)

    def _look_at_topics(self) -> None:
        for node in self.nodes.values():
            if node.reachable:
                node.look()

    def _produce(self) -> None:
        if not self.healed:
            for name in self.plan.topics:
                topic = self.topics.topics.get(name)
                for partition in topic.partitions() if topic is not None else ():
                    log = topic.logs[partition.partition] if topic is not None else None
                    if log is not None and log.leader >= 0 and self.rng.random() < self.plan.busy:
                        self.ledger.produce(partition, log, self.rng.randint(1, 3))
            self.topics.changed()
            self.heap.at(self.heap.now + _PRODUCE_MS, self._produce)

    # --- the run ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        plan = self.plan
        state = random.getstate()
        random.seed(plan.run_seed)
        try:
            for name in plan.topics:
                self.make_topic(name)
            for name in plan.dead_letter_topics:
                self.topics.make(name, 2, 0)
            self.broker.start()
            for process in plan.processes:
                self.heap.at(process.starts_ms, self.start_process, process)
            self._incidents.plan()
            self._produce()
            self._look()
            self._let_pass(plan.faults_ms)
            self._heal()
            self._settle()
            self._end()
        finally:
            random.setstate(state)

    def _look(self) -> None:
        self.limits.look()
        self.heap.at(self.heap.now + _LOOK_MS, self._look)

    def _heal(self) -> None:
        self.say("the faults are over")
        self.disturbed()
        self.healed = True
        self.ledger.healed()
        undo, self.to_undo = self.to_undo, []
        for each in undo:
            each()
        self.broker.heal()
        for topic in self.plan.topics:
            self.make_topic(topic)
        for process in self.processes.values():
            if process.alive:
                process.heal()
        for connection in self.connections() if self.plan.network else ():
            connection.reset("the network was mended")
        self.topics.changed()

    def _settle(self) -> None:
        plan, start = self.plan, self.heap.now
        bound_ms = plan.session_ms + 2 * plan.rebalance_ms + plan.drain_ms + _SETTLE_MS
        while (left := still_waited_for(self)) is not None:
            if self.heap.now - start > bound_ms:
                name, text = left
                self.checks.fail(name, f"{text}, {self.heap.now - start} ms after the last fault")
                return
            self._let_pass(self.heap.now + _LOOK_MS)

    def _end(self) -> None:
        """All processes are stopped, one after the other."""
        for process in list(self.processes.values()):
            if process.alive:
                self.say(f"{process.name} is to end")
                self.sound = True  # whatever was before
                self.stop(process)
                while process.alive and self.pending is None:
                    self._let_pass(self.heap.now + _LOOK_MS)
                self._let_pass(self.heap.now + 50)
        look_at_the_end(self)
        if self.users is not None:
            try:
                self.users.settled(self.ledger.rows())
            except Exception as error:
                self.checks.fail("A", f"the application: {error!r}")

    def close(self) -> None:
        for process in self._all:
            process.close()
        self._all.clear()
        self.processes.clear()
        for node in self.nodes.values():
            node.close()
        self.effects.close()
        self._asked.clear()
        super().close()

    def describe(self) -> dict[str, Any]:
        plan = self.plan
        work = plan.work
        return {
            **super().describe(),
            "kind": f"{plan.kind}, lanes {plan.lanes}, concurrency {plan.concurrency}, calm {plan.calm}",
            "drain (ms)": plan.drain_ms,
            "work": work,
            "settings": {k: v for k, v in plan.config.items() if k != "assignor"},
            "processes": [process.name for process in plan.processes],
        }
