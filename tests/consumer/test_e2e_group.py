"""Consumers in groups: who reads what while members come, go and die, and what is committed.

Covers: consumer/run/assembly.py, consumer/consumer.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from kohort.consumer import CommitFailedError, StaleRecordError
from kohort.consumer.events import (
    CommitSucceeded,
    DrainTimedOut,
    PartitionsLost,
    PartitionsRevoked,
    PollIntervalExceeded,
    RebalanceCompleted,
    TopicMissing,
)
from kohort.protocol import TopicPartition
from tests.consumer.configs import config
from tests.consumer.conftest import SHORT_SESSION_MS, both_protocols
from tests.consumer.members import Maker, Worker, numbers, read, shorten_sessions
from tests.waiting import until

pytestmark = [pytest.mark.kafka, both_protocols]

Name = Callable[[str], str]
#: The broker's assignor that does what one of ours does.
BROKERS = {"cooperative-sticky": "uniform", "range": "range"}
NewTopic = Callable[..., str]
Produce = Callable[..., None]


async def test_only_what_is_done_is_committed_and_a_restart_goes_on_there(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(100))
    first = await member(topic, group=name)
    records = await read(first, 70)
    for record in records[:40] + records[50:60]:
        first.done(record)
    await first.close()
    second = await member(topic, group=name)
    assert numbers(await read(second, 50)) == [*range(40, 50), *range(60, 100)]


async def test_done_in_any_order_is_committed_at_the_interval(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(10))
    consumer = await member(topic, group=name, auto_commit_interval_ms=50)
    records = await read(consumer, 10)
    consumer.done_all(reversed(records))
    partition = TopicPartition(topic, 0)
    # one before anything was done may come first: it says where the group starts
    await until(lambda: CommitSucceeded({partition: 10}) in consumer.events.recent)
    assert (await consumer.committed())[partition].offset == 10


async def test_nothing_is_committed_by_itself_when_auto_commit_is_off(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(10))
    first = await member(topic, group=name, enable_auto_commit=False, auto_commit_interval_ms=10)
    first.done_all(await read(first, 10))
    await asyncio.sleep(0.1)
    await first.close()
    second = await member(topic, group=name, enable_auto_commit=False)
    records = await read(second, 10)
    assert numbers(records) == list(range(10))
    second.done_all(records[:3])
    await second.commit()
    assert (await second.committed())[TopicPartition(topic, 0)].offset == 3


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range"])
async def test_every_record_is_seen_once_while_members_join_and_leave_in_order(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce, assignor: str, protocol: str
) -> None:
    topic, name = new_topic("orders", partitions=6), group("billing")
    assignor = BROKERS[assignor] if protocol == "consumer" else assignor
    workers: list[Worker] = []
    for step in range(5):
        await asyncio.to_thread(produce, topic, range(step * 200, step * 200 + 200), partitions=6)
        if step < 3:
            workers.append(Worker(await member(topic, group=name, assignor=assignor), work_s=0.001))
        else:
            await workers[step - 3].stop()
        await asyncio.sleep(0.4)
    await until(lambda: len({n for w in workers for n in w.seen}) == 1000)
    await workers[2].stop()
    counts = Counter(n for w in workers for n in w.seen)
    assert set(counts) == set(range(1000))
    assert [n for n, count in counts.items() if count > 1] == []


async def test_the_partitions_of_a_member_that_dies_go_to_the_others_from_what_it_committed(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce, bootstrap: str
) -> None:
    topic, name = new_topic("orders", partitions=6), group("billing")
    shorten_sessions(bootstrap, name, SHORT_SESSION_MS)
    settings = {"group": name, "auto_commit_interval_ms": 100}
    workers = [
        Worker(
            await member(topic, **settings, **({"session_timeout_ms": SHORT_SESSION_MS} if n == 0 else {}))
        )
        for n in range(3)
    ]
    await until(lambda: [len(w.consumer.assignment()) for w in workers] == [2, 2, 2])
    await asyncio.to_thread(produce, topic, range(600), partitions=6)
    await until(lambda: sum(len(w.seen) for w in workers) == 600)
    await workers[0].kill()
    await asyncio.to_thread(produce, topic, range(600, 1200), partitions=6)
    await until(lambda: {n for w in workers for n in w.seen} == set(range(1200)))
    await until(lambda: [len(w.consumer.assignment()) for w in workers[1:]] == [3, 3])
    for worker in workers[1:]:
        await worker.stop()


async def test_a_partition_that_moves_is_given_up_only_when_its_records_are_done(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=2), group("billing")
    await asyncio.to_thread(produce, topic, range(20), partitions=2)
    first = await member(topic, group=name)
    records = await read(first, 20)
    second = await member(topic, group=name)
    await until(lambda: len(first.assignment()) == 1)
    (moving,) = {TopicPartition(topic, p) for p in (0, 1)} - first.assignment()
    await asyncio.to_thread(produce, topic, range(20, 40), partitions=2)
    await asyncio.sleep(0.5)
    assert second.assignment() == frozenset()
    first.done_all(records)
    got = await read(second, 10)
    assert {record.topic_partition for record in got} == {moving}
    assert min(numbers(got)) >= 20
    assert not [event for event in first.events.recent if isinstance(event, DrainTimedOut)]


async def test_records_not_done_in_time_are_named_and_seen_again_elsewhere(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(10))
    first = await member(topic, group=name, drain_timeout_ms=200)
    records = await read(first, 10)
    first.done_all(records[:4])
    first.subscribe(new_topic("other"))
    await until(lambda: any(isinstance(e, PartitionsRevoked) for e in first.events.recent))
    (timed_out,) = [e for e in first.events.recent if isinstance(e, DrainTimedOut)]
    assert timed_out.offsets == {TopicPartition(topic, 0): 4}
    with pytest.raises(StaleRecordError, match=f"{topic}-0 offset 4"):
        first.done(records[4])
    second = await member(topic, group=name)
    assert numbers(await read(second, 6)) == list(range(4, 10))


async def test_a_commit_for_partitions_lost_meanwhile_names_them(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(10))
    first = await member(topic, group=name, drain_timeout_ms=0)
    await read(first, 10)
    first.subscribe(new_topic("other"))
    await until(lambda: any(isinstance(e, PartitionsRevoked) for e in first.events.recent))
    with pytest.raises(CommitFailedError) as caught:
        await first.commit({TopicPartition(topic, 0): 10})
    assert caught.value.lost == (TopicPartition(topic, 0),)


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "range"])
async def test_callbacks_tell_what_comes_and_goes(
    member: Maker, new_topic: NewTopic, group: Name, assignor: str, protocol: str
) -> None:
    topic, name = new_topic("orders", partitions=2), group("billing")
    assignor = BROKERS[assignor] if protocol == "consumer" else assignor
    told: list[tuple[str, int]] = []

    async def revoked(partitions: tuple[TopicPartition, ...]) -> None:
        await asyncio.sleep(0)
        told.append(("revoked", len(partitions)))

    first = await member(
        topic,
        group=name,
        assignor=assignor,
        on_partitions_assigned=lambda partitions: told.append(("assigned", len(partitions))),
        on_partitions_revoked=revoked,
    )
    await until(lambda: told == [("assigned", 2)])
    second = await member(topic, group=name, assignor=assignor)
    await until(lambda: len(second.assignment()) == 1 and len(first.assignment()) == 1)
    await first.close()
    eager = [("assigned", 2), ("revoked", 2), ("assigned", 1), ("revoked", 1)]
    cooperative = [("assigned", 2), ("assigned", 0), ("revoked", 1), ("assigned", 0), ("revoked", 1)]
    # by epochs only what changes is told
    changes = [told for told in cooperative if told[1]]
    classic = eager if assignor == "range" else cooperative
    assert told == (changes if protocol == "consumer" else classic)


async def test_a_static_member_that_restarts_keeps_its_partitions_without_a_rebalance(
    member: Maker, new_topic: NewTopic, group: Name
) -> None:
    topic, name = new_topic("orders", partitions=4), group("billing")
    settings = {"group": name, "session_timeout_ms": 60_000}
    first = await member(topic, group_instance_id="a", **settings)
    second = await member(topic, group_instance_id="b", **settings)
    await until(lambda: (len(first.assignment()), len(second.assignment())) == (2, 2))
    before, generation = second.assignment(), first.state.generation
    await second.close()
    again = await member(topic, group_instance_id="b", **settings)
    await until(lambda: again.assignment() == before)
    assert (first.state.generation, again.state.generation) == (generation, generation)


async def test_no_poll_for_too_long_is_told_and_the_next_poll_rejoins(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(10))
    consumer = await member(topic, group=name, max_poll_interval_ms=600)
    records = await read(consumer, 5)
    await until(lambda: any(isinstance(e, PartitionsLost) for e in consumer.events.recent))
    (told,) = [e for e in consumer.events.recent if isinstance(e, PollIntervalExceeded)]
    assert told.partitions == (TopicPartition(topic, 0),)
    assert told.age_ms >= 600
    with pytest.raises(StaleRecordError):
        consumer.done(records[0])
    assert numbers(await read(consumer, 10)) == list(range(10))


async def test_waiting_for_records_is_no_breach_of_the_poll_interval(
    member: Maker, new_topic: NewTopic, group: Name
) -> None:
    consumer = await member(new_topic("orders"), group=group("billing"), max_poll_interval_ms=300)
    assert await consumer.getmany(timeout_ms=1_500) == []
    assert not [e for e in consumer.events.recent if isinstance(e, PollIntervalExceeded)]


async def test_a_topic_that_is_made_later_is_found(
    member: Maker, topic: Name, group: Name, produce: Produce, bootstrap: str
) -> None:
    from kafka import KafkaAdminClient

    name = topic("late")
    consumer = await member(name, group=group("billing"))
    await until(lambda: any(isinstance(e, TopicMissing) for e in consumer.events.recent))
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics({name: {"num_partitions": 2, "replication_factor": 1}}, wait_for_metadata=True)
    await asyncio.to_thread(produce, name, range(10), partitions=2)
    assert sorted(numbers(await read(consumer, 10))) == list(range(10))


async def test_connections_that_break_are_made_again_and_nothing_is_lost(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic = new_topic("orders", partitions=2)
    consumer = await member(topic, group=group("billing"))
    await asyncio.to_thread(produce, topic, range(100), partitions=2)
    consumer.done_all(await read(consumer, 100))
    generation = consumer.state.generation
    consumer.parts.cluster.break_connections()
    await asyncio.to_thread(produce, topic, range(100, 200), partitions=2)
    assert sorted(numbers(await read(consumer, 100))) == list(range(100, 200))
    assert consumer.state.generation == generation


async def test_the_leader_notices_new_partitions(
    member: Maker, new_topic: NewTopic, group: Name, bootstrap: str
) -> None:
    from confluent_kafka.admin import AdminClient, NewPartitions

    topic = new_topic("orders", partitions=2)
    consumer = await member(topic, group=group("billing"))
    await until(lambda: len(consumer.assignment()) == 2)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_partitions([NewPartitions(topic, 5)]).values():
        await asyncio.to_thread(done.result)
    await until(lambda: len(consumer.assignment()) == 5)
    reasons = [e for e in consumer.events.recent if isinstance(e, RebalanceCompleted)]
    assert [len(e.assigned) for e in reasons] == [2, 3]


async def test_a_consumer_whose_group_does_not_know_it_any_more_comes_back(
    member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await asyncio.to_thread(produce, topic, range(10))
    consumer = await member(topic, group=name)
    consumer.done_all((await read(consumer, 10))[:5])
    await consumer.commit()
    await _remove_member(consumer.parts.cluster, name, consumer.state.member_id)
    await until(lambda: any(isinstance(e, PartitionsLost) for e in consumer.events.recent))
    assert numbers(await read(consumer, 5)) == list(range(5, 10))


async def _remove_member(cluster: object, group: str, member_id: str) -> None:
    from kohort.consumer import Cluster
    from kohort.consumer.group.messages import leave_group

    assert isinstance(cluster, Cluster)
    send = leave_group(config(group=group), member_id, "removed by a test")
    response = await cluster.request_coordinator(group, send.body)
    assert response.error_code == 0
