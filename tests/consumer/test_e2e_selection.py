"""What is read: topics, a pattern of them, or partitions by hand.

Covers: consumer/topic_selection.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from kohort.consumer import Cluster, CommitFailedError, CommittedOffset, ConfigError, GroupConsumer
from kohort.consumer.events import LogTruncated, OffsetReset, PatternMatched
from kohort.protocol import TopicPartition
from tests.consumer.conftest import QUICK, both_protocols
from tests.consumer.members import Maker, numbers, read
from tests.waiting import until

pytestmark = [pytest.mark.kafka, both_protocols]

Name = Callable[[str], str]
NewTopic = Callable[..., str]
Produce = Callable[..., None]


async def test_a_pattern_subscribes_to_what_matches_as_a_whole_now_and_later(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce, bootstrap: str, protocol: str
) -> None:
    first, other = new_topic("orders", partitions=1), new_topic("payments", partitions=1)
    await asyncio.to_thread(produce, first, range(3))
    await asyncio.to_thread(produce, other, range(10, 13))
    consumer = await member(pattern=rf"{first}(-late)?", group=group("billing"))
    assert numbers(await read(consumer, 3)) == [0, 1, 2]
    assert consumer.subscription() == {first}
    late = f"{first}-late"
    async with Cluster(bootstrap) as cluster:
        await cluster.create_topics({late: 1})
    await asyncio.to_thread(produce, late, [20])
    assert numbers(await read(consumer, 1)) == [20]
    matched = [event.topics for event in consumer.events.recent if isinstance(event, PatternMatched)]
    # the coordinator knows what matches, and tells what is assigned
    assert matched == ([(first,), (first, late)] if protocol == "classic" else [])


async def test_partitions_by_hand_need_no_group_and_disturb_none(
    member: Maker, filled_topic: Callable[..., str]
) -> None:
    topic = filled_topic(30, partitions=3)
    p0, p1, p2 = (TopicPartition(topic, number) for number in range(3))
    consumer = await member(partitions=[p0, p1])
    assert sorted(numbers(await read(consumer, 20))) == [n for n in range(30) if n % 3 != 2]
    assert consumer.assignment() == {p0, p1}
    assert consumer.state.generation == -1
    consumer.assign(p1, p2)
    assert numbers(await read(consumer, 10)) == list(range(2, 30, 3)), "what stays is not read again"
    await until(lambda: consumer.assignment() == {p1, p2})
    for call in (consumer.commit(), consumer.committed()):
        with pytest.raises(ConfigError, match="no group"):
            await call


async def test_partitions_by_hand_go_on_where_their_group_committed(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(10))
    mine = TopicPartition(topic, 0)
    first = await member(partitions=[mine], group=name)
    first.done_all(await read(first, 6))
    await first.close()
    second = await member(partitions=[mine], group=name)
    assert numbers(await read(second, 4)) == [6, 7, 8, 9]


async def test_a_commit_by_hand_into_a_group_with_members_fails_at_once_and_says_why(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(3))
    await read(await member(topic, group=name), 1)
    by_hand = await member(partitions=[TopicPartition(topic, 0)], group=name, enable_auto_commit=False)
    by_hand.done_all(await read(by_hand, 3))
    with pytest.raises(CommitFailedError, match="UNKNOWN_MEMBER_ID"):
        await asyncio.wait_for(by_hand.commit(), 30)


async def test_the_kinds_are_not_mixed(member: Maker, new_topic: NewTopic, group: Name) -> None:
    topic = new_topic("orders", partitions=1)
    consumer = await member(topic, group=group("billing"))
    with pytest.raises(
        ConfigError, match="subscribes to topics: assign cannot be mixed with that, use subscribe"
    ):
        consumer.assign(TopicPartition(topic, 0))
    with pytest.raises(ConfigError, match="subscribe_pattern cannot be mixed"):
        consumer.subscribe_pattern("x.*")
    assert consumer.subscription() == {topic}


async def test_an_offset_committed_beyond_the_end_of_its_leader_epoch_goes_on_at_the_cut(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce, bootstrap: str
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(10))
    partition = TopicPartition(topic, 0)
    async with Cluster(bootstrap) as cluster:
        known = await cluster.metadata([topic])
        epoch = known.leader_epoch(partition)
        await cluster.commit(name, {partition: CommittedOffset(4_711, epoch)})
    consumer = await member(topic, group=name)
    await until(lambda: any(isinstance(e, LogTruncated) for e in consumer.events.recent))
    await asyncio.to_thread(produce, topic, [10])
    assert numbers(await read(consumer, 1)) == [10]
    (event,) = [e for e in consumer.events.recent if isinstance(e, LogTruncated)]
    assert event == LogTruncated(partition, 4_711, epoch, 10)
    assert not [e for e in consumer.events.recent if isinstance(e, OffsetReset)]


def test_the_blocking_face_has_the_same(
    bootstrap: str, filled_topic: Callable[..., str], produce: Produce
) -> None:
    topic = filled_topic(5)
    time.sleep(0.02)
    now_ms = int(time.time() * 1000)
    produce(topic, range(5, 8))
    with GroupConsumer(partitions=[TopicPartition(topic, 0)], bootstrap=bootstrap, **QUICK) as consumer:
        seen: list[int] = []
        while len(seen) < 8:
            seen += numbers(consumer.getmany(100))
        consumer.rewind(now_ms)
        again: list[int] = []
        while len(again) < 3:
            again += numbers(consumer.getmany(100))
    assert (seen, again) == (list(range(8)), [5, 6, 7])
