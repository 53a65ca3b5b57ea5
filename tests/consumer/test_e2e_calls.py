"""Calls that users of other clients look for: auto-done, unsubscribe, offsets of logs by end and time.

Covers: consumer/consumer.py, consumer/blocking.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from kafka import KafkaProducer

from kohort.consumer import Cluster, GroupConsumer, Record
from kohort.protocol import KafkaError, TopicPartition
from tests.consumer.conftest import QUICK, both_protocols
from tests.consumer.members import Maker, numbers, read
from tests.waiting import until

pytestmark = pytest.mark.kafka

Name = Callable[[str], str]
NewTopic = Callable[..., str]
Produce = Callable[..., None]


async def committed(bootstrap: str, group: str, partition: TopicPartition) -> int:
    async with Cluster(bootstrap) as cluster:
        return (await cluster.committed(group, [partition]))[partition].offset


async def test_with_auto_done_a_record_is_done_when_the_next_is_asked_for(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce, bootstrap: str
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(10))
    consumer = await member(topic, group=name, auto_done=True)
    seen = 0
    async for _ in consumer:
        seen += 1
        if seen == 4:
            break
    await consumer.commit()
    assert await committed(bootstrap, name, TopicPartition(topic, 0)) == 3, "the fourth may have failed"
    again = aiter(consumer)
    assert [(await anext(again)).offset for _ in range(2)] == [3, 4], "the loop was left before it was done"
    await consumer.commit()
    assert await committed(bootstrap, name, TopicPartition(topic, 0)) == 4
    assert numbers(await consumer.getmany(4, None)) == [4, 5, 6, 7]
    await consumer.commit()
    assert await committed(bootstrap, name, TopicPartition(topic, 0)) == 4
    assert numbers(await consumer.getmany(9)) == [8, 9]
    await consumer.commit()
    assert await committed(bootstrap, name, TopicPartition(topic, 0)) == 8, "the next poll was asked for"
    assert await consumer.getmany(9, timeout_ms=1) == []
    await consumer.close()
    assert await committed(bootstrap, name, TopicPartition(topic, 0)) == 10


async def test_with_auto_done_a_revocation_waits_for_the_records_in_hand(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=2), group("billing")
    await asyncio.to_thread(produce, topic, range(20), partitions=2)
    consumer = await member(topic, group=name, auto_done=True)
    seen: list[Record] = []
    while len(seen) < 20:
        seen += await consumer.getmany(20)
    other = await member(topic, group=name, auto_done=True)
    reading = asyncio.create_task(other.getmany(20, None))
    await until(lambda: consumer.parts.tracker.awaited > 0)
    assert not reading.done()
    assert await consumer.getmany(timeout_ms=1) == []
    await until(lambda: len(consumer.assignment()) == len(other.assignment()) == 1)
    await asyncio.to_thread(produce, topic, range(20, 22), partitions=2)
    assert numbers(await reading) in ([20], [21]), "what was in hand is done"


def test_auto_done_of_batches(bootstrap: str, filled_topic: Callable[..., str], group: Name) -> None:
    topic = filled_topic(6)
    with GroupConsumer(topic, bootstrap=bootstrap, group=group("b"), auto_done=True, **QUICK) as consumer:
        assert numbers(next(consumer.batches(1))) == [0]
        again = consumer.batches(1)
        assert [numbers(next(again)), numbers(next(again))] == [[0], [1]]
        assert consumer.state.undone == 1


def test_auto_done_of_the_blocking_consumer(
    bootstrap: str, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    produce(topic, range(10))
    mine = TopicPartition(topic, 0)
    with GroupConsumer(topic, bootstrap=bootstrap, group=name, auto_done=True, **QUICK) as consumer:
        for record in consumer:
            if record.offset == 3:
                break
        consumer.commit()
        assert consumer.committed()[mine].offset == 3
        assert numbers(consumer.getmany(2, None)) == [3, 4], "the loop was left before it was done"
        consumer.commit()
        assert consumer.committed()[mine].offset == 3
        seen = []
        for record in consumer:
            seen.append(record.offset)
            if record.offset == 9:
                break
        assert seen == [3, 4, 5, 6, 7, 8, 9], "a loop is another reader than the polls before it"
        consumer.commit()
        assert consumer.committed()[mine].offset == 9
        pytest.importorskip("pyarrow")
        batch = next(consumer.arrow_batches())
        assert batch.column("offset").to_pylist() == [9]


@pytest.mark.parametrize("blocking", [False, True])
async def test_with_auto_done_a_record_whose_handling_raised_comes_again(
    bootstrap: str, new_topic: NewTopic, group: Name, produce: Produce, member: Maker, blocking: bool
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(4))
    seen: list[int] = []

    def handle(record: Record) -> bool:
        """Fail once at offset 2; return whether all are handled."""
        seen.append(record.offset)
        if seen == [0, 1, 2]:
            raise RuntimeError("planned")
        return record.offset == 3

    def read_blocking() -> None:
        with GroupConsumer(topic, bootstrap=bootstrap, group=name, auto_done=True, **QUICK) as consumer:
            with pytest.raises(RuntimeError, match="planned"):
                any(map(handle, consumer))
            any(map(handle, consumer))

    if blocking:
        await asyncio.to_thread(read_blocking)
    else:
        consumer = await member(topic, group=name, auto_done=True)

        async def read_on() -> None:
            async for record in consumer:
                if handle(record):
                    break

        with pytest.raises(RuntimeError, match="planned"):
            await read_on()
        await read_on()
        await consumer.close()
    assert seen == [0, 1, 2, 2, 3]
    assert await committed(bootstrap, name, TopicPartition(topic, 0)) == 3


@pytest.mark.parametrize("auto_done", [False, True])
@pytest.mark.parametrize("arrow", [False, True])
async def test_an_iteration_goes_on_after_a_timeout(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce, auto_done: bool, arrow: bool
) -> None:
    if arrow:
        pytest.importorskip("pyarrow")
    topic = new_topic("orders", partitions=1)
    consumer = await member(topic, group=group("billing"), auto_done=auto_done)
    items: AsyncIterator[Any] = consumer.arrow_batches() if arrow else aiter(consumer)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(items), 0.01)
    await asyncio.to_thread(produce, topic, range(1))
    async with asyncio.timeout(20):
        item = await anext(items)
    assert (item.column("offset").to_pylist() if arrow else [item.offset]) == [0]


async def test_auto_done_of_arrow_batches(
    member: Maker, filled_topic: Callable[..., str], group: Name
) -> None:
    pytest.importorskip("pyarrow")
    topic = filled_topic(10)
    consumer = await member(topic, group=group("billing"), auto_done=True)
    rows = 0
    async for batch in consumer.arrow_batches(max_rows=4):
        assert consumer.state.undone >= batch.num_rows
        rows += batch.num_rows
        if rows == 10:
            break
    assert consumer.parts.tracker.undone() == batch.num_rows, "the last one may have failed"
    batches = consumer.arrow_batches(max_rows=4)
    assert (await anext(batches)).equals(batch), "so it comes again"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(batches), 0.01)
    assert consumer.parts.tracker.undone() == 0


@both_protocols
async def test_unsubscribe_commits_gives_everything_up_and_stays_a_member(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce, bootstrap: str
) -> None:
    orders, refunds, name = new_topic("orders", partitions=1), new_topic("refunds", partitions=1), group("b")
    await asyncio.to_thread(produce, orders, range(5))
    await asyncio.to_thread(produce, refunds, range(10, 15))
    consumer = await member(orders, group=name)
    consumer.done_all(await read(consumer, 5))
    consumer.unsubscribe()
    consumer.unsubscribe()
    await until(lambda: not consumer.assignment())
    assert consumer.subscription() == frozenset()
    assert await committed(bootstrap, name, TopicPartition(orders, 0)) == 5
    assert await consumer.getmany(timeout_ms=1) == []
    member_id = consumer.state.member_id
    consumer.subscribe_pattern(refunds)
    assert numbers(await read(consumer, 5)) == [10, 11, 12, 13, 14]
    assert consumer.state.member_id == member_id


async def test_unsubscribe_of_partitions_by_hand(member: Maker, filled_topic: Callable[..., str]) -> None:
    topic = filled_topic(10, partitions=2)
    consumer = await member(partitions=[TopicPartition(topic, 0)])
    assert numbers(await read(consumer, 5)) == [0, 2, 4, 6, 8]
    consumer.unsubscribe()
    await until(lambda: not consumer.assignment())
    consumer.assign(TopicPartition(topic, 1))
    assert numbers(await read(consumer, 5)) == [1, 3, 5, 7, 9]


async def test_offsets_of_logs_by_their_ends_and_by_time(
    member: Maker, new_topic: NewTopic, group: Name, bootstrap: str
) -> None:
    topic = new_topic("orders", partitions=2)
    base = int(time.time() * 1000)
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(5):
        producer.send(topic, b"", partition=0, timestamp_ms=base + number * 1000)
    producer.close()
    p0, p1 = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer = await member(topic, group=group("billing"))
    assert await consumer.beginning_offsets([p0, p1]) == {p0: 0, p1: 0}
    assert await consumer.end_offsets([p0, p1]) == {p0: 5, p1: 0}
    found = await consumer.offsets_for_times({p0: base + 1500, p1: 0})
    assert found[p1] is None
    row = found[p0]
    assert row is not None
    assert (row.offset, row.timestamp) == (2, base + 2000)
    assert await consumer.offsets_for_times({p0: base + 60_000}) == {p0: None}
    with pytest.raises(ValueError, match="milliseconds since 1970"):
        await consumer.offsets_for_times({p0: -1})


async def test_offsets_of_a_partition_that_is_not_there_are_an_error_in_the_end(
    member: Maker, new_topic: NewTopic, group: Name
) -> None:
    topic = new_topic("orders", partitions=1)
    consumer = await member(topic, group=group("billing"), default_api_timeout_ms=300)
    with pytest.raises(KafkaError, match=f"{topic}-7"):
        await consumer.end_offsets([TopicPartition(topic, 7)])
