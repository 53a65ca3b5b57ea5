"""Transactions: processes turn numbers into records, each exactly once; positions are committed with the
output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ....client import Cluster
from ....client.transactions import GroupMetadata
from ....consumer import AsyncGroupConsumer, ConsumerError
from ....producer import Producer, ProducerFencedError, TransactionAbortableError
from ....protocol import ApiKey, KohortError, TopicPartition
from ..brokers._clients import ClientProcess
from ..brokers._world import AnyWorld
from ..engine._loop import AnyFuture
from ..engine._network import SimulatedCall
from ..engine._phases import PRODUCE_MS, Left
from ..engine._plan import Incident
from ._transaction_ledger import EndOutcome, PlannedTransaction, TransactionLedger
from ._workload import Workload

PROCESSORS: Final = "processors"

_AGAIN_S: Final = 0.03
#: How often a process looks for more numbers, and its group for what it is assigned.
_IDLE_MS: Final = 50
#: How often the end of a transaction is requested before its producer is given up.
_TRIES: Final = 3
#: What does not arrive again later. The old protocol has no defence against an EndTxn, or offsets, that come
#: when the next transaction of the same epoch is open: that is what KIP-890 is for.
_NEVER_LATE: Final = (
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
)


@dataclass(frozen=True, slots=True)
class ProcessorPlan:
    """One process that turns the numbers of an input partition into output. ``aborts`` and ``idles`` are the
    probabilities that a transaction is aborted, or left open for long.
    """

    name: str
    transactional_id: str
    source: int
    aborts: float
    idles: float
    most_records: int = 3
    pauses_ms: tuple[int, ...] = (0,)
    starts_ms: int = 0
    #: Whether its first write adds the partition (KIP-890).
    adds_itself: bool = True
    #: Whether its input is what its group assigns to it, and its settings as a member.
    in_group: bool = False
    member: tuple[tuple[str, object], ...] = ()


class Transacting(Workload):
    """Processes as planned work on the partitions of ``source``, which have ``ends`` numbers, and write to
    ``output``. With ``grows`` there are more numbers until the faults are over.
    """

    def __init__(
        self,
        world: AnyWorld,
        plans: Sequence[ProcessorPlan],
        ends: Iterable[int],
        source: str,
        output: str,
        *,
        grows: bool = False,
    ) -> None:
        self.world = world
        self.source = source
        self.ledger = TransactionLedger(world, ends, output, world.plan.topics.get(output, 0))
        #: Who has begun last of each plan.
        self.processors: dict[str, Processor] = {}
        self._now = {plan.name: plan for plan in plans}
        self._grows = grows
        self._all: list[Processor] = []

    def start(self) -> None:
        for plan in self._now.values():
            if plan.starts_ms:
                self.world.heap.at(self.world.heap.now + plan.starts_ms, self._begin, plan)
            else:
                self._begin(plan)
        if self._grows:
            self._grow()

    def _begin(self, plan: ProcessorPlan) -> None:
        present = self.processors.get(plan.name)
        if self._now[plan.name] is not plan or (self.world.healed and present is not None and present.alive):
            return
        make = MemberProcessor if plan.in_group else Processor
        self.processors[plan.name] = made = make(self, f"t{len(self.world.clients)}", plan)
        self._all.append(made)
        self.world.clients.append(made)

    def _grow(self) -> None:
        rng, ends = self.world.rng, self.ledger.ends
        if not self.world.healed:
            worked_on = {plan.source for plan in self._now.values() if not plan.in_group}
            for source in worked_on or range(len(ends)):
                if rng.random() < 0.5:
                    ends[source] += rng.randint(1, 5)
            self.world.heap.at(self.world.heap.now + PRODUCE_MS, self._grow)

    @property
    def is_over(self) -> bool:
        """Return whether there will be no more numbers."""
        return self.world.healed or not self._grows

    # --- what happens -------------------------------------------------------------------------------------

    def meet(self, incident: Incident) -> bool:
        present = list(self.processors.values())
        if not incident.kind.startswith("processor") or not present:
            return False
        processor, until_ms = present[incident.who % len(present)], self.world.heap.now + incident.length_ms
        if incident.kind == "processor-pause":
            processor.loop.freeze(until_ms)
        elif incident.kind == "processor-successor":
            self._begin(self._succeed(processor.plan))
        elif not processor.done:
            if incident.kind == "processor-kill":
                processor.kill()
            else:
                until_ms = self.world.heap.now
            self.world.heap.at(until_ms, self._begin, processor.plan)
        return True

    def _succeed(self, plan: ProcessorPlan) -> ProcessorPlan:
        """The plan of who follows on all processes of an input with another transactional id: what the last
        one has left open ends when its time is over, and its offsets are pending until then. In a group they
        may live on: it is the group that fences them.
        """
        for processor in self._all:
            if processor.alive and processor.plan.source == plan.source and not plan.in_group:
                processor.kill()
        made = replace(plan, transactional_id=f"{plan.transactional_id}-{len(self._all)}")
        self._now[plan.name] = made
        return made

    def heal(self) -> None:
        for processor in self.processors.values():
            processor.loop.freeze(0)

    def unsettled(self) -> Left:
        for processor in self.processors.values():
            if not processor.done and not processor.plan.in_group:
                return "L6", f"{processor} is not done"
        for source, end in enumerate(self.ledger.ends):
            if (committed := self._committed(source)) < end:
                return "L6", f"of input {source} {committed} of {end} is committed"
        return None

    def check(self) -> None:
        self.ledger.compare([self._committed(source) for source in range(len(self.ledger.ends))])

    def _committed(self, source: int) -> int:
        return self.world.committed_offset(PROCESSORS, TopicPartition(self.source, source))


class Processor(ClientProcess):
    """Works on one input with the transactional producer as it ships, until all of it is committed.

    Inputs are numbers; how far one is done is committed as the offset of a partition. Another process may
    begin with its transactional id: the older one ends when it notices.
    """

    def __init__(self, work: Transacting, name: str, plan: ProcessorPlan) -> None:
        self.plan = plan
        self._work = work
        self._ledger = work.ledger
        super().__init__(work.world, name)
        self.features = {**self.features, "transaction.version": 2 if plan.adds_itself else 0}

    @property
    def _is_newest(self) -> bool:
        return self._work.processors[self.plan.name] is self

    async def run(self) -> None:
        while self._is_newest or not self.world.healed:
            try:
                await self._process()
                return
            except ProducerFencedError as error:
                self.world.say(f"{self} is fenced: {error}")
                if not self._is_newest:
                    return
            except (KohortError, ConsumerError) as error:
                self.world.say(f"{self} begins anew: {error!r}")
            await asyncio.sleep(_AGAIN_S)

    def _cluster(self) -> Cluster:
        retries = {name: value for name, value in self.world.plan.producer.items() if name.startswith("re")}
        return Cluster(self.world.bootstrap, **retries, default_api_timeout_ms=10_000)

    def _producer(self, cluster: Cluster) -> Producer:
        plan = self.world.plan
        return Producer.on_cluster(
            cluster,
            transactional_id=self.plan.transactional_id,
            transaction_timeout_ms=plan.timeout_ms,
            max_block_ms=10_000,
            **plan.producer,
        )

    async def _process(self) -> None:
        source, ends = self.plan.source, self._ledger.ends
        place = TopicPartition(self._work.source, source)
        async with self._cluster() as cluster, self._producer(cluster) as producer:
            position = await self._committed(cluster, place)
            while position < ends[source] or not self._work.is_over:
                if position < ends[source]:
                    position = await self._transact(producer, place, position, PROCESSORS)
                    await asyncio.sleep(self.rng.choice(self.plan.pauses_ms) / 1_000)
                else:
                    await asyncio.sleep(_IDLE_MS / 1_000)

    async def _committed(self, cluster: Cluster, place: TopicPartition) -> int:
        found = (await cluster.committed(PROCESSORS, [place])).get(place)
        return 0 if found is None else max(found.offset, 0)

    async def _transact(
        self, producer: Producer, place: TopicPartition, position: int, group: GroupMetadata | str
    ) -> int:
        """Run one transaction with the next numbers; return the position after the committed ones."""
        world, plan, ledger, source = self.world, self.plan, self._ledger, place.partition
        end = min(ledger.ends[source], position + self.rng.randint(1, plan.most_records))
        transaction = ledger.begin(self.name, source, position, end)
        producer.begin_transaction()
        try:
            for offset in range(position, end):
                await self._send(producer, transaction, offset)
            if not world.healed and self.rng.random() < plan.idles:
                await asyncio.sleep(self.rng.random() * 2 * world.plan.timeout_ms / 1_000)
            if world.healed or self.rng.random() >= plan.aborts:
                await producer.send_offsets({place: end}, group)
                transaction.outcome = EndOutcome.COMMITTING
                await self._end_transaction(producer.commit_transaction)
                ledger.on_committed(transaction)
                return end
        except TransactionAbortableError as error:
            world.say(f"{self} aborts {transaction}: {error}")
            transaction.outcome = EndOutcome.OPEN
        await self._end_transaction(producer.abort_transaction)
        transaction.outcome = EndOutcome.ABORTED
        return position

    async def _send(self, producer: Producer, transaction: PlannedTransaction, offset: int) -> None:
        topic = self._ledger.topic
        partition = self.rng.randrange(self.world.plan.topics[topic])
        value = self._ledger.write(transaction, partition, offset)
        sent = await producer.send(topic, value, partition=partition, timestamp_ms=self.world.clock_ms())
        sent.add_done_callback(_see)

    async def _end_transaction(self, end: Callable[[], Awaitable[None]]) -> None:
        """End a transaction; repeat that while its outcome is unknown."""
        for left in reversed(range(_TRIES)):
            try:
                await end()
                return
            except (TransactionAbortableError, ProducerFencedError):
                raise
            except KohortError:
                if not left:
                    raise
            await asyncio.sleep(_AGAIN_S)

    # --- its requests -------------------------------------------------------------------------------------

    def sending(self, call: SimulatedCall, answer: AnyFuture) -> None:
        key = call.api_key
        call.at_once = key in _NEVER_LATE and not self.plan.adds_itself
        if key in (ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN):
            newest = self._ledger.newest.get(self.plan.transactional_id, (-1, -1))
            answer.add_done_callback(partial(self._on_answered, call, newest))
        if self.world.trace is not None and key not in (ApiKey.METADATA, ApiKey.FIND_COORDINATOR):
            self.world.say(f"{call} is sent")

    def _on_answered(self, call: SimulatedCall, newest: tuple[int, int], answer: AnyFuture) -> None:
        if answer.cancelled() or answer.exception() is not None or (body := answer.result()).error_code:
            return
        if call.api_key == ApiKey.END_TXN and call.body.committed:
            who = (call.body.producer_id, call.body.producer_epoch)
            if who < newest:
                self.world.found("T7", f"{self} commits as {who}, though {newest} was known")
        if getattr(body, "producer_id", -1) >= 0:
            identity = (body.producer_id, body.producer_epoch)
            self._ledger.on_identified(self.plan.transactional_id, identity)


class MemberProcessor(Processor):
    """Works on what its group assigns to it, with the consumer as it ships; the group fences it (KIP-447)."""

    def __init__(self, work: Transacting, name: str, plan: ProcessorPlan) -> None:
        # what it is assigned: another object with each assignment
        self._assigned: dict[TopicPartition, object] = {}
        self._positions: dict[TopicPartition, int] = {}
        super().__init__(work, name, plan)

    async def _process(self) -> None:
        self._on_gone(list(self._assigned))
        async with (
            self._cluster() as cluster,
            self._producer(cluster) as producer,
            AsyncGroupConsumer(
                self._work.source,
                bootstrap=self.world.bootstrap,
                group=PROCESSORS,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                on_partitions_assigned=self._on_assigned,
                on_partitions_revoked=self._on_gone,
                on_partitions_lost=self._on_gone,
                **{**self.world.plan.consumer, **dict(self.plan.member)},
            ) as consumer,
        ):
            while True:
                # raises what has ended its membership
                await consumer.getmany(timeout_ms=0 if self._due() else _IDLE_MS)
                await self._find_positions(cluster)
                if due := self._due():
                    place, member = self.rng.choice(due), consumer.group_metadata()
                    assigned, position = self._assigned[place], self._positions[place]
                    position = await self._transact(producer, place, position, member)
                    if self._assigned.get(place) is assigned:
                        self._positions[place] = position

    def _on_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        self._assigned.update((place, object()) for place in partitions)

    def _on_gone(self, partitions: Iterable[TopicPartition]) -> None:
        for place in partitions:
            self._assigned.pop(place, None)
            self._positions.pop(place, None)

    def _due(self) -> list[TopicPartition]:
        """Partitions with numbers that are not done."""
        ends = self._ledger.ends
        return [place for place, position in self._positions.items() if position < ends[place.partition]]

    async def _find_positions(self, cluster: Cluster) -> None:
        for place, assigned in list(self._assigned.items()):
            if place not in self._positions:
                position = await self._committed(cluster, place)
                if self._assigned.get(place) is assigned:
                    self._positions[place] = position


def _see(sent: AnyFuture) -> None:
    """Ignore the result of a send: the outcome of the transaction decides about its records."""
    if not sent.cancelled():
        sent.exception()
