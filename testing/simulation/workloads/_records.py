"""Records: producers write them with acks=all, and readers ask any broker for what is to be read."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from ....client.metadata import Address
from ....consumer.reading.fetched_records import ChunkReader
from ....producer import Producer
from ....protocol import ErrorCode, KohortError, TopicPartition
from ....protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from ..brokers._clients import ClientProcess
from ..brokers._schedule import HOST, PORT
from ..brokers._world import AnyWorld
from ..engine._connection import SimulatedConnection
from ..engine._loop import AnyFuture
from ..engine._phases import Left
from ._record_ledger import RecordLedger
from ._transaction_ledger import TransactionLedger
from ._workload import Workload

_RETRY_S: Final = 0.03
#: How often a reader goes on at another broker though it was answered.
_ELSEWHERE: Final = 0.1
_BY_NAME: Final = 12
_RECORDS_S: Final = (0.03, 0.08, 0.2)


class Writers(Workload):
    """``count`` producers write to a topic; all that they send is written in the end."""

    def __init__(self, world: AnyWorld, ledger: RecordLedger, topic: str, count: int) -> None:
        self._world = world
        self._ledger = ledger
        self._topic = topic
        self._count = count
        self._writers: list[WriterProcess] = []

    def start(self) -> None:
        self._writers = [
            WriterProcess(self._world, self._ledger, self._topic, f"p{number}")
            for number in range(self._count)
        ]
        self._world.clients += self._writers

    def unsettled(self) -> Left:
        waiting = next((writer for writer in self._writers if not writer.done), None)
        return None if waiting is None else ("B8", f"{waiting} waits for its records")


class WriterProcess(ClientProcess):
    """Sends numbered records with acks=all, each once, until the faults are over."""

    def __init__(self, world: AnyWorld, ledger: RecordLedger, topic: str, name: str) -> None:
        self._ledger = ledger
        self._topic = topic
        super().__init__(world, name)

    async def run(self) -> None:
        world, topic, ledger = self.world, self._topic, self._ledger
        partitions = world.plan.topics[topic]
        pause_s = self.rng.choice(_RECORDS_S)
        producer = Producer(bootstrap=world.bootstrap, **world.plan.producer)
        while True:
            try:
                await producer.start()
                break
            except KohortError:
                producer = Producer(bootstrap=world.bootstrap, **world.plan.producer)
        waiting: set[AnyFuture] = set()
        while not world.healed or not waiting:
            for _ in range(self.rng.randint(1, 3)):
                partition, value = self.rng.randrange(partitions), ledger.new(self.name)
                try:
                    sent = await producer.send(
                        topic, value, partition=partition, timestamp_ms=world.clock_ms()
                    )
                except KohortError:
                    continue
                waiting.add(sent)
                sent.add_done_callback(partial(self._on_answer, value))
            await asyncio.sleep(pause_s)
            waiting = {each for each in waiting if not each.done()} or waiting
        await asyncio.wait(waiting)
        await producer.close()

    def _on_answer(self, value: bytes, done: AnyFuture) -> None:
        if not done.cancelled() and done.exception() is None:
            told = done.result()
            self._ledger.was_acknowledged(value, TopicPartition(self._topic, told.partition), told.offset)


class Readers(Workload):
    """A reader of each partition of ``topics``; what is committed alone is read of that of transactions."""

    def __init__(
        self,
        world: AnyWorld,
        ledger: RecordLedger,
        topics: list[str],
        transactions: TransactionLedger,
    ) -> None:
        self._world = world
        self._ledger = ledger
        self._topics = topics
        self._transactions = transactions
        self._readers: list[ReaderProcess] = []

    def start(self) -> None:
        self._readers = [
            ReaderProcess(
                self._world,
                self._ledger,
                TopicPartition(topic, index),
                self._transactions if topic == self._transactions.topic else None,
            )
            for topic in self._topics
            for index in range(self._world.plan.topics[topic])
        ]
        self._world.clients += self._readers

    def unsettled(self) -> Left:
        for reader in self._readers:
            end = self._world.partition_at(reader.place).log_end_offset
            if reader.position < end:
                return "B8", f"{reader} is at {reader.position} of {end}"
        return None


class ReaderProcess(ClientProcess):
    """Reads a partition from its beginning on; it asks any broker: one that is long replaced, or a follower.

    With ``transactions`` it reads what is committed.
    """

    def __init__(
        self,
        world: AnyWorld,
        ledger: RecordLedger,
        place: TopicPartition,
        transactions: TransactionLedger | None,
    ) -> None:
        self.place = place
        self.position = 0
        self._ledger = ledger
        self._transactions = transactions
        self._to: dict[int, SimulatedConnection] = {}
        super().__init__(world, f"r-{place.topic}-{place.partition}")

    async def run(self) -> None:
        number = 1
        while True:
            try:
                led = await self._ask(number)
            except KohortError:
                led = False
            if not led or self.rng.random() < _ELSEWHERE:
                number = self.rng.randint(1, self.world.plan.brokers)
            if not led:
                await asyncio.sleep(_RETRY_S)

    async def _ask(self, number: int) -> bool:
        """Fetch from a broker; returns whether it gave an answer."""
        connection = self._to.get(number)
        if connection is None or connection.is_closed:
            connection = self._to[number] = await self.open_connection(Address(HOST, PORT + number))
        wanted = FetchPartition(
            self.place.partition,
            fetch_offset=self.position,
            partition_max_bytes=self.rng.choice((100, 1_000, 100_000)),
        )
        fetch = FetchRequest(
            max_wait_ms=300,
            min_bytes=1,
            isolation_level=int(self._transactions is not None),
            topics=[FetchTopic(self.place.topic, None, [wanted])],
        )
        answer = await connection.request(fetch, timeout_ms=1_000, max_version=_BY_NAME)
        data = answer.responses[0].partitions[0]
        if data.error_code:
            self._on_refused(data.error_code, number)
            return False
        self._take(data)
        return True

    def _on_refused(self, error: int, number: int) -> None:
        if self.world.plan.brokers == 1:
            if error == ErrorCode.OFFSET_OUT_OF_RANGE:
                self.world.found("T3", f"{self} has read to {self.position}, which is gone")
            elif error == ErrorCode.CORRUPT_MESSAGE:
                # a power failure may damage unsynced batches and leave sound ones after them: they were never
                # acknowledged, and the operator of a consumer skips them
                self.position += 1
        elif error == ErrorCode.OFFSET_OUT_OF_RANGE:
            # who is behind does not have it yet, and what was deleted nobody has
            self.position = max(self.position, self._ledger.deleted.get(self.place, 0))
        elif error == ErrorCode.CORRUPT_MESSAGE:
            self.world.found("B3", f"{self} cannot read {self.position}: it is damaged at broker {number}")

    def _take(self, data: PartitionData) -> None:
        world = self.world
        reader = ChunkReader(
            self.place,
            bytes(data.records or b""),
            self.position,
            aborted=data.aborted_transactions or (),
        )
        while records := reader.read():
            for record in records:
                value = record.value or b""
                self._ledger.was_read(self.name, self.place, record.offset, value)
                if self._transactions is not None:
                    self._transactions.on_seen(self.place.partition, value)
        end = data.high_watermark if self._transactions is None else data.last_stable_offset
        if reader.next_offset > max(end, self.position):
            world.found("B3", f"{self} reads to {reader.next_offset}, it may to {end}")
        self.position = max(self.position, reader.next_offset)
