"""A schedule of brokers that is about to run: brokers, workloads and faults, then a quiet phase in which all
must come to an end.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeAlias

from ....broker.partitions.partition import Partition
from ....client.metadata import Address
from ....cluster.controller import NewTopic
from ....coordinator.engine.runner import ShardRunner
from ....log import CorruptLogError
from ....protocol import KohortError, TopicPartition
from ..engine._network import SimulatedCall
from ..engine._phases import Left
from ..engine._plan import Incident
from ..workloads._workload import Workload
from ._clients import ClientProcess
from ._process import BrokerProcess
from ._schedule import PORT, B, BrokerSchedule

_FORM_MS: Final = 10_000

_LOG: Final = logging.getLogger("kohort")
_LOGGED: Final = ("broker", "cluster", "coordinator", "log")


class Faults(Protocol):
    """Carries out some kinds of incidents; ``meet`` returns whether it is one of them."""

    def meet(self, incident: Incident, /) -> bool:
        """Carry it out, if it is one of these."""


class BrokerWorld(BrokerSchedule[B]):
    """Runs the ``workloads`` and ``faults`` among brokers, which ``make_broker`` makes by their numbers.

    ``settle_ms`` is the longest time until everything is settled.
    """

    settle_ms = 30_000

    def __init__(
        self,
        plan: B,
        make_broker: Callable[[BrokerSchedule[Any], int], BrokerProcess] = BrokerProcess,
        *,
        checked: bool,
        traced: bool,
    ) -> None:
        super().__init__(plan, checked=checked, traced=traced)
        self.brokers = {number: make_broker(self, number) for number in range(1, plan.brokers + 1)}
        self.clients: list[ClientProcess] = []
        self.workloads: list[Workload] = []
        self.faults: list[Faults] = []
        #: When the faults are over.
        self.over_ms = 0
        self.met = self.brokers[1]
        # brokers that have done something since the last look
        self._acted: list[BrokerProcess] = []
        self.happen = self._happen

    @property
    def machine(self) -> BrokerProcess:
        """The broker that stopped in the middle of a write, or that the incident is about."""
        return next((each for each in self.brokers.values() if each.has_stopped), self.met)

    def broker_at(self, address: Address) -> BrokerProcess:
        return self.brokers[address.port - PORT]

    def connections_to(self, broker: BrokerProcess) -> None:
        callers: list[BrokerProcess | ClientProcess] = [*self.brokers.values(), *self.clients]
        for caller in callers:
            for connection in list(caller.connections):
                if connection.node is broker:
                    late_ms = int(self.rng.random() * 20)
                    self.heap.at(self.heap.now + late_ms, connection.close, "closed by the broker")

    def connections_broke(self) -> None:
        """All brokers tell of their own."""

    # --- what is looked at --------------------------------------------------------------------------------

    def look(self) -> None:
        super().look()
        acted, self._acted = self._acted, []
        for broker in acted:
            broker.look()
            self._look_at(broker)

    def _look_at(self, broker: BrokerProcess) -> None:
        """Called when a broker has done something."""

    def ran(self, broker: BrokerProcess) -> None:
        self._acted.append(broker)
        self.touched = True

    def on_request(self, broker: BrokerProcess, call: SimulatedCall) -> None:
        for workload in self.workloads:
            workload.on_request(broker, call)

    def on_answer(self, broker: BrokerProcess, call: SimulatedCall, body: object) -> None:
        for workload in self.workloads:
            workload.on_answer(broker, call, body)

    # --- where things are ---------------------------------------------------------------------------------

    def coordinates(self, broker: BrokerProcess, group: str) -> bool:  # noqa: ARG002
        """Return whether nobody has led the offsets of a group after this broker."""
        return broker.parts is not None

    def committed_offset(self, group: str, partition: TopicPartition) -> int:
        """What a group has committed of a partition, 0 for nothing."""
        for broker in self.brokers.values():
            parts = broker.parts
            if parts is not None and self.coordinates(broker, group):
                runner = parts.coordinator._shards.serving_partition(parts.coordinator.partition_of(group))
                if isinstance(runner, ShardRunner):
                    entry = runner.shard.state.durable.offset(group, partition)
                    return 0 if entry is None else entry.offset
        return 0

    def partition_at(self, place: TopicPartition) -> Partition:
        """A partition at its leader."""
        for broker in self.brokers.values():
            found = self.replica(broker, *place)
            if found is not None and (found.leadership is not None or self.plan.brokers == 1):
                return found
        raise AssertionError(f"{place} has no leader, though it is settled")

    def replica(self, broker: BrokerProcess, topic: str, index: int) -> Partition | None:
        """A partition at a broker; None if it has none."""
        found = None if broker.parts is None else broker.parts.node.logs.topic(topic)
        return None if found is None else found.partitions.get(index)

    # --- what happens -------------------------------------------------------------------------------------

    def _meet(self, incident: Incident) -> None:
        number = incident.who % len(self.brokers) + 1
        if incident.kind in ("power-loss", "wipe"):
            number = self.plan.victim
        self.met = self.brokers[number]
        self.say(f"... broker {number}, {incident.length_ms} ms")
        super()._meet(incident)

    def _happen(self, incident: Incident) -> None:
        any(each.meet(incident) for each in (*self.faults, *self.workloads))

    def other_than_met(self, incident: Incident) -> int:
        """The number of another broker than the one that an incident is about; its own if there is none."""
        others = [number for number in self.brokers if number != self.met.number] or [self.met.number]
        return others[int(incident.draw * 1_000) % len(others)]

    # --- the run ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self.touched = True
        with self._own_random(), _Lines(self).handling():
            self._form()
            start = self.heap.now
            self.over_ms = start + self.plan.faults_ms
            for incident in self.plan.incidents:
                self.heap.at(start + incident.at_ms, self._meet, incident)
            for workload in self.workloads:
                workload.start()
            self._let_pass(self.over_ms)
            if not self.is_given_up:
                self._heal()
                self._wait(self.settle_ms, self._why_unsettled)
            if not self.is_given_up:
                self._check()

    @contextmanager
    def _own_random(self) -> Iterator[None]:
        # ids of topics and members, which give the order of what is in sets
        urandom, os.urandom = os.urandom, self.rng.randbytes
        try:
            with super()._own_random():
                yield
        finally:
            os.urandom = urandom

    def _form(self) -> None:
        """Start the brokers, and create the topics."""
        self.healed = True
        for broker in self.brokers.values():
            broker.start()
        self._wait(_FORM_MS, self._not_formed)
        first = self.brokers[1]
        assert first.parts is not None
        first.do(first.parts.node.topics.carry_out(self._topic_plans()))
        self._wait(_FORM_MS, self._not_led)
        self.healed = False

    def _topic_plans(self) -> list[NewTopic]:
        plan = self.plan
        return [
            NewTopic(name, partitions=count, replication_factor=plan.brokers, configs=plan.configs)
            for name, count in plan.topics.items()
        ]

    def _not_formed(self) -> Left:
        for broker in self.brokers.values():
            if not broker.reachable:
                return "B8", f"{broker} does not serve"
        return None

    def _not_led(self) -> Left:
        """Whether a topic has no leaders."""
        there = [self.replica(self.brokers[1], name, 0) for name in self.plan.topics]
        return ("B8", "a topic has no leaders") if None in there else None

    def _heal(self) -> None:
        self.say("the faults are over")
        self.healed = True
        self.links.heal()
        for broker in self.brokers.values():
            broker.heal()
        for workload in self.workloads:
            workload.heal()

    def _why_unsettled(self) -> Left:
        left = self._not_formed()
        return left or next((left for each in self.workloads if (left := each.unsettled())), None)

    def _check(self) -> None:
        """Check what has come of all, once it is settled. Raises Violation."""
        for workload in self.workloads:
            workload.check()

    def close(self) -> None:
        self.healed = True
        for client in self.clients:
            client.kill()
            vars(client).clear()
        for broker in self.brokers.values():
            broker.close()
        for session in self.metadata.sessions:
            vars(session).clear()
        for part in (*self.workloads, *self.faults):
            vars(part).clear()
        vars(self.metadata).clear()
        self.heap.clear()
        self.clients.clear()
        self.workloads.clear()
        self._acted.clear()
        del self.happen, self.met

    def describe(self) -> dict[str, object]:
        plan = self.plan
        return super().describe() | {"settings": plan.settings, "producer": plan.producer}


#: Whatever its plan.
AnyWorld: TypeAlias = BrokerWorld[Any]


class _Lines(logging.Handler):
    """Adds the brokers' log lines to the trace. An unexpected exception is a violation."""

    def __init__(self, world: AnyWorld) -> None:
        super().__init__()
        self._world = world

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Handle the lines of this block, and nobody else does."""
        _LOG.addHandler(self)
        _LOG.propagate = False
        for name in _LOGGED:
            _LOG.getChild(name).setLevel(logging.ERROR if self._world.trace is None else logging.INFO)
        try:
            yield
        finally:
            for name in _LOGGED:
                _LOG.getChild(name).setLevel(logging.NOTSET)
            _LOG.propagate = True
            _LOG.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, (KohortError, OSError, CorruptLogError)):
            self._world.found("S0", f"{record.getMessage()}: {error!r}")
        self._world.say(f"    {record.getMessage()}{'' if error is None else f': {error!r}'}")
