"""One schedule of brokers: the incidents, and the checks meanwhile."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from ....broker.metadata.topics import TopicPlan
from ....broker.partitions.partition import Partition
from ....broker.partitions.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ....client.metadata import Address
from ....cluster import PartitionState
from ....cluster.layout import BROKERS as BROKER_ENTRIES
from ....cluster.layout import PARTITION_STATES, PartitionKey, parse_states
from ....coordinator.classic_groups.group import CLASSIC_TYPE
from ....coordinator.consumer_groups.group import CONSUMER_TYPE
from ....coordinator.engine.runner import ShardRunner
from ....log import CorruptLogError, decode_records
from ....protocol import ApiKey, KafkaError, KohortError, TopicPartition, iter_batches
from ....replication import Replication
from .._network import SimulatedCall
from .._plan import Incident
from .._world import LOOK_MS
from ._broker import ClusterProcess
from ._clients import ClientProcess, ClusterMember, ClusterReader, ClusterWriter
from ._groups import GROUP_APIS, GroupLedger
from ._plan import BROKERS, GROUP, OUTPUT, PROCESSORS, TOPIC, ClusterPlan
from ._processor import Processor
from ._schedule import PORT, ClusterSchedule

#: Longest time until everything is settled: waits for metadata, controllers and back-off are limited to 10 s.
_SETTLE_MS: Final = 30_000
_FORM_MS: Final = 10_000
#: How long a broker is cut off to be out of sync, where that takes 300 ms.
_OUT_OF_SYNC_MS: Final = 700
_MOST_BYTES: Final = 1 << 20

_LOG: Final = logging.getLogger("kohort")
_LOGGED: Final = ("broker", "cluster", "coordinator", "log")


class ClusterWorld(ClusterSchedule):
    """A schedule that is about to run."""

    def __init__(self, plan: ClusterPlan, *, checked: bool = True, traced: bool = False) -> None:
        super().__init__(plan, checked=checked, traced=traced)
        self.brokers = {number: ClusterProcess(self, number) for number in range(1, BROKERS + 1)}
        self._clients: list[ClientProcess] = []
        self._members: list[ClusterMember] = []
        self._readers: list[ClusterReader] = []
        # the leader of a partition in an epoch, and its high watermark; the newest epoch of each partition
        self._leaders: dict[tuple[str, int, int], int] = {}
        self._watermarks: dict[tuple[str, int, int], int] = {}
        self._newest: dict[tuple[str, int], int] = {}
        # epochs in which a coordinator has loaded a partition of groups
        self._loaded: set[tuple[int, int]] = set()
        self.groups = GroupLedger(self)
        # partitions that a broker is in sync for and has lost
        self._suspect: set[PartitionKey] = set()
        # the last state of each partition whose elections may be unclean, and the topic's id
        self._known: dict[PartitionKey, PartitionState] = {}
        self._unclean: UUID | None = None
        self._over_ms = 0
        self._met = self.brokers[1]
        # brokers that have done something since the last look
        self._acted: list[ClusterProcess] = []
        self.happen = self._happen

    @property
    def machine(self) -> ClusterProcess:
        """The broker that stopped in the middle of a write, or that the incident is about."""
        return next((each for each in self.brokers.values() if each.has_stopped), self._met)

    def broker_at(self, address: Address) -> ClusterProcess:
        return self.brokers[address.port - PORT]

    def connections_to(self, broker: ClusterProcess) -> None:
        callers: list[ClusterProcess | ClientProcess] = [*self.brokers.values(), *self._clients]
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
            for partition, leadership in broker.leaderships():
                self._look_at(broker, partition, leadership.replication)
                if partition.topic.name == OFFSETS_TOPIC:
                    self._look_at_group(broker, partition)

    def ran(self, broker: ClusterProcess) -> None:
        self._acted.append(broker)
        self.touched = True

    def _look_at(self, broker: ClusterProcess, partition: Partition, replication: Replication) -> None:
        name = partition.topic.name
        key = name, partition.index, replication.leader_epoch
        before = self._leaders.get(key)
        if before is None:
            self._leads(broker, partition, key)
        elif before != broker.number:
            self.fail("B4", f"broker {before} and {broker} lead {name}-{partition.index} in epoch {key[2]}")
        watermark = replication.high_watermark
        if watermark < self._watermarks.get(key, 0):
            self.fail("B5", f"the high watermark of {key} goes back to {watermark} at {broker}")
        self._watermarks[key] = watermark

    def _leads(self, broker: ClusterProcess, partition: Partition, key: tuple[str, int, int]) -> None:
        """A broker begins to lead a partition."""
        self._leaders[key] = broker.number
        name, index, epoch = key
        self.say(f"{broker} leads {name}-{index} from {partition.log_end_offset} on in epoch {epoch}")
        if epoch <= self._newest.get((name, index), -1):
            return  # it learns late of what is over
        self._newest[name, index] = epoch
        place = TopicPartition(name, index)
        end = 0 if place in self.ledger.lossy else self.ledger.ends.get(place, 0)
        if partition.log_end_offset < end:
            self.fail(
                "B1",
                f"{broker} leads {name}-{index}, ends at {partition.log_end_offset} and lacks what was "
                f"acknowledged up to {end}",
            )

    def _look_at_group(self, broker: ClusterProcess, partition: Partition) -> None:
        """Check the group's state in a coordinator that has just loaded its partition."""
        key = partition.index, partition.leader_epoch
        parts = broker.parts
        if parts is None or key in self._loaded or parts.coordinator.partition_of(GROUP) != partition.index:
            return
        runner = parts.coordinator._shards.serving_partition(partition.index)
        if isinstance(runner, ShardRunner) and self._is_newest(broker, partition):
            self._loaded.add(key)
            durable = runner.shard.state.durable
            if self.plan.consumer.get("protocol") == "consumer":
                self.groups.members_were_loaded(broker.name, durable.of_type(CONSUMER_TYPE).get(GROUP, {}))
            else:
                self.groups.was_loaded(broker.name, durable.of_type(CLASSIC_TYPE).get(GROUP))

    def _is_newest(self, broker: ClusterProcess, partition: Partition) -> bool:
        return (
            partition.leadership is not None
            and partition.leader_epoch == self._newest.get((partition.topic.name, partition.index))
            and self._leaders[partition.topic.name, partition.index, partition.leader_epoch] == broker.number
        )

    def on_request(self, broker: ClusterProcess, call: SimulatedCall) -> None:  # noqa: ARG002
        if call.api_key == ApiKey.OFFSET_FETCH:
            call.note = dict(self.ledger.committed)
        elif call.api_key in GROUP_APIS:
            call.note = self.heap.now
            self.groups.on_request(call)

    def on_answer(self, broker: ClusterProcess, call: SimulatedCall, body: Any) -> None:
        if call.api_key == ApiKey.OFFSET_COMMIT:
            for asked, told in zip(call.body.topics, body.topics, strict=True):
                for row, answer in zip(asked.partitions, told.partitions, strict=True):
                    if not answer.error_code:
                        place = TopicPartition(TOPIC, row.partition_index)
                        self.ledger.was_committed(call.body.group_id, place, row.committed_offset)
        elif call.api_key == ApiKey.OFFSET_FETCH and call.note and self._coordinates(broker):
            for group in body.groups:
                rows = (row for topic in group.topics for row in topic.partitions)
                for row in () if group.error_code else rows:
                    place = TopicPartition(TOPIC, row.partition_index)
                    known = call.note.get((group.group_id, place), -1)
                    if not row.error_code and row.committed_offset < known:
                        text = f"{broker} says {row.committed_offset} is committed of {place}"
                        self.found("B6", f"{text}, {known} was acknowledged")
        elif call.api_key in GROUP_APIS:
            self.groups.on_answer(call, body, newest=self._coordinates(broker))

    def _coordinates(self, broker: ClusterProcess, group: str = GROUP) -> bool:
        """Return whether nobody has led the offsets of a group after this broker."""
        if broker.parts is None:
            return False
        logs = broker.parts.node.logs
        index = broker.parts.coordinator.partition_of(group)
        partition = logs.led(OFFSETS_TOPIC, index)
        return partition is not None and self._is_newest(broker, partition)

    # --- disks that lose what they have -------------------------------------------------------------------

    def lost_disk(self) -> None:
        """Note that the victim of the plan lost its disk. In-sync replicas have all acknowledged records:
        until the controller has removed the victim, another replica has to be in sync. Until its session is
        over, the victim may also get in sync, by what its leader saw of it before.
        """
        self._suspect = {key for key, _ in self._states()}
        self.metadata_changed()

    def metadata_changed(self) -> None:
        if self._unclean is not None:
            self._look_for_unclean_elections()
        if not self._suspect:
            return
        there, victim = {int(name) for name in self.metadata.tree.children(BROKER_ENTRIES)}, self.plan.victim
        for key, state in self._states():
            if key not in self._suspect:
                continue
            if victim not in state.isr:
                if victim not in there:
                    self._suspect.remove(key)
            elif (there - {victim}).isdisjoint(state.isr) and key[0] == self._unclean:
                self._suspect.remove(key)
                self.ledger.lossy.add(TopicPartition(TOPIC, key[1]))
            elif (there - {victim}).isdisjoint(state.isr):
                # as in Apache Kafka (without KIP-966) records that only it had are lost
                self.say("the last replica in sync has lost its disk: what follows is not looked at")
                self.stats.removals += 1
                self.checked = False
                self._suspect.clear()
                return

    def _look_for_unclean_elections(self) -> None:
        for key, state in self._states():
            if key[0] == self._unclean:
                before = self._known.get(key, state)
                if state.leader >= 0 and state.leader not in before.isr:
                    self.say(f"broker {state.leader} is elected for {TOPIC}-{key[1]} and was not in sync")
                    self.ledger.lossy.add(TopicPartition(TOPIC, key[1]))
                self._known[key] = state

    def _states(self) -> Iterator[tuple[PartitionKey, PartitionState]]:
        tree = self.metadata.tree
        for name in tree.children(PARTITION_STATES):
            entry = tree.get(f"{PARTITION_STATES}/{name}")
            if entry is not None:
                yield from parse_states(entry.value).items()

    # --- what happens -------------------------------------------------------------------------------------

    def _meet(self, incident: Incident) -> None:
        number = incident.who % BROKERS + 1
        if incident.kind in ("power-loss", "wipe"):
            number = self.plan.victim
        self._met = self.brokers[number]
        self.say(f"... broker {number}, {incident.length_ms} ms")
        super()._meet(incident)

    def _happen(self, incident: Incident) -> None:
        number, other, until_ms = self._met.number, self._other(incident), self.heap.now + incident.length_ms
        if incident.kind == "cut":
            self.links.cut(number, other, until_ms)
            self.links.cut(other, number, until_ms)
        elif incident.kind == "cut-one-way":
            self.links.cut(number, other, until_ms)
        elif incident.kind == "slow":
            by_ms = int(20 + incident.draw * 400)
            self.links.slow(number, other, by_ms, until_ms)
            if incident.who % 2:
                self.links.slow(other, number, by_ms, until_ms)
        elif incident.kind == "cut-off":
            for each in self.brokers:
                self.links.cut(number, each, until_ms)
                self.links.cut(each, number, until_ms)
            self._met._meet_cut_metadata(incident)
        elif incident.kind == "isr-lost":
            self._lose_isr()
        elif incident.kind == "move-leader":
            self._move_leader(incident)
        elif incident.kind == "reassign":
            self._reassign(incident)
        elif incident.kind == "client-kill" and self._members:
            member = self._members.pop(incident.who % len(self._members))
            member.kill()
            self.heap.at(until_ms, self._join)
        elif incident.kind.startswith("processor") and self.processors:
            self._happen_to(self.processors[incident.who % len(self.processors)], incident)

    def _lose_isr(self) -> None:
        """Nobody who is in sync is left, but a broker that is not."""
        until_ms = min(self.heap.now + _OUT_OF_SYNC_MS, self._over_ms)
        for other in self.brokers.values():
            if other is not self._met:
                self.links.cut(self._met.number, other.number, until_ms)
                self.links.cut(other.number, self._met.number, until_ms)
                self.heap.at(until_ms, other.crash)

    def _happen_to(self, processor: Processor, incident: Incident) -> None:
        until_ms = self.heap.now + incident.length_ms
        if incident.kind == "processor-pause":
            processor.loop.freeze(until_ms)
        elif not processor.done:
            if incident.kind == "processor-kill":
                processor.kill()
            else:
                until_ms = self.heap.now
            self.heap.at(until_ms, self._process, processor.source)

    def _other(self, incident: Incident) -> int:
        others = [number for number in self.brokers if number != self._met.number]
        return others[int(incident.draw * 1_000) % len(others)]

    def _move_leader(self, incident: Incident) -> None:
        """Ask the controller to reorder a partition's replicas."""
        found = self._partition_of(incident)
        if found is not None:
            broker, key, state = found
            replicas = list(state.replicas)
            self.rng.shuffle(replicas)
            broker.do(self._on_moved(broker, key, replicas, elects=True))

    def _reassign(self, incident: Incident) -> None:
        """Ask the controller to reassign a partition, or to cancel that."""
        found = self._partition_of(incident)
        if found is None:
            return
        broker, key, state = found
        target: list[int] | None
        if (state.adding or state.removing) and incident.draw < 0.5:
            target = None
        elif len(state.replicas) < BROKERS:
            target = list(self.brokers)
        else:
            target = [each for each in state.replicas if each != self._met.number]
            if incident.who // 16 % 2:
                # the broker gets it back later
                self.heap.at(self.heap.now + incident.length_ms, self._reassign, incident)
        broker.do(self._on_moved(broker, key, target, elects=False))

    def _partition_of(
        self, incident: Incident
    ) -> tuple[ClusterProcess, TopicPartition, PartitionState] | None:
        """The controller, the partition of an incident, and its state there."""
        for broker in self.brokers.values():
            parts = broker.parts
            if parts is not None and parts.node.control is not None and parts.node.control.is_active:
                names = (TOPIC, OFFSETS_TOPIC, OUTPUT, TRANSACTIONS_TOPIC)[: 4 if self.plan.inputs else 2]
                topic = parts.node.topics.image.topic(names[incident.who % len(names)])
                if topic is not None:
                    index = incident.who // 4 % len(topic.partitions)
                    return broker, TopicPartition(topic.name, index), topic.partitions[index]
        return None

    async def _on_moved(
        self, broker: ClusterProcess, key: TopicPartition, replicas: list[int] | None, *, elects: bool
    ) -> None:
        assert broker.parts is not None
        control = broker.parts.node.control
        assert control is not None, "it is the controller"
        self.say(f"{key} is to have replicas {replicas}")
        try:
            await control.reassign({key: replicas})
            if elects:
                await control.elect([key], unclean=False)
        except KafkaError as error:
            self.say(f"{key} was not moved: {error}")

    # --- the run ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        state, urandom = random.getstate(), os.urandom
        random.seed(self.plan.run_seed)
        # ids of topics and members, which give the order of what is in sets
        os.urandom = self.rng.randbytes
        self.touched = True
        handler = _Lines(self)
        try:
            handler.begin()
            self._form()
            start = self.heap.now
            self._over_ms = start + self.plan.faults_ms
            for incident in self.plan.incidents:
                self.heap.at(start + incident.at_ms, self._meet, incident)
            for number in range(self.plan.producers):
                self._clients.append(ClusterWriter(self, f"p{number}"))
            for _ in range(self.plan.group_members):
                self._join()
            for source in range(len(self.plan.inputs)):
                self._process(source)
            self._readers = [
                ClusterReader(self, TopicPartition(name, index))
                for name, count in self.plan.topics.items()
                for index in range(count)
            ]
            self._clients += self._readers
            self._let_pass(self._over_ms)
            self._heal()
            self._settle()
            self._compare()
        finally:
            handler.end()
            os.urandom = urandom
            random.setstate(state)

    def _form(self) -> None:
        """Let the brokers form a cluster, and create the topic."""
        self.healed = True
        for broker in self.brokers.values():
            broker.start()
        self._wait(_FORM_MS, self._not_formed)
        first = self.brokers[1]
        assert first.parts is not None
        plans = [
            TopicPlan(name, count, self.plan.configs, BROKERS) for name, count in self.plan.topics.items()
        ]
        if self.plan.unclean:
            configs = {**self.plan.configs, "unclean_leader_election_enable": True}
            plans[0] = replace(plans[0], configs=configs)
        first.do(first.parts.node.topics.carry_out(plans))
        self._wait(_FORM_MS, self._not_led)
        if self.plan.unclean and (topic := first.parts.node.image.topic(TOPIC)) is not None:
            self._unclean = topic.id
        self.healed = False

    def _not_formed(self) -> tuple[str, str] | None:
        for broker in self.brokers.values():
            parts = broker.parts
            if parts is None or len(parts.node.image.brokers) < BROKERS or parts.node.image.controller_id < 0:
                return "B8", f"{broker} does not see the others"
        return None

    def _not_led(self) -> tuple[str, str] | None:
        led = {
            (partition.topic.name, partition.index)
            for broker in self.brokers.values()
            for partition, _ in broker.leaderships()
            if partition.topic.name in self.plan.topics
        }
        return None if len(led) == sum(self.plan.topics.values()) else ("B8", "a topic has no leaders")

    def _join(self) -> None:
        member = ClusterMember(self, f"m{len(self._clients)}")
        self._members.append(member)
        self._clients.append(member)

    def _process(self, source: int) -> None:
        self.processors[source] = processor = Processor(self, f"t{len(self._clients)}", source)
        self._clients.append(processor)

    def _heal(self) -> None:
        self.say("the faults are over")
        self.healed = True
        self.links.heal()
        for broker in self.brokers.values():
            broker.heal()
        for processor in self.processors.values():
            processor.loop.freeze(0)

    def _settle(self) -> None:
        self._wait(_SETTLE_MS, self._why_unsettled)

    def _wait(self, most_ms: int, unsettled: Any) -> None:
        start = self.heap.now
        while (left := unsettled()) is not None:
            if self.heap.now - start > most_ms:
                self.fail(*left)
                return
            self._let_pass(self.heap.now + LOOK_MS)

    def _why_unsettled(self) -> tuple[str, str] | None:
        """The invariant that does not hold yet, and why; None when all is settled."""
        for client in self._clients:
            if isinstance(client, ClusterWriter) and not client.done:
                return "B8", f"{client} waits for its records"
        for processor in self.processors.values():
            if not processor.done:
                return "L6", f"{processor} is not done"
        for broker in self.brokers.values():
            if broker.parts is None or broker.parts.node.cluster is None or not broker.reachable:
                return "B8", f"{broker} does not serve"
        image = self.brokers[1].parts.node.image  # type: ignore[union-attr]
        if any(image.topic(name) is None for name in self.plan.topics):
            return "B8", "a broker does not know a topic"
        for topic in image.topics():
            for index, state in enumerate(topic.partitions):
                left = self._unsettled_at(topic.name, index, state)
                if left is not None:
                    return left
        for reader in self._readers:
            end = self._partition_at(reader.place).log_end_offset
            if reader.position < end:
                return "B8", f"{reader} is at {reader.position} of {end}"
        return self._why_uncommitted() if self._members else None

    def _unsettled_at(self, topic: str, index: int, state: PartitionState) -> tuple[str, str] | None:
        name = f"{topic}-{index}"
        if set(state.isr) != set(state.replicas) or state.adding or state.removing:
            return "B8", f"of {name} is {state}"
        found = {number: self._partition(b, topic, index) for number, b in self.brokers.items()}
        there = {number: each for number, each in found.items() if each is not None}
        if not any(each.leadership is not None for each in there.values()):
            return "B8", f"{name} has no leader"
        if set(there) != set(state.replicas):
            return "B8", f"{name} is at {sorted(there)}, its replicas are {state.replicas}"
        ends = {(p.log_end_offset, p.high_watermark, p.last_stable_offset) for p in there.values()}
        if len(ends) > 1:
            return "B8", f"{name} ends at {sorted(ends)}"
        end, *others = next(iter(ends))
        return None if {end} == set(others) else ("B8", f"{name} ends at {end}, and is read to {others}")

    def _why_uncommitted(self) -> tuple[str, str] | None:
        for index in range(self.plan.topics[TOPIC]):
            end = self._partition_at(TopicPartition(TOPIC, index)).log_end_offset
            committed = self._committed_offset(GROUP, index)
            if committed < end:
                return "B8", f"of {TOPIC}-{index} {committed} of {end} is committed"
        return None

    def _committed_offset(self, group: str, index: int) -> int:
        """The group's offset of a partition of the input."""
        for broker in self.brokers.values():
            parts = broker.parts
            if parts is not None and self._coordinates(broker, group):
                runner = parts.coordinator._shards.serving_partition(parts.coordinator.partition_of(group))
                if isinstance(runner, ShardRunner):
                    entry = runner.shard.state.durable.offset(group, TopicPartition(TOPIC, index))
                    return 0 if entry is None else entry.offset
        return 0

    def _partition_at(self, place: TopicPartition) -> Partition:
        """A partition at its leader."""
        for broker in self.brokers.values():
            found = self._partition(broker, *place)
            if found is not None and found.leadership is not None:
                return found
        raise AssertionError(f"{place} has no leader, though it is settled")

    def _partition(self, broker: ClusterProcess, topic: str, index: int) -> Partition | None:
        found = None if broker.parts is None else broker.parts.node.logs.topic(topic)
        return None if found is None else found.partitions.get(index)

    def _compare(self) -> None:
        """Compare the logs of all replicas with each other and with the clients' responses."""
        topics = self.brokers[1].parts.node.image.topics()  # type: ignore[union-attr]
        for topic in topics:
            for index in range(len(topic.partitions)):
                found = [self._partition(b, topic.name, index) for b in self.brokers.values()]
                try:
                    logs = [_content(each) for each in found if each is not None]
                except CorruptLogError as error:
                    self.fail("B7", f"a replica of {topic.name}-{index} cannot be read: {error}")
                    continue
                if any(log != logs[0] for log in logs):
                    self.fail("B7", f"the replicas of {topic.name}-{index} differ")
                if topic.name in self.plan.topics:
                    self.ledger.compare(TopicPartition(topic.name, index), _records(logs[0]))
        if self.plan.inputs:
            self.transactions.compare([self._committed_offset(PROCESSORS, each) for each in self.processors])

    def close(self) -> None:
        self.healed = True
        for client in self._clients:
            client.kill()
            vars(client).clear()
        for broker in self.brokers.values():
            broker.close()
        for session in self.metadata.sessions:
            vars(session).clear()
        vars(self.metadata).clear()
        self.heap.clear()
        self._clients.clear()
        self._members.clear()
        self._readers.clear()
        self._acted.clear()
        self.processors.clear()
        del self.happen, self._met

    def describe(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "topics": plan.topics,
            "session (ms)": plan.session_ms,
            "settings": plan.settings,
            "producers, members": (plan.producers, plan.group_members),
            "inputs": plan.inputs,
            "producer": plan.producer,
            "network": sorted(plan.network),
            "incidents": [f"{i.name}: {i.kind} at {i.at_ms / 1000:.3f}" for i in plan.incidents],
        }


class _Lines(logging.Handler):
    """Adds the brokers' log lines to the trace. An unexpected exception is a violation."""

    def __init__(self, world: ClusterWorld) -> None:
        super().__init__()
        self._world = world

    def begin(self) -> None:
        _LOG.addHandler(self)
        _LOG.propagate = False
        for name in _LOGGED:
            _LOG.getChild(name).setLevel(logging.ERROR if self._world.trace is None else logging.INFO)

    def end(self) -> None:
        for name in _LOGGED:
            _LOG.getChild(name).setLevel(logging.NOTSET)
        _LOG.propagate = True
        _LOG.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, (KohortError, OSError, CorruptLogError)):
            self._world.found("S0", f"{record.getMessage()}: {error!r}")
        self._world.say(f"    {record.getMessage()}{'' if error is None else f': {error!r}'}")


def _content(partition: Partition) -> bytes:
    """All batches of a log, from its start to its end."""
    log = partition.log
    if log is None:
        return b""
    at, parts = log.log_start_offset, []
    while at < log.log_end_offset:
        data = bytes(log.read(at, _MOST_BYTES, to_log_end=True).records)
        parts.append(data)
        for _, header in iter_batches(data):
            at = header.next_offset
    return b"".join(parts)


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    for position, header in iter_batches(data):
        for offset, _, _, value in () if header.control else decode_records(data, header, position):
            yield offset, bytes(value or b"")
