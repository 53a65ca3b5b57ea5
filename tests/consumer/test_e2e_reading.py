"""Where reading starts and goes on, and what comes out of the bytes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

from kohort.consumer import AsyncGroupConsumer, Cluster, GroupConsumer, NoOffsetError
from kohort.consumer.consumer import TURN_S
from kohort.consumer.events import OffsetReset
from kohort.consumer.reading.positions import Phase
from kohort.protocol import ErrorCode, KafkaError, TopicPartition
from tests.consumer.conftest import QUICK, both_protocols
from tests.consumer.members import Maker, numbers, read
from tests.waiting import until

pytestmark = [pytest.mark.kafka, both_protocols]

Name = Callable[[str], str]
NewTopic = Callable[..., str]
Produce = Callable[..., None]


def _resets(consumer: Any) -> list[OffsetReset]:
    return [event for event in consumer.events.recent if isinstance(event, OffsetReset)]


@pytest.mark.parametrize(("policy", "first"), [("earliest", 0), ("latest", 10)])
async def test_without_a_committed_offset_the_policy_decides_and_an_event_says_so(
    member: Maker, filled_topic: Callable[..., str], group: Name, produce: Produce, policy: str, first: int
) -> None:
    topic = filled_topic(10)
    consumer = await member(topic, group=group("billing"), auto_offset_reset=policy)
    await until(lambda: bool(_resets(consumer)))
    await asyncio.to_thread(produce, topic, range(10, 20))
    assert numbers(await read(consumer, 20 - first)) == list(range(first, 20))
    (event,) = _resets(consumer)
    assert (event.asked, event.policy, event.offset) == (None, policy, first)


async def test_a_seek_at_the_assignment_comes_before_where_the_group_begins(
    bootstrap: str, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    """Who goes to the first record where nothing is committed would skip all, had the end been committed."""
    partition = TopicPartition(new_topic("orders", partitions=1), 0)
    await asyncio.to_thread(produce, partition.topic, range(10))

    async def assigned(_: object) -> None:
        (position,) = consumer.parts.positions
        await until(lambda: position.phase is not Phase.SEEKING)
        await asyncio.sleep(0.3)  # as long as it takes to ask for the end, and to commit it
        if partition not in await consumer.committed(partition):
            consumer.seek(partition, 0)

    settings = QUICK | {"group": group("billing"), "auto_offset_reset": "latest"}
    consumer = AsyncGroupConsumer(
        partition.topic, bootstrap=bootstrap, on_partitions_assigned=assigned, **settings
    )
    async with consumer:
        assert numbers(await read(consumer, 10)) == list(range(10))


async def test_a_reader_that_never_waits_lets_others_have_their_turns(
    member: Maker, filled_topic: Callable[..., str], group: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = filled_topic(300)
    consumer = await member(topic, group=group("billing"))
    loop, took_s, turns = asyncio.get_running_loop(), 0.0, 0
    monkeypatch.setattr(consumer, "_time", lambda: loop.time() + took_s)

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running, seen = asyncio.create_task(others()), []
    async for record in consumer:
        took_s += TURN_S / 4
        seen.append(turns)
        consumer.done(record)
        if len(seen) == 300:
            break
    running.cancel()
    # a turn, and as much again
    assert max(len(list(same)) for _, same in groupby(seen)) <= 9


async def test_a_time_as_policy_starts_at_the_first_record_that_is_not_older(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic = new_topic("orders", partitions=2)
    await asyncio.to_thread(produce, topic, range(0, 10, 2), partitions=2)
    await asyncio.sleep(0.05)
    now_ms = int(time.time() * 1000)
    await asyncio.to_thread(produce, topic, range(10, 20, 2), partitions=2)
    consumer = await member(topic, group=group("billing"), auto_offset_reset=now_ms)
    assert numbers(await read(consumer, 5)) == list(range(10, 20, 2))
    assert {e.partition.partition: e.offset for e in _resets(consumer)} == {0: 5, 1: 0}


async def test_fail_as_policy_raises_at_the_poll_until_it_is_sought(
    member: Maker, filled_topic: Callable[..., str], group: Name
) -> None:
    topic = filled_topic(10)
    consumer = await member(topic, group=group("billing"), auto_offset_reset="fail")
    for _ in range(2):
        with pytest.raises(NoOffsetError, match=f"{topic}-0: nothing is committed"):
            await consumer.getmany(timeout_ms=10_000)
    consumer.seek(TopicPartition(topic, 0), 7)
    assert numbers(await read(consumer, 3)) == [7, 8, 9]


async def test_a_committed_offset_past_the_end_is_reset_and_an_event_tells_from_where(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce, bootstrap: str
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(10))
    partition = TopicPartition(topic, 0)
    async with Cluster(bootstrap) as cluster:
        await cluster.commit(name, {partition: 4_711})
    consumer = await member(topic, group=name)
    assert numbers(await read(consumer, 10)) == list(range(10))
    (event,) = _resets(consumer)
    assert (event.partition, event.asked, event.offset) == (partition, 4_711, 0)
    assert "it starts at 0 and ends at 10" in event.reason


async def test_a_committed_offset_that_retention_removed_is_reset_and_an_event_tells_from_where(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce, bootstrap: str
) -> None:
    from kafka import KafkaAdminClient
    from kafka import TopicPartition as TheirPartition

    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(10))
    partition = TopicPartition(topic, 0)
    async with Cluster(bootstrap) as cluster:
        await cluster.commit(name, {partition: 2})
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.delete_records({TheirPartition(topic, 0): 6})
    consumer = await member(topic, group=name)
    assert numbers(await read(consumer, 4)) == [6, 7, 8, 9]
    (event,) = _resets(consumer)
    assert (event.asked, event.offset) == (2, 6)
    assert "it starts at 6 and ends at 10" in event.reason


async def test_seek_goes_back_and_forth(
    member: Maker, filled_topic: Callable[..., str], group: Name, produce: Produce
) -> None:
    topic = filled_topic(10)
    consumer = await member(topic, group=group("billing"))
    partition = TopicPartition(topic, 0)
    await read(consumer, 10)
    consumer.seek(partition, 3)
    assert numbers(await read(consumer, 7)) == list(range(3, 10))
    consumer.seek_to_beginning(partition)
    assert numbers(await read(consumer, 10)) == list(range(10))
    consumer.seek_to_time(partition, 0)
    assert numbers(await read(consumer, 2)) == [0, 1]
    consumer.seek_to_end(partition)
    await until(lambda: consumer.position(partition) == 10)
    await asyncio.to_thread(produce, topic, [10])
    assert numbers(await read(consumer, 1)) == [10]


async def test_a_paused_partition_waits_while_the_others_go_on(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic = new_topic("orders", partitions=2)
    consumer = await member(topic, group=group("billing"))
    await until(lambda: len(consumer.assignment()) == 2)
    consumer.pause(TopicPartition(topic, 0))
    await asyncio.to_thread(produce, topic, range(10), partitions=2)
    assert numbers(await read(consumer, 5)) == [1, 3, 5, 7, 9]
    assert await consumer.getmany(timeout_ms=300) == []
    assert consumer.paused() == {TopicPartition(topic, 0)}
    consumer.resume(TopicPartition(topic, 0))
    assert numbers(await read(consumer, 5)) == [0, 2, 4, 6, 8]


async def test_a_topic_of_which_nothing_is_read_is_not_sent(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, paused = new_topic("orders", partitions=1), new_topic("paused", partitions=2)
    consumer = await member(topic, paused, group=group("billing"))
    await until(lambda: len(consumer.assignment()) == 3)
    await asyncio.to_thread(produce, topic, [1])
    assert numbers(await read(consumer, 1)) == [1]
    first, second = (TopicPartition(paused, number) for number in range(2))
    consumer.pause(first, second)
    await asyncio.to_thread(produce, paused, range(10), partitions=2)
    (session,) = consumer.parts.fetcher.sessions.values()
    fetches = session.epoch
    assert await consumer.getmany(timeout_ms=800) == []
    # a Fetch that brings what nobody wants is followed by the next one at once
    assert session.epoch - fetches < 20
    consumer.resume(first)
    assert numbers(await read(consumer, 5)) == [0, 2, 4, 6, 8]


async def test_a_full_window_holds_its_partition_back_until_something_is_done(
    member: Maker, filled_topic: Callable[..., str], group: Name
) -> None:
    topic = filled_topic(20)
    consumer = await member(topic, group=group("billing"), max_undone_records=5)
    records = await read(consumer, 5)
    assert await consumer.getmany(timeout_ms=300) == []
    waiting = asyncio.create_task(read(consumer, 2))
    await asyncio.sleep(0.05)
    consumer.done_all(records[:2])
    assert numbers(await waiting) == [5, 6]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_every_codec_and_all_fields_come_through(
    member: Maker, new_topic: NewTopic, group: Name, bootstrap: str, codec: str
) -> None:
    from confluent_kafka import Producer

    topic = new_topic("orders", partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50})
    for number in range(50):
        producer.produce(
            topic,
            key=None if number % 2 else b"k" * number,
            value=None if number == 7 else b"v" * number,
            headers=[("n", str(number).encode()), ("empty", None)],
            timestamp=1_700_000_000_000 + number,
        )
    producer.flush()
    consumer = await member(topic, group=group("billing"))
    for number, record in enumerate(await read(consumer, 50)):
        assert record.key == (None if number % 2 else b"k" * number)
        assert record.value == (None if number == 7 else b"v" * number)
        assert [tuple(header) for header in record.headers] == [("n", str(number).encode()), ("empty", None)]
        assert record.timestamp_ms == 1_700_000_000_000 + number
        assert (record.topic_partition, record.offset) == (TopicPartition(topic, 0), number)
        assert record.generation == consumer.state.generation


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
async def test_aborted_transactions_are_read_only_when_uncommitted_ones_are(
    member: Maker, new_topic: NewTopic, group: Name, bootstrap: str, isolation: str
) -> None:
    from confluent_kafka import KafkaException, Producer

    topic = new_topic("orders", partitions=1)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": group("tx")})
    try:
        await asyncio.to_thread(producer.init_transactions, 3)
    except KafkaException as error:
        pytest.skip(f"this broker has no transactions: {error}")
    for first, commit in ((0, True), (5, False), (10, True)):
        producer.begin_transaction()
        for number in range(first, first + 5):
            producer.produce(topic, value=str(number))
        if commit:
            producer.commit_transaction()
        else:
            producer.flush()
            producer.abort_transaction()
    wanted = [*range(5), *range(10, 15)] if isolation == "read_committed" else list(range(15))
    consumer = await member(topic, group=group("billing"), isolation_level=isolation)
    records = await read(consumer, len(wanted))
    assert numbers(records) == wanted
    assert await consumer.getmany(timeout_ms=200) == []
    consumer.done_all(records)
    await consumer.commit()
    # three control records lie between and behind the others, and the last is passed, too
    assert (await consumer.committed())[TopicPartition(topic, 0)].offset == 18


def test_the_blocking_consumer_reads_commits_and_calls_back(
    bootstrap: str, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=2), group("billing")
    produce(topic, range(100), partitions=2)
    settings = {**QUICK, "bootstrap": bootstrap, "group": name}
    revoked: list[tuple[TopicPartition, ...]] = []
    seen = []
    with GroupConsumer(topic, on_partitions_revoked=revoked.append, **settings) as consumer:
        for record in consumer:
            seen.append(record)
            consumer.done(record)
            if len(seen) == 60:
                break
        consumer.commit()
    assert revoked == [(TopicPartition(topic, 0), TopicPartition(topic, 1))]
    with GroupConsumer(topic, **settings) as consumer:
        rest: list[int] = []
        for batch in consumer.batches(7):
            assert len(batch) <= 7
            rest += numbers(batch)
            consumer.done_all(batch)
            if len(rest) == 40:
                break
    assert sorted(numbers(seen) + rest) == list(range(100))


async def test_a_request_that_is_refused_names_the_reason(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic("orders", partitions=1)
    async with Cluster(bootstrap) as cluster:
        with pytest.raises(KafkaError) as caught:
            await cluster.create_topics({topic: 1}, if_not_exists=False)
        assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


async def test_a_fetch_session_is_used(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic = new_topic("orders", partitions=3)
    consumer = await member(topic, group=group("billing"))
    for first in range(0, 30, 10):
        await asyncio.to_thread(produce, topic, range(first, first + 10), partitions=3)
        assert sorted(numbers(await read(consumer, 10))) == list(range(first, first + 10))
    (session,) = consumer.parts.fetcher.sessions.values()
    assert session.session_id > 0
    assert session.epoch > 1
