"""Clients of a cluster: processes with the producer and the consumer as they ship, and readers who ask any
broker for records.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from contextvars import copy_context
from functools import partial
from random import Random
from typing import Any, Final

from ....client.errors import BrokerConnectionError
from ....client.metadata import Address
from ....client.pool import SURROUNDINGS, Surroundings
from ....consumer import AsyncGroupConsumer, ConsumerError
from ....consumer.reading.fetched_records import ChunkReader
from ....producer import Producer
from ....protocol import ErrorCode, KohortError, TopicPartition
from ....protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from .._connection import SimulatedConnection
from .._loop import ProcessLoop
from .._network import SimulatedCall
from ._plan import BROKERS, GROUP, OUTPUT, TOPIC
from ._schedule import BOOTSTRAP, HOST, PORT, ClusterSchedule

_RETRY_S: Final = 0.03
#: How often a reader goes on at another broker though it was answered.
_ELSEWHERE: Final = 0.1
_BY_NAME: Final = 12
_RECORDS_S: Final = (0.03, 0.08, 0.2)


class ClientProcess:
    """One process, with an event loop and connections of its own."""

    def __init__(self, world: ClusterSchedule, name: str) -> None:
        self.world = world
        self.name = name
        self.versions = world.versions
        self.connections: dict[SimulatedConnection, None] = {}
        self.rng = Random(world.rng.getrandbits(64))
        #: It has done all that it was to do.
        self.done = False
        self.loop = ProcessLoop(  # type: ignore[abstract]
            world.heap, failed=self._on_error, delay_ms=lambda _: 1
        )
        context = copy_context()
        context.run(
            SURROUNDINGS.set,
            Surroundings(
                open_connection=self._open,  # type: ignore[arg-type]
                make_random=lambda: Random(self.rng.getrandbits(64)),
                in_thread=self.loop.in_thread,
            ),
        )
        self.loop.create_task(self._main(), context=context)

    def __repr__(self) -> str:
        return self.name

    @abstractmethod
    async def run(self) -> None:
        """The program."""

    def kill(self) -> None:
        for connection in list(self.connections):
            connection.line.close()
        self.connections.clear()
        self.loop.clear()

    def sending(self, call: SimulatedCall) -> None:
        """Called with each of its requests."""

    async def _main(self) -> None:
        await self.run()
        self.done = True

    async def _open(self, address: Address, **_: Any) -> SimulatedConnection:
        await asyncio.sleep((1 + int(self.world.rng.random() * 4)) / 1_000)
        broker = self.world.broker_at(address)
        if not broker.reachable:
            raise BrokerConnectionError(str(address), "cannot connect: connection refused")
        connection = SimulatedConnection(self, address, broker)
        connection.features = {**connection.features, **self.world.plan.features}
        self.connections[connection] = None
        return connection

    def _on_error(self, context: dict[str, Any]) -> None:
        self.world.found("S0", f"{self}: {context['message']}: {context.get('exception')!r}")


class ClusterWriter(ClientProcess):
    """Sends numbered records with acks=all, each once, until the faults are over."""

    async def run(self) -> None:
        world, partitions = self.world, self.world.plan.topics[TOPIC]
        pause_s = self.rng.choice(_RECORDS_S)
        producer = Producer(bootstrap=BOOTSTRAP, **world.plan.producer)
        while True:
            try:
                await producer.start()
                break
            except KohortError:
                producer = Producer(bootstrap=BOOTSTRAP, **world.plan.producer)
        waiting: set[asyncio.Future[Any]] = set()
        while not world.healed or not waiting:
            for _ in range(self.rng.randint(1, 3)):
                partition, value = self.rng.randrange(partitions), world.ledger.new(self.name)
                try:
                    sent = await producer.send(
                        TOPIC, value, partition=partition, timestamp_ms=world.clock_ms()
                    )
                except KohortError:
                    continue
                waiting.add(sent)
                sent.add_done_callback(partial(self._on_answer, value))
            await asyncio.sleep(pause_s)
            waiting = {each for each in waiting if not each.done()} or waiting
        await asyncio.wait(waiting)
        await producer.close()

    def _on_answer(self, value: bytes, done: asyncio.Future[Any]) -> None:
        if not done.cancelled() and done.exception() is None:
            told = done.result()
            place = TopicPartition(TOPIC, told.partition)
            self.world.ledger.was_acknowledged(value, place, told.offset)


class ClusterMember(ClientProcess):
    """A member of the group, which commits what it has read."""

    async def run(self) -> None:
        while True:
            try:
                await self._read()
            except (KohortError, ConsumerError) as error:
                self.world.say(f"{self} begins anew: {error!r}")
                await asyncio.sleep(0.1)

    async def _read(self) -> None:
        ledger = self.world.ledger
        async with AsyncGroupConsumer(
            TOPIC,
            bootstrap=BOOTSTRAP,
            group=GROUP,
            auto_offset_reset="earliest",
            **self.world.plan.consumer,
        ) as consumer:
            async for record in consumer:
                ledger.was_read(self.name, record.topic_partition, record.offset, record.value or b"")
                consumer.done(record)


class ClusterReader(ClientProcess):
    """Reads a partition from its beginning on; it asks any broker: one that is long replaced, or a follower.

    Of ``OUTPUT`` it reads what is committed.
    """

    def __init__(self, world: ClusterSchedule, place: TopicPartition) -> None:
        self.place = place
        self.position = 0
        self._reads_committed = place.topic == OUTPUT
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
                number = self.rng.randint(1, BROKERS)
            if not led:
                await asyncio.sleep(_RETRY_S)

    async def _ask(self, number: int) -> bool:
        """Fetch from a broker; returns whether it gave an answer."""
        connection = self._to.get(number)
        if connection is None or connection.is_closed:
            connection = self._to[number] = await self._open(Address(HOST, PORT + number))
        wanted = FetchPartition(
            self.place.partition,
            fetch_offset=self.position,
            partition_max_bytes=self.rng.choice((100, 1_000, 100_000)),
        )
        fetch = FetchRequest(
            max_wait_ms=300,
            min_bytes=1,
            isolation_level=int(self._reads_committed),
            topics=[FetchTopic(self.place.topic, None, [wanted])],
        )
        answer = await connection.request(fetch, timeout_ms=1_000, max_version=_BY_NAME)
        data = answer.responses[0].partitions[0]
        if data.error_code:
            if data.error_code == ErrorCode.CORRUPT_MESSAGE:
                self.world.found(
                    "B3", f"{self} cannot read {self.position}: it is damaged at broker {number}"
                )
            return False
        self._take(data)
        return True

    def _take(self, data: Any) -> None:
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
                world.ledger.was_read(self.name, self.place, record.offset, value)
                if self._reads_committed:
                    world.transactions.on_seen(self.place.partition, value)
        end = data.last_stable_offset if self._reads_committed else data.high_watermark
        if reader.next_offset > max(end, self.position):
            world.found("B3", f"{self} reads to {reader.next_offset}, it may to {end}")
        self.position = max(self.position, reader.next_offset)
