"""Share consumers on a broker: what each verdict does, locks, renewals, and the end.

Covers: consumer/share/consumer.py, consumer/share/exchange.py, consumer/share/member.py.
Covers: consumer/share/events.py, consumer/share/event_lines.py, consumer/share/config.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol

import pytest

from kohort.client import Cluster
from kohort.consumer import AsyncGroupConsumer, FatalGroupError, ShareConsumer
from kohort.consumer.share.events import LockLost, ShareAssignmentChanged
from kohort.consumer.share.records import AlreadyAcknowledgedError, LockLostError, ShareRecord
from kohort.protocol import AcknowledgeType, TopicPartition
from tests.group_configs import set_group_configs

pytestmark = [pytest.mark.kafka]

Name = Callable[[str], str]
NewTopic = Callable[..., str]
Produce = Callable[..., None]
PATIENCE_S = 60.0


class Make(Protocol):
    async def __call__(self, *topics: str, group: str, **config: Any) -> ShareConsumer: ...


@pytest.fixture
async def member(bootstrap: str) -> AsyncIterator[Make]:
    async with AsyncExitStack() as stack:

        async def make(*topics: str, group: str, **config: Any) -> ShareConsumer:
            return await stack.enter_async_context(
                ShareConsumer(*topics, bootstrap=bootstrap, group=group, **config)
            )

        yield make


async def read(consumer: ShareConsumer, count: int) -> list[ShareRecord]:
    found: list[ShareRecord] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < count:
            found += await consumer.getmany(count - len(found))
    return found


def values(records: list[ShareRecord]) -> list[int]:
    return [int(record.value or b"-1") for record in records]


async def test_what_is_accepted_never_comes_again_and_the_rest_does_once_its_member_has_closed(
    member: Make, queue: str, filled_topic: Callable[..., str]
) -> None:
    topic = filled_topic(10)
    first = await member(topic, group=queue)
    records = await read(first, 10)
    changes = [event for event in first.events.recent if isinstance(event, ShareAssignmentChanged)]
    assert changes[-1].partitions == (TopicPartition(topic, 0),)
    assert values(records) == list(range(10))
    assert [record.delivery_count for record in records] == [1] * 10
    first.accept(records[::2])
    assert set((await first.flush()).values()) == {None}
    await first.close()
    second = await member(topic, group=queue)
    again = await read(second, 5)
    assert values(again) == [1, 3, 5, 7, 9]
    second.accept(again)
    assert await second.flush() == dict.fromkeys(again)


async def test_what_is_released_comes_again_and_counts_and_what_is_rejected_does_not(
    member: Make, queue: str, filled_topic: Callable[..., str]
) -> None:
    topic = filled_topic(9)
    consumer = await member(topic, group=queue)
    records = await read(consumer, 9)
    for record in records:
        (record.accept, record.release, record.reject)[int(record.value or b"") % 3]()
    again = await read(consumer, 3)
    assert [(value, r.delivery_count) for value, r in zip(values(again), again, strict=True)] == [
        (1, 2),
        (4, 2),
        (7, 2),
    ]
    consumer.accept(again)
    await consumer.flush()
    assert await consumer.getmany(1, timeout_ms=300) == []


async def test_a_record_is_accepted_at_the_end_of_its_block_and_released_after_an_error(
    member: Make, queue: str, filled_topic: Callable[..., str]
) -> None:
    topic = filled_topic(3)
    consumer = await member(topic, group=queue)
    seen: list[tuple[int, int]] = []
    async with asyncio.timeout(PATIENCE_S):
        async for record in consumer:
            seen.append((int(record.value or b""), record.delivery_count))
            try:
                async with record:
                    if seen[-1] == (1, 1):
                        raise ValueError
            except ValueError:
                pass
            if len(seen) == 4:
                break
    assert sorted(seen) == [(0, 1), (1, 1), (1, 2), (2, 1)]
    await consumer.flush()
    with pytest.raises(AlreadyAcknowledgedError):
        record.release()


async def test_members_of_one_group_get_each_record_once(
    member: Make, queue: str, new_topic: NewTopic, produce: Produce
) -> None:
    topic = new_topic("shared", partitions=3)
    consumers = [await member(topic, group=queue, max_locked_records=20) for _ in range(3)]
    seen: Counter[int] = Counter()

    async def work(consumer: ShareConsumer) -> None:
        async for record in consumer:
            async with record:
                seen[int(record.value or b"")] += 1

    tasks = [asyncio.create_task(work(consumer)) for consumer in consumers]
    await asyncio.to_thread(produce, topic, range(600), partitions=3)
    async with asyncio.timeout(PATIENCE_S):
        while len(seen) < 600:  # noqa: ASYNC110 - counts, of several tasks
            await asyncio.sleep(0.01)
    for consumer in consumers:
        await consumer.close()
    await asyncio.gather(*tasks)
    assert seen == Counter(range(600))


@pytest.mark.slow(20)
async def test_a_lock_that_ends_gives_the_record_to_another_and_one_that_is_renewed_holds(
    member: Make, queue: str, group: Name, new_topic: NewTopic, produce: Produce, bootstrap: str
) -> None:
    """The shortest lock that brokers allow lasts for 15 s, and ends up to 300 ms later."""
    topic, renewing = new_topic("slow", partitions=1), group("renewing")
    for name in (queue, renewing):
        configs = {"share_record_lock_duration_ms": "15000", "share_auto_offset_reset": "earliest"}
        await asyncio.to_thread(set_group_configs, bootstrap, name, **configs)
    await asyncio.to_thread(produce, topic, range(1))
    holder = await member(topic, group=renewing, max_locked_records=1)
    (held,) = await read(holder, 1)
    slow = await member(topic, group=queue, renew_locks=False, max_locked_records=1)
    (late,) = await read(slow, 1)
    first_end = held.deadline
    quick = await member(topic, group=queue)
    (again,) = await read(quick, 1)
    assert (again.offset, again.delivery_count) == (late.offset, 2)
    # a busy member learns of its lock later than that begins at the broker, and counts from there
    assert late.deadline is not None
    await asyncio.sleep(late.deadline - asyncio.get_running_loop().time())
    late.accept()
    (error,) = (await slow.flush()).values()
    assert isinstance(error, LockLostError)
    assert error.late_ms > 0
    (event,) = [event for event in slow.events.recent if isinstance(event, LockLost)]
    assert (event.record, event.verdict) == (late, AcknowledgeType.ACCEPT)
    for consumer, record in ((quick, again), (holder, held)):
        record.accept()
        assert await consumer.flush() == {record: None}
    assert first_end is not None
    assert asyncio.get_running_loop().time() > first_end


async def test_a_connection_that_breaks_ends_its_locks_and_its_records_come_again(
    member: Make, queue: str, filled_topic: Callable[..., str]
) -> None:
    topic = filled_topic(3)
    consumer = await member(topic, group=queue)
    records = await read(consumer, 3)
    consumer.cluster.break_connections()
    again = await read(consumer, 3)
    assert [record.offset for record in again] == [0, 1, 2]
    assert all(record.lost for record in records)
    assert [event.record for event in consumer.events.recent if isinstance(event, LockLost)] == records
    consumer.accept(records)
    consumer.accept(again)
    assert await consumer.flush() == dict.fromkeys(again)


async def test_a_close_waits_for_records_that_are_worked_on(
    member: Make, queue: str, filled_topic: Callable[..., str]
) -> None:
    topic = filled_topic(4)
    consumer = await member(topic, group=queue)
    records = await read(consumer, 2)
    closing = asyncio.create_task(consumer.close(drain_timeout_ms=20_000))
    await asyncio.sleep(0)
    for record in records:
        record.accept()
    await closing
    other = await member(topic, group=queue)
    assert [record.offset for record in await read(other, 2)] == [2, 3]


async def test_a_topic_that_is_deleted_ends_the_reading_of_no_other(
    member: Make, queue: str, new_topic: NewTopic, produce: Produce, bootstrap: str
) -> None:
    """Apache Kafka may fail a whole fetch because of it, after it has locked records of the other: these come
    when that lock has ended.
    """
    await asyncio.to_thread(set_group_configs, bootstrap, queue, share_record_lock_duration_ms="15000")
    gone, kept = new_topic("gone", partitions=1), new_topic("kept", partitions=1)
    for topic in (gone, kept):
        await asyncio.to_thread(produce, topic, range(1))
    consumer = await member(gone, kept, group=queue, metadata_max_age_ms=1_000)
    for record in await read(consumer, 2):
        record.accept()
    await consumer.flush()
    async with Cluster(bootstrap) as cluster:
        await cluster.delete_topics([gone])
    await asyncio.to_thread(produce, kept, range(1, 6))
    assert values(await read(consumer, 5)) == [1, 2, 3, 4, 5]


async def test_a_group_of_another_type_is_refused_in_words(
    member: Make, bootstrap: str, group: Name, new_topic: NewTopic
) -> None:
    topic, name = new_topic("taken", partitions=1), group("taken")
    async with AsyncGroupConsumer(topic, bootstrap=bootstrap, group=name) as other:
        await other.getmany(1, timeout_ms=1_000)
        consumer = await member(topic, group=name)
        with pytest.raises(FatalGroupError, match="is of another type than share"):
            await consumer.getmany(1, timeout_ms=20_000)
