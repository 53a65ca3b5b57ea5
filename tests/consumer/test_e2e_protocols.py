"""Groups change their protocol while they work, and members of other clients are in them.

Covers: consumer/run/assembly.py.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from kohort.assignors import RangeAssignor
from kohort.consumer import AsyncGroupConsumer, Cluster, ConfigError, FatalGroupError, Record
from kohort.consumer.events import PatternRefused
from kohort.consumer.group.classic import Membership
from kohort.consumer.group.consumer_group import ConsumerMembership
from kohort.service import ConsumerService
from tests.clients.drivers import Choice
from tests.clients.java_members import JavaMembers
from tests.consumer.conftest import QUICK
from tests.consumer.members import Maker, Worker, numbers, read, shorten_sessions
from tests.consumer.test_e2e_leaving import PARTITIONS, flowing
from tests.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.clients]

Name = Callable[[str], str]
NewTopic = Callable[..., str]


class Theirs:
    """confluent-kafka in a thread; ``seen`` are the numbers in the order of delivery."""

    def __init__(self, bootstrap: str, group: str, topic: str, protocol: str) -> None:
        from confluent_kafka import Consumer

        settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": group}
        settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        if protocol == "classic":
            settings |= {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 200}
        else:
            settings["group.protocol"] = "consumer"
        self.seen: list[int] = []
        self.held: set[int] = set()
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.05)
            self.held = {each.partition for each in self._consumer.assignment()}
            if message is not None and message.error() is None:
                self._consumer.commit(message=message, asynchronous=False)
                self.seen.append(int(message.value() or b"-1"))
        self._consumer.close()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def held(*members: Any) -> list[int]:
    sizes = (len(m.held) if hasattr(m, "held") else len(m.consumer.assignment()) for m in members)
    return sorted(sizes)


async def all_once(sent: list[int], *members: Any) -> None:
    """Every record was seen, and none twice."""
    await until(lambda: len({n for m in members for n in m.seen}) >= len(sent))
    counts = Counter(n for m in members for n in m.seen)
    assert [n for n, count in counts.items() if count > 1] == []


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"protocol": "auto"}, ConsumerMembership),
        ({"protocol": "auto", "assignor": "range"}, ConsumerMembership),
        ({"protocol": "auto", "assignor": "uniform"}, ConsumerMembership),
        ({"protocol": "auto", "assignor": RangeAssignor}, Membership),
        ({"protocol": "auto", "session_timeout_ms": 10_000}, Membership),
        ({"protocol": "consumer"}, ConsumerMembership),
        ({}, Membership),
    ],
)
async def test_the_coordinator_assigns_where_it_can_and_nothing_needs_the_classic_protocol(
    bootstrap: str, new_topic: NewTopic, group: Name, settings: dict[str, Any], kind: type
) -> None:
    topic = new_topic("orders", partitions=2)
    async with AsyncGroupConsumer(topic, bootstrap=bootstrap, group=group("billing"), **settings) as consumer:
        await until(lambda: len(consumer.assignment()) == 2)
        assert type(consumer.parts.membership) is kind


async def test_an_assignor_that_the_broker_does_not_have_is_final(
    member: Maker, new_topic: NewTopic, group: Name
) -> None:
    consumer = await member(new_topic("orders"), group=group("g"), protocol="consumer", assignor="by-moon")
    with pytest.raises(FatalGroupError, match=r"by-moon.*uniform, range"):
        await consumer.getmany(timeout_ms=20_000)
    with pytest.raises(ConfigError, match="lets the broker assign"):
        AsyncGroupConsumer("orders", bootstrap="x", group="g", protocol="consumer", assignor=RangeAssignor())


@pytest.mark.parametrize("end", [r"(?=x)x", r"x++"])
async def test_a_pattern_that_only_python_knows_is_matched_here(
    member: Maker, topic: Name, group: Name, produce: Callable[..., None], bootstrap: str, end: str
) -> None:
    name = topic("orders")
    async with Cluster(bootstrap) as cluster:
        await cluster.create_topics({name + "x": 1})
    await asyncio.to_thread(produce, name + "x", range(3))
    consumer = await member(pattern=name + end, group=group("g"), protocol="consumer")
    assert numbers(await read(consumer, 3)) == [0, 1, 2]
    assert any(isinstance(event, PatternRefused) for event in consumer.events.recent)


async def test_members_change_their_protocol_one_after_the_other_and_back(
    member: Maker, bootstrap: str, new_topic: NewTopic, group: Name
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")

    async def start(protocol: str) -> Worker:
        return Worker(await member(topic, group=name, protocol=protocol))

    with flowing(bootstrap, topic) as sent:
        workers = [await start("classic") for _ in range(3)]
        await until(lambda: held(*workers) == [2, 2, 2])
        everybody = list(workers)
        for protocol in ("consumer", "classic"):
            for _ in range(3):
                await workers.pop(0).stop()
                workers.append(await start(protocol))
                everybody.append(workers[-1])
                await until(lambda: held(*workers) == [2, 2, 2])
            kind = ConsumerMembership if protocol == "consumer" else Membership
            assert {type(each.consumer.parts.membership) for each in workers} == {kind}
    await all_once(sent, *everybody)


@pytest.mark.parametrize(("theirs", "ours"), [("consumer", "consumer"), ("classic", "consumer")])
async def test_members_of_confluent_kafka_are_in_the_group(
    member: Maker, bootstrap: str, new_topic: NewTopic, group: Name, theirs: str, ours: str
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    await asyncio.to_thread(shorten_sessions, bootstrap, name, QUICK["session_timeout_ms"])
    foreign = Theirs(bootstrap, name, topic, theirs)
    try:
        with flowing(bootstrap, topic) as sent:
            await until(lambda: held(foreign) == [6])
            first = Worker(await member(topic, group=name, protocol=ours))
            await until(lambda: held(foreign, first) == [3, 3])
            second = Worker(await member(topic, group=name, protocol=ours))
            await until(lambda: held(foreign, first, second) == [2, 2, 2])
            await first.stop()
            await until(lambda: held(foreign, second) == [3, 3])
            await asyncio.to_thread(foreign.stop)
            await until(lambda: held(second) == [6])
        await all_once(sent, foreign, first, second)
    finally:
        await asyncio.to_thread(foreign.stop)


@pytest.mark.slow(12)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_members_of_java_give_up_partitions_and_take_them_back(
    member: Maker, bootstrap: str, new_topic: NewTopic, group: Name, protocol: str
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    jvm = await asyncio.to_thread(JavaMembers)
    classic = protocol == "classic"
    choice = Choice("cooperative-sticky", session_timeout_ms=10_000) if classic else Choice()
    try:
        theirs = jvm.join(bootstrap, name, topic, choice, protocol=protocol)
        await until(lambda: held(theirs) == [6])
        with flowing(bootstrap, topic):
            ours = [Worker(await member(topic, group=name, protocol="consumer")) for _ in range(2)]
            await until(lambda: held(theirs, *ours) == [2, 2, 2])
            await ours.pop().stop()
            await until(lambda: held(theirs, *ours) == [3, 3])
            await ours.pop().stop()
        await until(lambda: held(theirs) == [6])
    finally:
        jvm.close()


@pytest.mark.slow(15)
async def test_members_of_java_become_consumers_one_after_the_other_beside_ours(
    member: Maker, bootstrap: str, new_topic: NewTopic, group: Name
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    jvm = await asyncio.to_thread(JavaMembers)
    classic, consumer = Choice("cooperative-sticky", session_timeout_ms=10_000), Choice(instance_id="pod-1")
    try:
        old = [jvm.join(bootstrap, name, topic, classic) for _ in range(2)]
        await until(lambda: held(*old) == [3, 3])
        ours = Worker(await member(topic, group=name, protocol="consumer"))
        await until(lambda: held(*old, ours) == [2, 2, 2])
        await asyncio.to_thread(old[0].close)
        static = jvm.join(bootstrap, name, topic, consumer, protocol="consumer")
        await until(lambda: held(old[1], static, ours) == [2, 2, 2])
        await asyncio.to_thread(old[1].close)
        await until(lambda: held(static, ours) == [3, 3])
        had = static.held
        # it comes back in time: nobody else gets what it has
        await asyncio.to_thread(static.close)
        assert held(ours) == [3]
        back = jvm.join(bootstrap, name, topic, consumer, protocol="consumer")
        await until(lambda: back.held == had)
        await ours.stop()
        await until(lambda: held(back) == [6])
    finally:
        jvm.close()


async def test_services_restart_one_after_the_other_and_no_record_is_handled_twice(
    bootstrap: str, new_topic: NewTopic, group: Name
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("billing")
    handled: Counter[int] = Counter()

    def start() -> tuple[ConsumerService, asyncio.Task[None]]:
        config = {**QUICK, "bootstrap": bootstrap, "group": name, "protocol": "consumer"}
        service = ConsumerService(**config)

        @service.handler(topic, concurrency=8, lanes="none")
        async def count(record: Record) -> None:
            await asyncio.sleep(0.02)
            handled[int(record.value or b"-1")] += 1

        return service, asyncio.create_task(service.serve())

    with flowing(bootstrap, topic) as sent:
        running = [start() for _ in range(3)]
        await until(lambda: len(handled) > 100)
        for _ in range(3):
            service, serving = running.pop(0)
            service.stop()
            await asyncio.wait_for(serving, 60)
            running.append(start())
            so_far = len(handled)
            await until(lambda so_far=so_far: len(handled) > so_far + 100)  # type: ignore[misc]
    await until(lambda: len(handled) >= len(sent))
    for service, serving in running:
        service.stop()
        await serving
    assert set(handled.values()) == {1}


async def test_topics_are_found_by_their_ids(bootstrap: str, new_topic: NewTopic) -> None:
    name = new_topic("orders", partitions=3)
    async with Cluster(bootstrap) as cluster:
        assert await cluster.consumer_group_version() == 1
        topic_id = (await cluster.metadata([name])).topic_id(name)
        assert topic_id is not None
        async with Cluster(bootstrap) as other:
            known = await other.metadata_by_id([topic_id, uuid4()])
        assert [(t.name, len(t.partitions)) for t in known.topics.values()] == [(name, 3)]
        assert known.errors == {}
