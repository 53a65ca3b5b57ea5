"""Assignors that go wrong in a live group: the group goes on, and says what was wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest

from kohort.assignors import Assignor, GroupAssignment, Member, RangeAssignor, TopicInfo
from kohort.consumer import AsyncGroupConsumer
from kohort.consumer.errors import FatalGroupError
from kohort.consumer.events import AssignorFailed, RebalanceCompleted
from kohort.protocol import TopicPartition
from tests.consumer.members import Maker, Worker
from tests.waiting import until

pytestmark = pytest.mark.kafka

Name = Callable[[str], str]
PARTITIONS = 6


class Raising(RangeAssignor):
    name = "mine"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        raise ZeroDivisionError(f"no way to share {sorted(topics)} among {len(members)}")


class LeavesOut(RangeAssignor):
    name = "mine"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        return {member: given[1:] for member, given in super().assign(topics, members).items()}


class Doubles(RangeAssignor):
    name = "mine"

    def assign(self, topics: Mapping[str, TopicInfo], members: Mapping[str, Member]) -> GroupAssignment:
        everything = [TopicPartition(t, n) for t, info in topics.items() for n in range(info.partition_count)]
        return dict.fromkeys(members, everything)


class ForgetsHowToJoin(RangeAssignor):
    name = "mine"

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        raise KeyError(topics[0])


def _failures(consumer: AsyncGroupConsumer) -> list[AssignorFailed]:
    return [event for event in consumer.events.recent if isinstance(event, AssignorFailed)]


def _protocol(consumer: AsyncGroupConsumer) -> str:
    rounds = [event for event in consumer.events.recent if isinstance(event, RebalanceCompleted)]
    return rounds[-1].protocol if rounds else ""


def _shared_out(consumers: Sequence[AsyncGroupConsumer]) -> bool:
    held = sorted(partition.partition for consumer in consumers for partition in consumer.assignment())
    return held == list(range(PARTITIONS)) and all(consumer.assignment() for consumer in consumers)


@pytest.mark.parametrize(
    ("broken", "offending"),
    [(Raising, 0), (LeavesOut, 1), (Doubles, PARTITIONS), (ForgetsHowToJoin, 0)],
)
async def test_the_next_assignor_that_all_members_have_takes_over(
    broken: type[Assignor],
    offending: int,
    member: Maker,
    new_topic: Callable[..., str],
    group: Name,
    produce: Callable[..., None],
) -> None:
    topic, name = new_topic("orders", partitions=PARTITIONS), group("broken")
    consumers = [await member(topic, group=name, assignor=[broken, "range", "roundrobin"])]
    # Doubles is only wrong once there are two
    consumers += [await member(topic, group=name, assignor=[broken, "roundrobin"]) for _ in range(2)]
    workers = [Worker(consumer) for consumer in consumers]
    await until(lambda: _shared_out(consumers) and {_protocol(c) for c in consumers} == {"roundrobin"})
    reports = [report for consumer in consumers for report in _failures(consumer)]
    assert {report.assignor for report in reports} == {"mine"}
    assert max(len(report.partitions) for report in reports) >= offending
    await asyncio.to_thread(produce, topic, range(60), partitions=PARTITIONS)
    await until(lambda: sorted(n for worker in workers for n in worker.seen) == list(range(60)))
    for worker in workers:
        await worker.stop()


async def test_a_group_with_nothing_else_in_common_goes_on_with_ours(
    member: Maker, new_topic: Callable[..., str], group: Name
) -> None:
    """The leader has another assignor, the other member has not: what failed stays the group's protocol."""
    topic, name = new_topic("orders", partitions=PARTITIONS), group("broken")
    first = await member(topic, group=name, assignor=[Doubles, "range"])
    second = await member(topic, group=name, assignor=[Doubles])
    workers = [Worker(first), Worker(second)]
    await until(lambda: _shared_out([first, second]) and _protocol(second) == "mine")
    used = [report.used for consumer in (first, second) for report in _failures(consumer)]
    assert set(used) == {"range"}
    for worker in workers:
        await worker.stop()


async def test_who_has_no_assignor_in_common_is_told_whose_the_groups_is(
    member: Maker, new_topic: Callable[..., str], group: Name
) -> None:
    topic, billing = new_topic("orders", PARTITIONS), group("billing")
    first = await member(topic, group=billing, assignor="roundrobin", client_id="old-app")
    await until(lambda: len(first.assignment()) == PARTITIONS)
    second = await member(topic, group=billing, assignor=["range", "sticky"])
    with pytest.raises(FatalGroupError, match="no assignor of this consumer is known") as refused:
        await second.getmany(timeout_ms=20_000)
    text = str(refused.value)
    assert "the group uses 'roundrobin', by old-app-" in text
    assert "client 'old-app' at /127.0.0.1" in text
    assert text.endswith("this consumer offers 'range', 'sticky'")
