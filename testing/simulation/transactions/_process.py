"""Producers and readers: one process each, with its own event loop and connection."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any, Final

from ....client.errors import BrokerConnectionError
from ....consumer.reading.fetched_records import ChunkReader
from ....protocol import ApiKey, ErrorCode, RequestContext, TopicPartition, build_batch
from ....protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ....protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ....protocol.messages.end_txn import EndTxnRequest
from ....protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ....protocol.messages.init_producer_id import InitProducerIdRequest
from ....protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ....protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ....protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from .._loop import ProcessLoop
from .._network import Receiver, SimulatedCall, SimulatedLink
from .._schedule import Schedule
from ._ledger import EndOutcome, PlannedTransaction, TransactionLedger
from ._plan import GROUP, INPUT, OUTPUT, ProducerPlan, TransactionPlan

#: Longest time for a response, in ms, and the pause after a missing one, in seconds.
TIMEOUT_MS: Final = 1_000
RETRY_S: Final = 0.03
_READ_COMMITTED: Final = 1

AGAIN: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
_FENCED: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
#: The transaction cannot be committed any more.
_BROKEN: Final = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)


def _brief(body: Any) -> str:
    """The fields of a message that differ from the default, without their names."""
    if isinstance(body, (list, tuple)) and not hasattr(body, "_field_defaults"):
        return "[" + ", ".join(map(_brief, body)) + "]"
    if not hasattr(body, "_field_defaults"):
        return f"{len(body)} bytes" if isinstance(body, bytes | bytearray | memoryview) else str(body)
    told = [
        _brief(value)
        for name, value in zip(body._fields, body, strict=True)
        if value not in (body._field_defaults.get(name), None, -1)
    ]
    return "(" + ", ".join(told) + ")"


class Fenced(Exception):  # noqa: N818
    """Another process has the transactional id."""


class Broken(Exception):  # noqa: N818
    """The transaction must be aborted."""


class _Nowhere:
    reachable = False

    def receive(self, call: SimulatedCall) -> None:
        raise AssertionError(f"{call} cannot arrive")


class _OnceCall(SimulatedCall):
    """A request that arrives once. The old protocol has no defence against an EndTxn, or offsets, that come
    when the next transaction of the same epoch is open: that is what KIP-890 is for.
    """

    __slots__ = ()

    def again(self) -> SimulatedCall:
        connection = SimulatedLink(self.connection.schedule, _Nowhere())
        return SimulatedCall(self.client, connection, self.api_key, self.body)


class TransactionProcess:
    """One process, with one connection."""

    def __init__(
        self,
        schedule: Schedule[TransactionPlan],
        ledger: TransactionLedger,
        broker: Receiver,
        name: str,
        versions: dict[int, int],
    ) -> None:
        self.name = name
        self.versions = versions
        self.context = RequestContext(name)
        self.schedule = schedule
        self.ledger = ledger
        self.rng = schedule.rng
        self.connection = SimulatedLink(schedule, broker)
        self.connections = [self.connection]
        self.done = False
        self.loop = ProcessLoop(  # type: ignore[abstract]
            schedule.heap, failed=self._on_error, delay_ms=lambda _: 1
        )
        self.loop.create_task(self._main())

    def __repr__(self) -> str:
        return self.name

    @property
    def alive(self) -> bool:
        return self.loop.alive and not self.done

    def kill(self) -> None:
        for connection in self.connections:
            connection.close()
        self.loop.clear()

    def reset(self, why: str) -> None:
        """Break its connections."""
        for connection in self.connections:
            connection.reset(why)

    @abstractmethod
    async def run(self) -> None:
        """The program."""

    async def _main(self) -> None:
        await self.run()
        self.done = True
        self.schedule.say(f"{self} ends")

    def _on_error(self, context: dict[str, Any]) -> None:
        self.schedule.found("S0", f"{self}: {context['message']}: {context.get('exception')!r}")

    async def ask(self, body: Any, *, once: bool = False, connection: SimulatedLink | None = None) -> Any:
        """Send a request and return the answer. Raises BrokerConnectionError."""
        make = _OnceCall if once else SimulatedCall
        future = self.loop.create_future()
        call = make(self, connection or self.connection, body.API_KEY, body, future)
        self._say("asks", call, body)
        call.connection.send(call, TIMEOUT_MS)
        return await future

    def on_answer(self, call: SimulatedCall, body: Any) -> None:
        self._say("is answered", call, body)
        if not call.memo.done():
            call.memo.set_result(body)

    def _say(self, what: str, call: SimulatedCall, body: Any) -> None:
        if self.schedule.trace is not None:
            self.schedule.say(f"{self} {what} {ApiKey(call.api_key).name} {_brief(body)}")

    def on_failure(self, call: SimulatedCall, error: BrokerConnectionError) -> None:
        if not call.memo.done():
            call.memo.set_exception(error)


class SimulatedProducer(TransactionProcess):
    """Turns records of its input partition into output, some in each transaction, until all are done.

    One that ``stays`` starts again when it is fenced; others end then, once the faults are over.
    """

    #: Errors by which its transaction cannot be committed any more, and by which it is not the newest.
    broken = _BROKEN
    fenced = _FENCED

    def __init__(
        self,
        schedule: Schedule[TransactionPlan],
        ledger: TransactionLedger,
        broker: Receiver,
        name: str,
        plan: ProducerPlan,
    ) -> None:
        self.plan = plan
        self.stays = False
        #: Input partitions that it works on; what is before these offsets is done, as far as it knows.
        self.positions: dict[int, int] = {}
        self._identity = (-1, -1)
        self._sequences: dict[int, int] = {}
        super().__init__(schedule, ledger, broker, name, plan.versions)

    @property
    def waits(self) -> bool:
        """Return whether it has done everything."""
        ends = self.ledger.ends
        return bool(self.positions) and all(ends[source] == at for source, at in self.positions.items())

    async def run(self) -> None:
        while True:
            try:
                await self._initialize()
                await self._work()
            except Broken:
                # a restarted producer has its open transaction aborted
                if self.rng.random() < 0.5:
                    self._identity = (-1, -1)
            except Fenced:
                if not self.stays and (self.schedule.healed or self.rng.random() < 0.5):
                    return
                self._identity = (-1, -1)
            self.positions = {}
            await asyncio.sleep(self.rng.random() * 0.2)

    async def _initialize(self) -> None:
        init = InitProducerIdRequest(
            self.plan.transactional_id, self.schedule.plan.timeout_ms, *self._identity
        )
        answer = await self._repeat_until_done(init, lambda answer: answer.error_code)
        self._have(answer.producer_id, answer.producer_epoch)

    def _have(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != self._identity:
            self._identity = (producer_id, epoch)
            self._sequences.clear()
        self.ledger.on_identified(self.plan.transactional_id, self._identity)

    async def _work(self) -> None:
        source = self.plan.source
        self.positions = {source: await self._committed_offset(source)}
        while True:
            await self._transact(source)

    async def _transact(self, source: int) -> None:
        """Run one transaction with the next records of an input partition."""
        position = self.positions[source]
        end = min(self.ledger.ends[source], position + self.rng.randint(1, self.plan.most_records))
        if end <= position:
            await asyncio.sleep(0.05)
            return
        transaction = self.ledger.begin(self.name, source, position, end)
        await self._write(transaction)
        if not self.schedule.healed and self.rng.random() < self.plan.idles:
            await asyncio.sleep(self.rng.random() * 2 * self.schedule.plan.timeout_ms / 1_000)
        if not self.schedule.healed and self.rng.random() < self.plan.aborts:
            await self._end(transaction, committed=False)
        else:
            await self._commit_offset(source, end)
            await self._end(transaction, committed=True)
            self.positions[source] = end

    async def _committed_offset(self, source: int) -> int:
        topics = [OffsetFetchRequestTopics(INPUT, partition_indexes=[source])]
        fetch = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(GROUP, topics=topics)], require_stable=True
        )

        def error(answer: Any) -> int:
            (found,) = answer.groups
            return int(found.error_code or found.topics[0].partitions[0].error_code)

        answer = await self._repeat_until_done(fetch, error)
        return max(int(answer.groups[0].topics[0].partitions[0].committed_offset), 0)

    async def _write(self, transaction: PlannedTransaction) -> None:
        partitions = range(self.schedule.plan.topics[OUTPUT])
        batches: list[tuple[int, list[bytes]]] = []
        for offset in range(transaction.start, transaction.end):
            partition = self.rng.choice(partitions)
            value = self.ledger.write(transaction, partition, offset)
            if batches and batches[-1][0] == partition and self.rng.random() < 0.7:
                batches[-1][1].append(value)
            else:
                batches.append((partition, [value]))
        if not self.plan.adds_itself:
            topics = [AddPartitionsToTxnTopic(OUTPUT, sorted(transaction.output))]
            add = AddPartitionsToTxnRequest((), *self._me(), topics)
            await self._repeat_until_done(
                add,
                lambda answer: max(
                    each.partition_error_code
                    for each in answer.results_by_topic_v3_and_below[0].results_by_partition
                ),
                once=True,
            )
        for partition, values in batches:
            await self._produce(partition, values)

    async def _produce(self, partition: int, values: list[bytes]) -> None:
        sequence = self._sequences.get(partition, 0)
        data = build_batch(
            [(None, value, ()) for value in values],
            timestamp_ms=self.schedule.clock_ms(),
            producer_id=self._identity[0],
            producer_epoch=self._identity[1],
            base_sequence=sequence,
            transactional=True,
        )
        topic = TopicProduceData(OUTPUT, None, [PartitionProduceData(partition, bytes(data))])
        produce = ProduceRequest(self.plan.transactional_id, -1, TIMEOUT_MS, [topic])
        await self._repeat_until_done(
            produce, lambda answer: answer.responses[0].partition_responses[0].error_code
        )
        self._sequences[partition] = sequence + len(values)

    async def _commit_offset(self, source: int, offset: int) -> None:
        if not self.plan.adds_itself:
            add = AddOffsetsToTxnRequest(*self._me(), GROUP)
            await self._repeat_until_done(add, lambda answer: answer.error_code, once=True)
        row = TxnOffsetCommitRequestPartition(source, offset)
        commit = TxnOffsetCommitRequest(
            self.plan.transactional_id,
            GROUP,
            *self._identity,
            **self._group_metadata(),
            topics=[TxnOffsetCommitRequestTopic(INPUT, [row])],
        )
        await self._repeat_until_done(
            commit, lambda answer: answer.topics[0].partitions[0].error_code, once=True
        )

    async def _end(self, transaction: PlannedTransaction, *, committed: bool) -> None:
        who, newest = self._identity, self.ledger.newest[self.plan.transactional_id]
        if committed:
            transaction.outcome = EndOutcome.COMMITTING
        try:
            answer = await self._repeat_until_done(
                EndTxnRequest(*self._me(), committed), lambda answer: answer.error_code, once=True
            )
        except Broken:
            transaction.outcome = EndOutcome.ABORTED
            raise
        if committed:
            self.ledger.on_committed(transaction)
            if who < newest:
                self.schedule.found("T7", f"{transaction} as {who}, though {newest} was known")
        else:
            transaction.outcome = EndOutcome.ABORTED
        if answer.producer_id >= 0:
            self._have(answer.producer_id, answer.producer_epoch)

    def _group_metadata(self) -> dict[str, Any]:
        """Identity in the group whose offsets it commits."""
        return {}

    def _me(self) -> tuple[str, int, int]:
        return (self.plan.transactional_id, *self._identity)

    async def _repeat_until_done(self, body: Any, error_of: Any, *, once: bool = False) -> Any:
        """Repeat a request until its answer has no error, and return that. Raises Fenced and Broken."""
        while True:
            try:
                answer = await self.ask(body, once=once and not self.plan.adds_itself)
            except BrokerConnectionError:
                await asyncio.sleep(RETRY_S)
                continue
            code = error_of(answer)
            if code == ErrorCode.NONE:
                return answer
            if code in self.fenced:
                raise Fenced
            if code in self.broken:
                raise Broken
            if code not in AGAIN:
                self.schedule.found("S0", f"{self} is answered {ErrorCode(code).name} to {body}")
            await asyncio.sleep(RETRY_S)


class CommittedReader(TransactionProcess):
    """Reads one output partition to its end, and on, under read_committed."""

    def __init__(
        self,
        schedule: Schedule[TransactionPlan],
        ledger: TransactionLedger,
        broker: Receiver,
        partition: int,
        versions: dict[int, int],
    ) -> None:
        self.partition = partition
        self.position = 0
        super().__init__(schedule, ledger, broker, f"r{partition}", versions)

    async def run(self) -> None:
        while True:
            try:
                await self._read()
            except BrokerConnectionError:
                await asyncio.sleep(RETRY_S)

    async def _read(self) -> None:
        size = self.rng.choice((100, 1_000, 100_000))
        wanted = FetchPartition(self.partition, fetch_offset=self.position, partition_max_bytes=size)
        fetch = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            isolation_level=_READ_COMMITTED,
            topics=[FetchTopic(OUTPUT, None, [wanted])],
        )
        answer = await self.ask(fetch)
        data = answer.responses[0].partitions[0]
        if data.error_code:
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self.schedule.found("T3", f"{self} has read to {self.position}, which is gone")
            if data.error_code == ErrorCode.CORRUPT_MESSAGE:
                # a power failure may damage unsynced batches and leave sound ones after them: they were never
                # acknowledged, and the operator of a consumer skips them
                self.position += 1
            await asyncio.sleep(RETRY_S)
            return
        reader = ChunkReader(
            TopicPartition(OUTPUT, self.partition),
            bytes(data.records or b""),
            self.position,
            aborted=data.aborted_transactions or (),
        )
        while records := reader.read():
            for record in records:
                self.ledger.on_seen(self.partition, record.value or b"")
        self.position = reader.next_offset
