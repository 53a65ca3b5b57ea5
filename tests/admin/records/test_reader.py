"""Reading without a group while topics and brokers change under it: nothing is lost or comes twice unsaid.

Covers: admin/records/reader.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from kohort.admin.records import reader
from kohort.admin.records.reader import TopicReader
from kohort.client import AuthenticationError, BrokerConnectionError, Cluster
from kohort.consumer.reading import fetched_records
from kohort.consumer.reading.fetched_records import ChunkReader
from kohort.producer import Producer
from kohort.protocol import CorruptBatchError, ErrorCode, KafkaError, TopicPartition

pytestmark = pytest.mark.kafka

Topics = Callable[..., str]


@pytest.fixture
def topic(new_topic: Topics) -> str:
    return new_topic("one", partitions=1)


class Followed:
    """A reader in a task: ``values`` are what it has read, ``said`` its remarks."""

    def __init__(self, reader: TopicReader) -> None:
        self.reader = reader
        self.values: list[bytes | None] = []
        self.said: list[str] = []
        reader.remark = self.said.append
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with aclosing(self.reader.batches()) as batches:
            async for records in batches:
                self.values += [record.value for record in records]

    async def has(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.values) < count and not self.task.done():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        if self.task.done():
            await self.task


@pytest.fixture
async def cluster(bootstrap: str) -> AsyncIterator[Cluster]:
    async with Cluster(bootstrap, default_api_timeout_ms=20_000) as found:
        yield found


@pytest.fixture
def write(bootstrap: str) -> Callable[..., Awaitable[None]]:
    async def send(topic: str, *values: bytes, partition: int = 0) -> None:
        async with Producer(bootstrap=bootstrap) as producer:
            for value in values:
                await producer.send_and_wait(topic, value, partition=partition)

    return send


@asynccontextmanager
async def following(cluster: Cluster, topic: str, **more: object) -> AsyncIterator[Followed]:
    await cluster.metadata([topic])
    followed = Followed(TopicReader(cluster, {TopicPartition(topic, 0): 0}, **more))  # type: ignore[arg-type]
    try:
        yield followed
    finally:
        followed.task.cancel()
        await asyncio.gather(followed.task, return_exceptions=True)


async def test_a_topic_that_is_deleted_ends_it_with_the_reason(
    cluster: Cluster, topic: str, write: Callable[..., Awaitable[None]]
) -> None:
    await write(topic, b"1")
    async with following(cluster, topic, patience_s=1.0) as followed:
        await followed.has(1)
        await cluster.delete_topics([topic])
        with pytest.raises(KafkaError, match=r"nothing more could be read .* the topic was deleted"):
            await asyncio.wait_for(followed.task, 30)


async def test_a_topic_that_was_made_anew_is_not_taken_for_the_old_one(
    cluster: Cluster, topic: str, write: Callable[..., Awaitable[None]]
) -> None:
    await write(topic, b"1")
    async with following(cluster, topic, patience_s=20.0) as followed:
        await followed.has(1)
        await cluster.delete_topics([topic])
        await cluster.create_topics({topic: 1})
        await write(topic, b"2", b"3")
        with pytest.raises(KafkaError, match="deleted and created again"):
            await asyncio.wait_for(followed.task, 30)
        assert followed.values == [b"1"]


async def test_new_partitions_are_read_from_their_beginning(
    bootstrap: str,
    cluster: Cluster,
    topic: str,
    write: Callable[..., Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kohort.admin.topics.requests import create_partitions

    monkeypatch.setattr(reader, "_LOOK_S", 0.2)
    async with following(cluster, topic, new_partitions=True) as followed:
        async with Cluster(bootstrap) as other:
            await create_partitions(other, topic, 3)
        await write(topic, b"new", partition=2)
        await followed.has(1)
        assert followed.values == [b"new"]
        assert followed.said == [f"topic {topic!r} has 2 more partitions now, which are read too"]


async def test_what_was_deleted_before_it_was_read_is_told(
    bootstrap: str, cluster: Cluster, topic: str, write: Callable[..., Awaitable[None]]
) -> None:
    from confluent_kafka import TopicPartition as Place
    from confluent_kafka.admin import AdminClient

    await write(topic, b"0", b"1", b"2")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deleted = admin.delete_records([Place(topic, 0, 2)])
    await asyncio.to_thread(next(iter(deleted.values())).result, 20)
    async with following(cluster, topic) as followed:
        await followed.has(1)
        assert followed.values == [b"2"]
        assert followed.said == [f"{topic}-0: offsets 0 to 1 were deleted unread"]


async def test_a_log_that_is_shorter_than_what_was_read_is_an_error(cluster: Cluster, topic: str) -> None:
    await cluster.metadata([topic])
    reader = TopicReader(cluster, {TopicPartition(topic, 0): 5})
    with pytest.raises(KafkaError, match="was read to offset 5 and ends at 0 now"):
        await asyncio.wait_for(anext(reader.batches()), 30)


async def test_records_behind_the_end_are_left_out_and_partitions_take_turns(
    cluster: Cluster, new_topic: Topics, write: Callable[..., Awaitable[None]]
) -> None:
    topic = new_topic("reader", partitions=2)
    places = [TopicPartition(topic, number) for number in range(2)]
    await write(topic, b"a", b"b", b"c")
    await write(topic, b"d", partition=1)
    await cluster.metadata([topic])
    reader = TopicReader(cluster, dict.fromkeys(places, 0), {places[0]: 2, places[1]: 1})
    values = [record.value async for records in reader.batches() for record in records]
    assert sorted(value or b"" for value in values) == [b"a", b"b", b"d"]


async def test_records_stay_in_order_while_their_user_is_slower_than_the_broker(
    cluster: Cluster,
    topic: str,
    write: Callable[..., Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetched_records, "RUN_BYTES", 1)
    values = [b"%d" % number for number in range(30)]
    await write(topic, *values)
    await cluster.metadata([topic])
    place = TopicPartition(topic, 0)
    # a response has some of the batches, which are used one by one, and the next response comes meanwhile
    slow = TopicReader(cluster, {place: 0}, {place: 30}, partition_bytes=400)
    found: list[bytes | None] = []
    async with aclosing(slow.batches()) as batches:
        async for records in batches:
            found += [record.value for record in records]
            await asyncio.sleep(0.1)
    assert found == values


async def test_a_broker_that_goes_is_waited_for_by_who_follows_and_by_nobody_else(
    cluster: Cluster, topic: str, write: Callable[..., Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = TopicPartition(topic, 0)
    await write(topic, b"1")
    real, gone = cluster.fetch, [True]

    async def fetch(*arguments: object, **named: object) -> object:
        if gone[0]:
            raise BrokerConnectionError("host:1", "the broker closed the connection")
        return await real(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(cluster, "fetch", fetch)
    async with following(cluster, topic, patience_s=0.3) as followed:
        await asyncio.sleep(1)
        assert not followed.task.done()
        gone[0] = False
        await followed.has(1)
        assert followed.said == [
            "host:1: the broker closed the connection: trying again until Ctrl-C",
            "connected again",
        ]
    gone[0] = True
    reader = TopicReader(cluster, {place: 0}, {place: 1}, patience_s=0.3)
    with pytest.raises(BrokerConnectionError, match="closed the connection"):
        await asyncio.wait_for(anext(reader.batches()), 30)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "reading t-0"), "ask for the right"),
        (AuthenticationError("host:1", "refused"), "refused"),
    ],
)
async def test_a_refusal_ends_it_at_once(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str
) -> None:

    async def fetch(*_: object, **__: object) -> object:
        raise error

    monkeypatch.setattr(cluster, "fetch", fetch)
    async with following(cluster, topic) as followed:
        with pytest.raises(type(error), match=says):
            await asyncio.wait_for(followed.task, 10)


async def test_damaged_records_are_fetched_again_before_they_are_an_error(
    cluster: Cluster, topic: str, write: Callable[..., Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = TopicPartition(topic, 0)
    await write(topic, b"1")
    await cluster.metadata([topic])
    real, damaged = ChunkReader.read, [2]

    def read(reader: ChunkReader) -> object:
        if damaged[0]:
            damaged[0] -= 1
            raise CorruptBatchError("damaged")
        return real(reader)

    monkeypatch.setattr(ChunkReader, "read", read)
    reader = TopicReader(cluster, {place: 0}, {place: 1})
    assert [len(records) async for records in reader.batches()] == [1]
    damaged[0] = 3
    reader = TopicReader(cluster, {place: 0}, {place: 1})
    with pytest.raises(CorruptBatchError):
        await asyncio.wait_for(anext(reader.batches()), 30)
