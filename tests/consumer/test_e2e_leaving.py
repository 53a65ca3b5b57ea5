"""A member that is closed while another task reads: it reads on until the others are ready to take over."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import cast

import pytest

from kohort.consumer import AsyncGroupConsumer, GroupConsumer
from kohort.consumer.events import PartitionsRevoked, RebalanceCompleted, RebalanceStarted
from kohort.consumer.group.classic import Membership
from tests.clients.drivers import Choice
from tests.clients.java_members import JavaMembers
from tests.consumer.conftest import QUICK, both_protocols
from tests.consumer.members import Maker, Worker
from tests.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.clients]

Name = Callable[[str], str]
PARTITIONS = 6
#: Longer than any machine takes until everybody has heard of a round.
NOTICE_MS = 60_000
#: What a member sees once it has told that it leaves: a round of the group, where members assign.
LAST = {"classic": [RebalanceCompleted, PartitionsRevoked], "consumer": [PartitionsRevoked]}
_ABOUT_TO_LEAVE = "about to leave: the consumer was closed"


@contextmanager
def flowing(bootstrap: str, topic: str) -> Iterator[list[int]]:
    """Records are produced all the time, one to a partition after the other; the list counts them."""
    from confluent_kafka import Producer

    sent: list[int] = []
    stop = threading.Event()

    def run() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1})
        for number in count():
            producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
            sent.append(number)
            producer.poll(0)
            if stop.wait(0.005):
                break
        assert producer.flush(30) == 0

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield sent
    finally:
        stop.set()
        thread.join()


def rounds_and_releases(consumer: AsyncGroupConsumer | GroupConsumer) -> list[object]:
    """What happened to a member from the moment when it told the group that it leaves."""
    events = list(consumer.events.recent)
    told = next(
        number
        for number, event in enumerate(events)
        if isinstance(event, RebalanceStarted) and event.reason == _ABOUT_TO_LEAVE
    )
    return [type(e) for e in events[told:] if isinstance(e, RebalanceCompleted | PartitionsRevoked)]


def reasons_of_rounds(consumer: AsyncGroupConsumer) -> list[str]:
    return [event.reason for event in consumer.events.recent if isinstance(event, RebalanceStarted)]


@both_protocols
async def test_a_member_that_leaves_reads_on_for_a_round_and_every_record_is_seen_once(
    member: Maker, bootstrap: str, new_topic: Callable[..., str], group: Name, protocol: str
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    settings = {"group": name, "leave_notice_ms": NOTICE_MS}
    workers = [Worker(await member(topic, **settings)) for _ in range(3)]
    with flowing(bootstrap, topic) as sent:
        await until(lambda: all(len(each.consumer.assignment()) == 2 for each in workers))
        # the leader, then a follower
        for leaves in sorted(workers, key=lambda each: not each.consumer.parts.membership.is_leader)[:2]:
            await until(lambda: all(each.consumer.assignment() for each in workers))
            await leaves.stop()
            assert rounds_and_releases(leaves.consumer) == LAST[protocol]
            workers.remove(leaves)
            workers.append(Worker(await member(topic, **settings)))
            await until(lambda: all(len(each.consumer.assignment()) == 2 for each in workers))
            workers[-1].seen += leaves.seen
    await until(lambda: sum(len(each.seen) for each in workers) >= len(sent))
    assert sorted(number for each in workers for number in each.seen) == sent


@both_protocols
async def test_a_member_whose_own_task_closes_it_is_not_waited_for(
    member: Maker, new_topic: Callable[..., str], group: Name
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    settings = {"group": name, "leave_notice_ms": NOTICE_MS}
    other, leaves = Worker(await member(topic, **settings)), await member(topic, **settings)
    await leaves.getmany(timeout_ms=0)
    await until(lambda: len(leaves.assignment()) == 3)
    await leaves.getmany(timeout_ms=0)
    await leaves.close()
    assert _ABOUT_TO_LEAVE not in reasons_of_rounds(leaves)
    await other.stop()


async def test_who_closes_a_second_time_leaves_at_once(
    member: Maker, new_topic: Callable[..., str], group: Name
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    settings = {"group": name, "leave_notice_ms": 100 * NOTICE_MS, "session_timeout_ms": NOTICE_MS}
    other, leaves = [Worker(await member(topic, **settings)) for _ in range(2)]
    await until(lambda: all(len(each.consumer.assignment()) == 3 for each in (other, leaves)))
    parts = other.consumer.parts
    await until(lambda: parts.membership._heartbeats.under_way is None)
    # it hears of nothing any more
    parts.membership._heartbeats._next = math.inf
    closing = asyncio.create_task(leaves.consumer.close(timeout_ms=100 * NOTICE_MS))
    await until(lambda: cast(Membership, leaves.consumer.parts.membership)._said_so)
    await leaves.consumer.close()
    await asyncio.wait_for(closing, NOTICE_MS / 1000)
    assert rounds_and_releases(leaves.consumer) == [PartitionsRevoked]
    parts.membership._heartbeats._next = 0.0
    parts.driver.carry_out()
    await until(lambda: len(other.consumer.assignment()) == PARTITIONS)


@both_protocols
async def test_a_blocking_consumer_that_another_thread_closes_reads_on_as_well(
    member: Maker, bootstrap: str, new_topic: Callable[..., str], group: Name, protocol: str
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    settings = {"group": name, "leave_notice_ms": NOTICE_MS}
    other, seen = Worker(await member(topic, **settings)), []
    consumer = GroupConsumer(topic, **{"bootstrap": bootstrap, **QUICK, **settings})

    def read() -> None:
        with consumer:
            for record in consumer:
                seen.append(int(record.value or b"-1"))
                consumer.done(record)

    with flowing(bootstrap, topic) as sent:
        reading = asyncio.create_task(asyncio.to_thread(read))
        await until(lambda: bool(seen) and len(other.consumer.assignment()) == PARTITIONS // 2)
        # a rebalance that is still under way would carry the announcement, and have another reason
        await until(lambda: len(consumer.assignment()) == PARTITIONS // 2)
        await asyncio.to_thread(consumer.close, drain_timeout_ms=10_000)
        await reading
        assert rounds_and_releases(consumer) == LAST[protocol]
    await until(lambda: len(seen) + len(other.seen) >= len(sent))
    assert sorted([*seen, *other.seen]) == sent


@pytest.mark.parametrize("first", ["kohort", "confluent-kafka"])
async def test_members_leave_groups_with_other_clients_in_them(
    member: Maker, bootstrap: str, new_topic: Callable[..., str], group: Name, first: str
) -> None:
    from confluent_kafka import Consumer

    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    foreign: list[int] = []
    stop = threading.Event()

    def run() -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": name,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": QUICK["session_timeout_ms"],
                "heartbeat.interval.ms": QUICK["heartbeat_interval_ms"],
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([topic])
        while not stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                foreign.append(int(message.value() or b"-1"))
        consumer.close()

    theirs = threading.Thread(target=run)
    settings = {"group": name, "leave_notice_ms": NOTICE_MS}
    with flowing(bootstrap, topic) as sent:
        try:
            if first == "confluent-kafka":
                theirs.start()
                await until(lambda: bool(foreign))
            ours = [Worker(await member(topic, **settings)) for _ in range(2)]
            if first == "kohort":
                await until(lambda: bool(ours[0].seen))
                theirs.start()
            await until(lambda: bool(foreign) and all(len(o.consumer.assignment()) == 2 for o in ours))
            members = [cast(Membership, each.consumer.parts.membership) for each in ours]
            told = [each._heard_by_leader or each.is_leader for each in members]
            assert told == [first == "kohort"] * 2
            leaves = ours.pop()
            await leaves.stop()
            await until(lambda: len(ours[0].consumer.assignment()) == PARTITIONS // 2)
            mine = {number for each in (leaves, *ours) for number in each.seen}
            assert len(mine) == sum(len(each.seen) for each in (leaves, *ours))
            await until(lambda: set(sent[: len(sent) - 1]) <= {*mine, *ours[0].seen, *foreign})
        finally:
            stop.set()
            if theirs.ident is not None:
                await asyncio.to_thread(theirs.join)


@pytest.mark.slow(8)
@pytest.mark.parametrize("first", ["kohort", "java"])
async def test_members_leave_groups_with_javas_clients_in_them(
    member: Maker, bootstrap: str, new_topic: Callable[..., str], group: Name, first: str
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    settings = {"group": name, "leave_notice_ms": NOTICE_MS}
    choice = Choice("cooperative-sticky", session_timeout_ms=QUICK["session_timeout_ms"])
    jvm = await asyncio.to_thread(JavaMembers)
    try:
        with flowing(bootstrap, topic):
            if first == "java":
                theirs = jvm.join(bootstrap, name, topic, choice)
                await until(lambda: len(theirs.held) == PARTITIONS)
            ours = [Worker(await member(topic, **settings)) for _ in range(2)]
            if first == "kohort":
                await until(lambda: all(len(each.consumer.assignment()) == 3 for each in ours))
                theirs = jvm.join(bootstrap, name, topic, choice)
            await until(
                lambda: {len(theirs.held), *(len(each.consumer.assignment()) for each in ours)} == {2}
            )
            assert any(each.consumer.parts.membership.is_leader for each in ours) == (first == "kohort")
            leaves, stays = sorted(ours, key=lambda each: each.consumer.parts.membership.is_leader)
            await leaves.stop()
            await until(lambda: len(theirs.held) == len(stays.consumer.assignment()) == PARTITIONS // 2)
            # a leader of ours gets the others ready first; of Java's nobody asks for it
            assert (_ABOUT_TO_LEAVE in reasons_of_rounds(leaves.consumer)) == (first == "kohort")
            assert len({*leaves.seen, *stays.seen}) == len(leaves.seen) + len(stays.seen)
            await stays.stop()
            await until(lambda: len(theirs.held) == PARTITIONS)
    finally:
        jvm.close()
