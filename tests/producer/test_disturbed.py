"""Producers whose connections are cut and whose leaders move write once and in order.

On kohort, and with ``--bootstrap`` on an Apache Kafka. Tests of killed brokers are in test_producer and
test_transactions.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kohort.client.connection import Connection
from kohort.client.errors import BrokerConnectionError
from kohort.client.metadata import Address
from kohort.client.surroundings import SURROUNDINGS, Surroundings
from kohort.producer import Producer, TransactionAbortableError
from kohort.producer import transactions as transactions_module
from kohort.protocol import ApiKey, ErrorCode, KafkaError
from kohort.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from tests.producer.reading import read, read_values
from tests.torture.proxy import Proxy

pytestmark = pytest.mark.kafka

Topics = Callable[..., str]
PARTITIONS, RECORDS, CUTS = 3, 3_000, 12


@pytest.fixture
def proxy(bootstrap: str) -> Iterator[Proxy]:
    """Stands before the broker, for every connection that is opened in the test."""
    port = int(bootstrap.rpartition(":")[2])
    made = Proxy(lambda: port)

    async def open_connection(_: Address, **settings: Any) -> Connection:
        return await Connection.open(Address("127.0.0.1", made.port), **settings)

    with surrounded(Surroundings(open_connection=open_connection)):
        yield made
    made.close()


@contextmanager
def surrounded(surroundings: Surroundings) -> Iterator[None]:
    token = SURROUNDINGS.set(surroundings)
    try:
        yield
    finally:
        SURROUNDINGS.reset(token)


async def cut_now_and_then(proxy: Proxy, chance: random.Random) -> None:
    for _ in range(CUTS):
        await asyncio.sleep(chance.uniform(0.01, 0.1))
        await asyncio.to_thread(proxy.cut)


async def send_all(producer: Producer, topic: str) -> list[Any]:
    futures = []
    for number in range(RECORDS):
        partition = number % PARTITIONS
        futures.append(await producer.send(topic, b"%05d" % number, partition=partition))
        if number % 20 == 0:
            await asyncio.sleep(0.002)
    return await asyncio.gather(*futures)


async def assert_once_and_in_order(bootstrap: str, topic: str, sent: list[Any]) -> None:
    records = await read(bootstrap, topic)
    for partition in range(PARTITIONS):
        values = [record.value for record in records if record.partition == partition]
        assert values == [b"%05d" % number for number in range(partition, RECORDS, PARTITIONS)]
    places = {record.value: (record.partition, record.offset) for record in records}
    told = {b"%05d" % n: (row.partition, row.offset) for n, row in enumerate(sent) if row.offset >= 0}
    assert told.items() <= places.items()


@pytest.mark.slow(4)
@pytest.mark.parametrize("delay_s", [0.0, 0.02])
async def test_connections_cut_anywhere_lose_and_double_nothing(
    bootstrap: str, new_topic: Topics, proxy: Proxy, delay_s: float
) -> None:
    topic = new_topic("cut", partitions=PARTITIONS)
    proxy.delay_s = delay_s
    async with Producer(bootstrap=bootstrap, linger_ms=0, batch_size=500) as producer:
        cutting = asyncio.create_task(cut_now_and_then(proxy, random.Random(3)))
        sent = await send_all(producer, topic)
        await cutting
    assert proxy.cuts > 0
    proxy.delay_s = 0.0
    await assert_once_and_in_order(bootstrap, topic, sent)


@pytest.mark.slow(5)
@pytest.mark.parametrize("protocol", ["implicit", "announced"])
async def test_connections_cut_under_transactions_commit_each_once(
    bootstrap: str, new_topic: Topics, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    if protocol == "announced":
        monkeypatch.setattr(transactions_module, "_IMPLICIT_FROM", 99)
    topic = new_topic("cut", partitions=PARTITIONS)
    proxy.delay_s = 0.005
    async with Producer(
        bootstrap=bootstrap, linger_ms=0, transactional_id=topic, request_timeout_ms=5_000
    ) as producer:
        cutting = asyncio.create_task(cut_now_and_then(proxy, random.Random(4)))
        number = 0
        while number < 40 or not cutting.done():
            if await transacted(producer, topic, [b"%d-%d" % (number, more) for more in range(5)]):
                number += 1
        await cutting
    proxy.delay_s = 0.0
    found = await read_values(bootstrap, topic)
    assert sorted(map(bytes, filter(None, found))) == sorted(
        b"%d-%d" % (done, more) for done in range(number) for more in range(5)
    )


async def transacted(producer: Producer, topic: str, values: list[bytes]) -> bool:
    """Do as docs/producer.md says: whether it is committed."""
    producer.begin_transaction()
    try:
        for value in values:
            await producer.send(topic, value, value)
        await told(producer.commit_transaction)
    except TransactionAbortableError:
        await told(producer.abort_transaction)
        return False
    return True


async def told(end: Callable[[], Any]) -> None:
    """Ask for the end of a transaction until its outcome is known."""
    while True:
        try:
            await end()
            return
        except (BrokerConnectionError, KafkaError) as error:
            if isinstance(error, KafkaError) and not error.retriable:
                raise


@pytest.mark.slow(3)
@pytest.mark.parametrize("seed", range(3))
async def test_leaders_that_move_lose_and_double_nothing(
    bootstrap: str, new_topic: Topics, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A node that leads no more refuses what still comes; what follows it reaches the new leader first."""
    topic = new_topic("moved", partitions=PARTITIONS)
    chance, refused = random.Random(seed), 0
    original = Connection.ask

    def ask(connection: Connection, body: Any, **settings: Any) -> asyncio.Future[Any]:
        nonlocal refused
        if body.API_KEY != ApiKey.PRODUCE or chance.random() > 0.1:
            return original(connection, body, **settings)
        refused += 1
        code = chance.choice([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH])
        rows = [
            TopicProduceResponse(
                topic.name,
                None,
                [PartitionProduceResponse(row.index, code, -1) for row in topic.partition_data],
            )
            for topic in body.topic_data
        ]
        answer = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(chance.random() / 100, answer.set_result, ProduceResponse(rows))
        return answer

    monkeypatch.setattr(Connection, "ask", ask)
    settings: dict[str, Any] = {"linger_ms": 0, "batch_size": 500, "retry_backoff_ms": 5}
    async with Producer(bootstrap=bootstrap, **settings) as producer:
        sent = await send_all(producer, topic)
    assert refused > 0
    await assert_once_and_in_order(bootstrap, topic, sent)
