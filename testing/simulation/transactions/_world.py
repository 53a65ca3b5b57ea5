"""One schedule of transactions: the broker, the processes, and what is looked at while they work."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Final

from ....broker.partitions.partition import Partition
from ....broker.partitions.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ....log import decode_records
from ....protocol import TopicPartition, iter_batches
from ....statemachine import TRANSACTION_TRANSITIONS, TransactionState
from ....transactions import Transaction
from ....transactions.records import decode
from .._plan import Incident
from .._world import LOOK_MS, PRODUCE_MS, Phases
from ._broker import LoneProcess
from ._ledger import TransactionLedger
from ._member import ConsumerProducer, MemberProducer
from ._plan import GROUP, INPUT, OUTPUT, ProducerPlan, TransactionPlan
from ._process import CommittedReader, SimulatedProducer, TransactionProcess

#: How long until all is settled, in addition to twice the timeout of a transaction.
_SETTLE_MS: Final = 6_000

#: More records than any schedule writes at once.
_MOST_BYTES: Final = 1 << 20
_AT_REST: Final = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
#: What may follow on each other in the log: the table's rows, and the fence, which is never in the log.
_ROWS: Final = {(row.source, row.target) for row in TRANSACTION_TRANSITIONS} | {
    (TransactionState.ONGOING, TransactionState.PREPARE_ABORT)
}


class TransactionWorld(Phases[TransactionPlan]):
    """A schedule that is about to run."""

    def __init__(self, plan: TransactionPlan, *, checked: bool = True, traced: bool = False) -> None:
        super().__init__(plan, checked=checked, traced=traced)
        self.broker = LoneProcess(self)
        self.ledger = TransactionLedger(self, [0] * plan.topics[INPUT], plan.topics[OUTPUT])
        self.producers: list[SimulatedProducer] = []
        self.readers: list[CommittedReader] = []
        self._all: list[TransactionProcess] = []
        # who works now, by the name of the first plan
        self._now: dict[str, ProducerPlan] = {}
        self._stable: dict[TopicPartition, int] = {}
        # a marker that was not flushed yet is written again: its end is decided
        self.broker.lost_power = self._stable.clear
        # how far each partition of __transaction_state was looked at, and what its ids were last
        self._looked: dict[int, int] = {}
        self._last: dict[str, Transaction] = {}
        self.happen = self._happen

    @property
    def machine(self) -> LoneProcess:
        return self.broker

    def connections_broke(self) -> None:
        for process in self._all:
            if process.loop.alive:
                late_ms = int(self.rng.random() * 20)
                self.heap.at(self.heap.now + late_ms, process.reset, "closed by the broker")

    # --- what is looked at --------------------------------------------------------------------------------

    def look(self) -> None:
        super().look()
        self.touched = True  # every event counts
        self.broker.look()
        for partition in self.broker.partitions:
            if partition.log is None or partition.damage is not None or partition.log.offline:
                continue
            name = partition.topic.name
            if name == TRANSACTIONS_TOPIC:
                self._look_at_records(partition)
            elif name == OUTPUT:
                self._look_at_stable(partition)

    def _look_at_stable(self, partition: Partition) -> None:
        key = TopicPartition(OUTPUT, partition.index)
        stable = partition.last_stable_offset
        if stable < self._stable.get(key, 0):
            self.fail("T5", f"the last stable offset of {key} goes from {self._stable[key]} to {stable}")
        self._stable[key] = stable

    def _look_at_records(self, partition: Partition) -> None:
        """Each record that is new to us follows on the last one of its id."""
        log = partition.log
        assert log is not None
        at, end = self._looked.get(partition.index, 0), log.log_end_offset
        self._looked[partition.index] = end
        while at < end:
            data = log.read(at, _MOST_BYTES, to_log_end=True).records
            for position, header in iter_batches(data):
                for offset, _, key, value in decode_records(data, header, position):
                    record = decode(key, value)
                    if offset >= at and isinstance(record, Transaction):
                        self._look_at_record(record)
                behind = header.next_offset
            at = behind

    def _look_at_record(self, now: Transaction) -> None:
        name = now.transactional_id
        last, self._last[name] = self._last.get(name), now
        if last is None:
            return
        if (now.producer_id, now.producer_epoch) < (last.producer_id, last.producer_epoch):
            self.fail("T6", f"{last} is followed by {now}")
        if (last.state, now.state) not in _ROWS:
            self.fail("T6", f"{name} goes from {last.state} to {now.state}")

    # --- what happens -------------------------------------------------------------------------------------

    def _happen(self, incident: Incident) -> None:
        living = [producer for producer in self.producers if producer.alive]
        if not living:
            return
        producer = living[incident.who % len(living)]
        self.say(f"... {producer}")
        if incident.kind == "producer-pause":
            producer.loop.freeze(self.heap.now + incident.length_ms)
            return
        if incident.kind == "successor":
            self._start(self._succeed(producer.plan))
            return
        if incident.kind == "producer-kill":
            producer.kill()
        late_ms = incident.length_ms if incident.draw < 0.5 else int(incident.draw * 100)
        self.heap.at(self.heap.now + late_ms, self._begin, producer.plan)

    def _succeed(self, plan: ProducerPlan) -> ProducerPlan:
        """The plan of who follows on all producers of an input with another transactional id: what the last
        one has left open ends when its time is over, and its offsets are pending until then. In a group they
        may live on: it is the group that fences them.
        """
        for producer in self.producers:
            if producer.alive and producer.plan.source == plan.source and not plan.in_group:
                producer.kill()
        name = f"{plan.name}-{len(self.producers)}"
        self._now[plan.name] = made = replace(plan, transactional_id=name)
        return made

    def _begin(self, plan: ProducerPlan) -> None:
        if not self.healed and self._now.setdefault(plan.name, plan) is plan:
            self._start(plan)

    def _start(self, plan: ProducerPlan) -> SimulatedProducer:
        in_group = ConsumerProducer if plan.consumer else MemberProducer
        make = in_group if plan.in_group else SimulatedProducer
        made = make(self, self.ledger, self.broker, f"{plan.name}.{len(self.producers)}", plan)
        self.say(f"{made} starts")
        self.producers.append(made)
        self._all.append(made)
        return made

    def _produce(self) -> None:
        if not self.healed:
            for source in range(len(self.ledger.ends)):
                if self.rng.random() < 0.5:
                    self.ledger.ends[source] += self.rng.randint(1, 5)
            self.heap.at(self.heap.now + PRODUCE_MS, self._produce)

    # --- the run ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        state = random.getstate()
        random.seed(self.plan.run_seed)
        self.touched = True
        try:
            self.broker.start()
            for plan in self.plan.producers:
                self.heap.at(plan.starts_ms, self._begin, plan)
            versions = self.plan.producers[0].versions
            for number in range(self.plan.topics[OUTPUT]):
                self.readers.append(CommittedReader(self, self.ledger, self.broker, number, versions))
            self._all += self.readers
            self._plan_incidents()
            self._produce()
            self._let_pass(self.plan.faults_ms)
            self._heal()
            self._settle()
            self.ledger.compare([self._committed_offset(source) for source in range(len(self.ledger.ends))])
        finally:
            random.setstate(state)

    def _heal(self) -> None:
        self.say("the faults are over")
        self.healed = True
        self.broker.heal()
        for process in self._all:
            process.loop.freeze(0)
            process.reset("the network was mended")
        for plan in self._now.values():
            living = [each for each in self.producers if each.alive and each.plan.name == plan.name]
            if not living:
                living = [self._start(self._succeed(plan) if self.rng.random() < 0.5 else plan)]
            living[-1].stays = True
        if not self.producers[0].plan.in_group:
            for source in set(range(len(self.ledger.ends))) - {each.source for each in self._now.values()}:
                self.ledger.ends[source] = 0  # its producer is left out

    def _settle(self) -> None:
        start = self.heap.now
        while (left := self._still_waited_for()) is not None:
            if self.heap.now - start > 2 * self.plan.timeout_ms + _SETTLE_MS:
                self.fail(*left)
                return
            self._let_pass(self.heap.now + LOOK_MS)

    def _still_waited_for(self) -> tuple[str, str] | None:
        """The invariant that does not hold yet, and why; None when all is settled."""
        parts = self.broker.parts
        if parts is None or not self.broker.reachable:
            return "L6", "the broker does not serve"
        for producer in self.producers:
            if producer.stays and not producer.waits:
                return "L6", f"{producer} is at {producer.positions} of {self.ledger.ends}"
        found = parts.transactions.transactions()
        for each in found if not isinstance(found, int) else ():
            if each.state not in _AT_REST:
                return "L6", f"{each} is not over"
        for partition in self.broker.partitions:
            if partition.topic.name not in (OUTPUT, OFFSETS_TOPIC):
                continue
            if partition.last_stable_offset != partition.log_end_offset:
                return "T5", f"the last stable offset of {partition} is {partition.last_stable_offset}"
        for source, end in enumerate(self.ledger.ends):
            if self._committed_offset(source) < end:
                return "L6", f"of input {source} {self._committed_offset(source)} of {end} is committed"
        if parts.coordinator.open_transactions():
            return "T5", f"pending offsets are left: {parts.coordinator.open_transactions()}"
        for reader in self.readers:
            end = parts.node.logs.partition(OUTPUT, reader.partition).log_end_offset
            if reader.position < end:
                return "L6", f"{reader} is at {reader.position} of {end}"
        return None

    def _committed_offset(self, source: int) -> int:
        assert self.broker.parts is not None
        for runner in self.broker.parts.coordinator._shards:
            entry = runner.shard.state.durable.offset(GROUP, TopicPartition(INPUT, source))
            if entry is not None:
                return entry.offset
        return 0

    def close(self) -> None:
        for process in self._all:
            process.kill()
            vars(process).clear()
        self.broker.close()
        self.heap.clear()
        for part in (self.producers, self.readers, self._all):
            part.clear()
        del self.happen

    def describe(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "topics": plan.topics,
            "timeout (ms)": plan.timeout_ms,
            "fsync": plan.fsync,
            "producers": plan.producers,
            "settings": plan.settings,
            "network": sorted(plan.network),
            "incidents": [f"{i.name}: {i.kind} at {i.at_ms / 1000:.3f}" for i in plan.incidents],
        }
