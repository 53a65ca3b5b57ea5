"""One schedule of a cluster: what it is made of, and what is looked at in its brokers meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from uuid import UUID

from ....broker.partitions.partition import Partition
from ....broker.partitions.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ....cluster import PartitionState
from ....cluster.controller import NewTopic
from ....cluster.layout import BROKERS as BROKER_ENTRIES
from ....cluster.layout import PARTITION_STATES, PartitionKey, parse_states
from ....log import CorruptLogError, decode_records
from ....protocol import KafkaError, TopicPartition, iter_batches
from ....replication import Replication
from ..brokers._process import BrokerProcess
from ..brokers._world import BrokerWorld
from ..engine._phases import Left
from ..faults._controller import ControllerRequestFaults
from ..faults._links import LinkFaults
from ..workloads._group import Committing
from ..workloads._record_ledger import RecordLedger
from ..workloads._records import Readers, Writers
from ..workloads._transactions import Transacting
from ._plan import BROKERS, OUTPUT, TOPIC, ClusterPlan

_MOST_BYTES: Final = 1 << 20


class ClusterWorld(BrokerWorld[ClusterPlan]):
    """A schedule that is about to run."""

    make_broker: type[BrokerProcess] = BrokerProcess

    def __init__(self, plan: ClusterPlan, *, checked: bool = True, traced: bool = False) -> None:
        super().__init__(plan, self.make_broker, checked=checked, traced=traced)
        self.ledger = RecordLedger(self)
        transactions = Transacting(self, plan.processors(), plan.inputs, TOPIC, OUTPUT)
        self.transactions = transactions.ledger
        self.workloads += [
            Writers(self, self.ledger, TOPIC, plan.producers),
            Committing(self, self.ledger, TOPIC, plan.group_members, plan.member_session_ms),
            transactions,
            Readers(self, self.ledger, self._read_topics(), transactions.ledger),
        ]
        moved = (TOPIC, OFFSETS_TOPIC, OUTPUT, TRANSACTIONS_TOPIC)[: 4 if plan.inputs else 2]
        self.faults += [LinkFaults(self), ControllerRequestFaults(self, moved)]
        # the leader of a partition in an epoch, and its high watermark; the newest epoch of each partition
        self._leaders: dict[tuple[UUID, int, int], int] = {}
        self._watermarks: dict[tuple[UUID, int, int], int] = {}
        # the high watermark of each leadership as it was looked at last
        self._looked_at: dict[Replication, int] = {}
        self._newest: dict[tuple[UUID, int], int] = {}
        # partitions that a broker is in sync for and has lost
        self._suspect: set[PartitionKey] = set()
        # the session of the victim that lost its disk is over
        self._is_missed = True
        # the last state of each partition whose elections may be unclean, and the topic's id
        self._known: dict[PartitionKey, PartitionState] = {}
        self._unclean: UUID | None = None

    def _read_topics(self) -> list[str]:
        """The topics that are read in order."""
        return list(self.plan.topics)

    # --- what is looked at --------------------------------------------------------------------------------

    def _look_at(self, broker: BrokerProcess) -> None:
        for partition, leadership in broker.leaderships():
            replication = leadership.replication
            if self._looked_at.get(replication) != replication.high_watermark:
                self._looked_at[replication] = replication.high_watermark
                self._look_at_led(broker, partition, replication)
            for workload in self.workloads:
                workload.on_led(broker, partition)

    def _look_at_led(self, broker: BrokerProcess, partition: Partition, replication: Replication) -> None:
        name = partition.topic.name
        key = partition.topic.id, partition.index, replication.leader_epoch
        before = self._leaders.get(key)
        if before is None:
            self._leads(broker, partition, key)
        elif before != broker.number:
            self.fail("B4", f"broker {before} and {broker} lead {name}-{partition.index} in epoch {key[2]}")
        watermark = replication.high_watermark
        if watermark < self._watermarks.get(key, 0):
            where = f"{name}-{partition.index} in epoch {key[2]}"
            self.fail("B5", f"the high watermark of {where} goes back to {watermark} at {broker}")
        self._watermarks[key] = watermark

    def _leads(self, broker: BrokerProcess, partition: Partition, key: tuple[UUID, int, int]) -> None:
        """A broker begins to lead a partition."""
        self._leaders[key] = broker.number
        name, (topic_id, index, epoch) = partition.topic.name, key
        self.say(f"{broker} leads {name}-{index} from {partition.log_end_offset} on in epoch {epoch}")
        if epoch <= self._newest.get((topic_id, index), -1):
            return  # it learns late of what is over
        self._newest[topic_id, index] = epoch
        place = TopicPartition(name, index)
        end = 0 if place in self.lossy else self.ledger.ends.get(place, 0)
        if partition.log_end_offset < end:
            self.fail(
                "B1",
                f"{broker} leads {name}-{index}, ends at {partition.log_end_offset} and lacks what was "
                f"acknowledged up to {end}",
            )

    def _is_newest(self, broker: BrokerProcess, partition: Partition) -> bool:
        topic_id = partition.topic.id
        return (
            partition.leadership is not None
            and partition.leader_epoch == self._newest.get((topic_id, partition.index))
            and self._leaders[topic_id, partition.index, partition.leader_epoch] == broker.number
        )

    def coordinates(self, broker: BrokerProcess, group: str) -> bool:
        if broker.parts is None:
            return False
        index = broker.parts.coordinator.partition_of(group)
        partition = broker.parts.node.logs.led(OFFSETS_TOPIC, index)
        return partition is not None and self._is_newest(broker, partition)

    # --- disks that lose what they have -------------------------------------------------------------------

    def lost_disk(self) -> None:
        """Note that the victim of the plan lost its disk. In-sync replicas have all acknowledged records:
        until the controller has removed the victim, another replica has to be in sync. Until its session is
        over, the victim may also get in sync, by what its leader saw of it before.
        """
        self._suspect = {key for key, _ in self._states()}
        self._is_missed = False
        self.metadata_changed()

    def metadata_changed(self) -> None:
        if self._unclean is not None:
            self._look_for_unclean_elections()
        there, victim = {int(name) for name in self.metadata.tree.children(BROKER_ENTRIES)}, self.plan.victim
        if not self._is_missed:
            # it also counts as in sync in what is made now
            self._suspect |= {key for key, _ in self._states()}
            self._is_missed = victim not in there
        if not self._suspect:
            return
        for key, state in self._states():
            if key not in self._suspect:
                continue
            if victim not in state.isr:
                if victim not in there:
                    self._suspect.remove(key)
            elif (there - {victim}).isdisjoint(state.isr) and key[0] == self._unclean:
                self._suspect.remove(key)
                self.lossy.add(TopicPartition(TOPIC, key[1]))
            elif (there - {victim}).isdisjoint(state.isr):
                # as in Apache Kafka (without KIP-966) records that only it had are lost
                self.give_up("the last replica in sync has lost its disk")
                self._suspect.clear()
                return

    def _look_for_unclean_elections(self) -> None:
        for key, state in self._states():
            if key[0] == self._unclean:
                before = self._known.get(key, state)
                if state.leader >= 0 and state.leader not in before.isr:
                    self.say(f"broker {state.leader} is elected for {TOPIC}-{key[1]} and was not in sync")
                    self.lossy.add(TopicPartition(TOPIC, key[1]))
                self._known[key] = state

    def _states(self) -> Iterator[tuple[PartitionKey, PartitionState]]:
        tree = self.metadata.tree
        for name in tree.children(PARTITION_STATES):
            entry = tree.get(f"{PARTITION_STATES}/{name}")
            if entry is not None:
                yield from parse_states(entry.value).items()

    # --- the run ------------------------------------------------------------------------------------------

    def _topic_plans(self) -> list[NewTopic]:
        plans = super()._topic_plans()
        if self.plan.unclean:
            configs = {**self.plan.configs, "unclean_leader_election_enable": True}
            plans[0] = replace(plans[0], configs=configs)
        return plans

    def _form(self) -> None:
        super()._form()
        first = self.brokers[1].parts
        if self.plan.unclean and first is not None and (topic := first.node.image.topic(TOPIC)) is not None:
            self._unclean = topic.id

    def _not_formed(self) -> Left:
        for broker in self.brokers.values():
            parts = broker.parts
            if parts is None or len(parts.node.image.brokers) < BROKERS or parts.node.image.controller_id < 0:
                return "B8", f"{broker} does not see the others"
        return None

    def _not_led(self) -> Left:
        led = {
            (partition.topic.name, partition.index)
            for broker in self.brokers.values()
            for partition, _ in broker.leaderships()
            if partition.topic.name in self.plan.topics
        }
        return None if len(led) == sum(self.plan.topics.values()) else ("B8", "a topic has no leaders")

    def _why_unsettled(self) -> Left:
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
        return super()._why_unsettled()

    def _unsettled_at(self, topic: str, index: int, state: PartitionState) -> Left:
        name = f"{topic}-{index}"
        self._look_for_lone_damage(name, topic, index, state)
        if set(state.isr) != set(state.replicas) or state.adding or state.removing:
            return "B8", f"of {name} is {state}"
        found = {number: self.replica(b, topic, index) for number, b in self.brokers.items()}
        there = {number: each for number, each in found.items() if each is not None}
        leader = next((each for each in there.values() if each.leadership is not None), None)
        if leader is None:
            return "B8", f"{name} has no leader"
        if set(there) != set(state.replicas):
            return "B8", f"{name} is at {sorted(there)}, its replicas are {state.replicas}"
        try:
            ends = {(p.log_end_offset, p.high_watermark, p.last_stable_offset) for p in there.values()}
        except KafkaError as error:
            return "B8", str(error)  # a thread reads it
        if len(ends) > 1:
            return "B8", f"{name} ends at {sorted(ends)}"
        # one that led when records were deleted, and was replaced before the others knew, begins later:
        # nobody was told that they are gone (as in Apache Kafka)
        if any(each.log_start_offset < leader.log_start_offset for each in there.values()):
            return "B8", f"{name} begins at {leader.log_start_offset}, which a replica does not follow"
        end, *others = next(iter(ends))
        return None if {end} == set(others) else ("B8", f"{name} ends at {end}, and is read to {others}")

    def _look_for_lone_damage(self, name: str, topic: str, index: int, state: PartitionState) -> None:
        """Note that the last replica in sync has lost power, and the middle of its log. It serves what is
        sound around that; nobody can copy it until its operator has removed records (DeleteRecords).
        """
        if self.checked and state.isr == (state.leader,):
            leader = self.replica(self.brokers[state.leader], topic, index)
            if leader is not None and leader.log is not None and leader.log.is_damaged:
                self.give_up(f"the last replica of {name} in sync is damaged")

    def _check(self) -> None:
        """Compare the logs of all replicas with each other and with the clients' responses."""
        topics = self.brokers[1].parts.node.image.topics()  # type: ignore[union-attr]
        for topic in topics:
            for index in range(len(topic.partitions)):
                found = [self.replica(b, topic.name, index) for b in self.brokers.values()]
                there = [each for each in found if each is not None]
                begins = max((each.log_start_offset for each in there), default=0)
                try:
                    logs = [_content(each, begins) for each in there]
                except CorruptLogError as error:
                    self.fail("B7", f"a replica of {topic.name}-{index} cannot be read: {error}")
                    continue
                if any(log != logs[0] for log in logs):
                    self.fail("B7", f"the replicas of {topic.name}-{index} differ")
                if topic.name in self.plan.topics:
                    self.ledger.compare(TopicPartition(topic.name, index), _records(_content(there[0])))
        super()._check()

    def describe(self) -> dict[str, object]:
        plan = self.plan
        return super().describe() | {
            "producers, members": (plan.producers, plan.group_members),
            "inputs": plan.inputs,
        }


def _content(partition: Partition, begins: int = 0) -> bytes:
    """All batches of a log, from its start or from ``begins`` to its end."""
    log = partition.log
    if log is None:
        return b""
    at, parts = max(begins, log.log_start_offset), []
    while at < log.log_end_offset:
        data = bytes(log.read(at, _MOST_BYTES, to_log_end=True).records)
        parts.append(data)
        for _, header in iter_batches(data):
            at = header.next_offset
    return b"".join(parts)


def read_values(partition: Partition) -> dict[int, bytes]:
    """The records of a log by offset, whether of transactions that were committed or not."""
    return dict(_records(_content(partition)))


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    for position, header in iter_batches(data):
        for offset, _, _, value in () if header.control else decode_records(data, header, position):
            yield offset, bytes(value or b"")
