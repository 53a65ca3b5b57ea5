"""GroupAdmin on a cluster: groups with and without members, of one kind and another."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from kohort.admin import GroupAdmin, ResetTo
from kohort.client import ConfigError
from kohort.consumer import AsyncGroupConsumer, BrokerConnectionError, Cluster
from kohort.protocol import ErrorCode, KafkaError, TopicPartition
from tests.admin.conftest import stable
from tests.consumer.members import Maker

pytestmark = pytest.mark.kafka

Name = Callable[[str], str]
NewTopic = Callable[..., str]
Produce = Callable[..., None]
FIRST_MS = 1_700_000_000_000


async def commit(bootstrap: str, group: str, topic: str, offsets: dict[int, int]) -> None:
    async with Cluster(bootstrap) as cluster:
        await cluster.commit(group, {TopicPartition(topic, p): offset for p, offset in offsets.items()})


async def test_a_group_with_members_is_described_with_its_lag(
    admin: GroupAdmin, member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=3), group("billing")
    produce(topic, {0: 20, 1: 10, 2: 5})
    first = await member(topic, group=name, client_id="app-1", assignor="range")
    second = await member(topic, group=name, client_id="app-2", group_instance_id="pod-2", assignor="range")
    await stable(admin, name, 2)
    described = (await admin.describe([name]))[name]

    assert (described.protocol_type, described.protocol) == ("consumer", "range")
    assert described.group_type == "classic"
    assert [(m.client_id, m.instance_id) for m in described.members] == [("app-1", None), ("app-2", "pod-2")]
    assert all(m.client_host.lstrip("/") == "127.0.0.1" for m in described.members)
    shared = {m.client_id: m.assignment for m in described.members}
    assert shared["app-1"] == tuple(sorted(first.assignment()))
    assert shared["app-2"] == tuple(sorted(second.assignment()))
    by_partition = {row.partition: row for row in described.partitions}
    assert {p: row.end_offset for p, row in by_partition.items()} == {0: 20, 1: 10, 2: 5}
    held = {p: row.member_id for p, row in by_partition.items()}
    assert held == {p.partition: m.member_id for m in described.members for p in m.assignment or ()}


async def test_lag_is_end_less_committed_and_unknown_without_a_commit(
    admin: GroupAdmin, bootstrap: str, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=3), group("billing")
    produce(topic, {0: 20, 1: 10})
    await commit(bootstrap, name, topic, {0: 5, 1: 10})
    described = (await admin.describe([name]))[name]
    assert (described.state, described.protocol_type, described.members) == ("Empty", "", ())
    rows = [(p.partition, p.committed_offset, p.end_offset, p.lag, p.member_id) for p in described.partitions]
    assert rows == [(0, 5, 20, 15, None), (1, 10, 10, 0, None)]
    assert described.total_lag == 15
    assert await admin.offsets(name) == {
        TopicPartition(topic, 0): described_offset(5),
        TopicPartition(topic, 1): described_offset(10),
    }


def described_offset(offset: int) -> object:
    from kohort.consumer import CommittedOffset

    return CommittedOffset(offset)


async def test_a_group_that_does_not_exist_is_dead(admin: GroupAdmin, group: Name) -> None:
    name = group("nobody")
    described = (await admin.describe([name]))[name]
    assert (described.exists, described.state, described.total_lag) == (False, "Dead", None)
    assert await admin.offsets(name) == {}


async def test_a_deleted_topic_leaves_the_rest_of_the_group_in_sight(
    admin: GroupAdmin, bootstrap: str, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    gone, kept, name = new_topic("gone", partitions=1), new_topic("kept", partitions=1), group("billing")
    produce(kept, {0: 7})
    async with Cluster(bootstrap) as cluster:
        await cluster.commit(name, {TopicPartition(gone, 0): 0, TopicPartition(kept, 0): 3})
        await cluster.delete_topics([gone])
    described = (await admin.describe([name]))[name]
    rows = {row.topic: (row.end_offset, row.lag) for row in described.partitions}
    assert rows[kept] == (7, 4)
    assert rows.get(gone, (None, None)) == (None, None)


async def test_groups_are_listed_and_filtered(
    admin: GroupAdmin, bootstrap: str, member: Maker, new_topic: NewTopic, group: Name
) -> None:
    topic, empty, live = new_topic("orders", partitions=1), group("empty"), group("live")
    await commit(bootstrap, empty, topic, {0: 0})
    await member(topic, group=live)
    await stable(admin, live, 1)

    def names(rows: list[object]) -> set[str]:
        return {row.group for row in rows} & {empty, live}  # type: ignore[attr-defined]

    assert names(list(await admin.list_groups())) == {empty, live}
    assert names(list(await admin.list_groups(states=["stable"]))) == {live}
    assert names(list(await admin.list_groups(states=["Empty", "Dead"]))) == {empty}
    assert names(list(await admin.list_groups(types=["Classic"]))) == {empty, live}
    assert names(list(await admin.list_groups(types=["consumer"]))) == set()
    [row] = [row for row in await admin.list_groups() if row.group == live]
    assert (row.state, row.protocol_type, row.group_type) == ("Stable", "consumer", "classic")


async def test_deleting_tells_what_became_of_each_group(
    admin: GroupAdmin, bootstrap: str, member: Maker, new_topic: NewTopic, group: Name
) -> None:
    topic, empty, live, none = new_topic("orders", partitions=1), group("empty"), group("live"), group("no")
    await commit(bootstrap, empty, topic, {0: 0})
    await member(topic, group=live)
    await stable(admin, live, 1)
    outcomes = await admin.delete_groups([empty, live, none])
    assert {name: done.error_code for name, done in outcomes.items()} == {
        empty: 0,
        live: ErrorCode.NON_EMPTY_GROUP,
        none: ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert "stop its members first" in (outcomes[live].error or "")
    assert not (await admin.describe([empty]))[empty].exists


async def test_offsets_of_a_topic_are_deleted_all_or_some(
    admin: GroupAdmin, bootstrap: str, new_topic: NewTopic, group: Name
) -> None:
    orders, other, name = (
        new_topic("orders", partitions=3),
        new_topic("other", partitions=1),
        group("billing"),
    )
    await commit(bootstrap, name, orders, {0: 0, 1: 0, 2: 0})
    await commit(bootstrap, name, other, {0: 0})
    done = await admin.delete_offsets(name, {orders: [1]})
    assert [(p, outcome.ok) for p, outcome in done.items()] == [(TopicPartition(orders, 1), True)]
    done = await admin.delete_offsets(name, {orders: []})
    assert sorted(p.partition for p, outcome in done.items() if outcome.ok) == [0, 2]
    assert set(await admin.offsets(name)) == {TopicPartition(other, 0)}
    with pytest.raises(KafkaError, match="has no offset for topic") as refused:
        await admin.delete_offsets(name, {orders: []})
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_offsets_of_a_topic_that_members_read_stay(
    admin: GroupAdmin, member: Maker, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    produce(topic, {0: 3})
    consumer = await member(topic, group=name)
    await read_and_commit(consumer, 3)
    done = await admin.delete_offsets(name, {topic: [0]})
    assert {p.partition: outcome.error_code for p, outcome in done.items()} == {0: 86}
    assert "stop them first" in (done[TopicPartition(topic, 0)].error or "")


async def read_and_commit(consumer: AsyncGroupConsumer, count: int) -> None:
    left = count
    async with asyncio.timeout(20):
        while left:
            records = await consumer.getmany(left, 500)
            consumer.done_all(records)
            left -= len(records)
    await consumer.commit()


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (ResetTo.earliest(), {0: 0, 1: 0, 2: 0}),
        (ResetTo.latest(), {0: 20, 1: 10, 2: 0}),
        (ResetTo.offset(15), {0: 15, 1: 10, 2: 0}),
        (ResetTo.shift(-2), {0: 3, 1: 8}),
        (ResetTo.shift(12), {0: 17, 1: 10}),
        (ResetTo.timestamp(FIRST_MS + 6_500), {0: 7, 1: 7, 2: 0}),
        (ResetTo.timestamp(FIRST_MS + 12_000), {0: 12, 1: 10, 2: 0}),
        (ResetTo.current(), {0: 5, 1: 10, 2: 0}),
    ],
    ids=lambda value: value.kind.value if isinstance(value, ResetTo) else "",
)
async def test_a_reset_to(
    admin: GroupAdmin,
    bootstrap: str,
    new_topic: NewTopic,
    group: Name,
    produce: Produce,
    to: ResetTo,
    expected: dict[int, int],
) -> None:
    topic, name = new_topic("orders", partitions=3, retention_ms="-1"), group("billing")
    produce(topic, {0: 20, 1: 10})
    await commit(bootstrap, name, topic, {0: 5, 1: 10})
    plan = await admin.plan_reset(name, to, {topic: []})
    assert {c.partition: c.new_offset for c in plan.changes if c.new_offset is not None} == expected
    assert {p.partition: o.offset for p, o in (await admin.offsets(name)).items()} == {0: 5, 1: 10}
    done = await admin.reset_offsets(name, to, {topic: []})
    assert (done.executed, done.changes) == (True, plan.changes)
    committed = {p.partition: o.offset for p, o in (await admin.offsets(name)).items()}
    assert committed == {0: 5, 1: 10} | expected


async def test_without_topics_a_reset_is_of_all_that_is_committed(
    admin: GroupAdmin, bootstrap: str, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=3), group("billing")
    produce(topic, {0: 20, 1: 10})
    await commit(bootstrap, name, topic, {1: 4})
    plan = await admin.plan_reset(name, ResetTo.latest())
    assert [(c.partition, c.current_offset, c.new_offset) for c in plan.changes] == [(1, 4, 10)]


async def test_a_reset_makes_a_group_that_does_not_exist(
    admin: GroupAdmin, new_topic: NewTopic, group: Name, produce: Produce
) -> None:
    topic, name = new_topic("orders", partitions=2), group("new")
    produce(topic, {0: 4})
    plan = await admin.reset_offsets(name, ResetTo.latest(), {topic: [0]})
    assert (plan.state, plan.executed) == ("Dead", True)
    assert (await admin.offsets(name))[TopicPartition(topic, 0)].offset == 4


async def test_a_reset_is_refused_while_members_live(
    admin: GroupAdmin, member: Maker, new_topic: NewTopic, group: Name
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    await member(topic, group=name, client_id="app-7")
    await stable(admin, name, 1)
    plan = await admin.plan_reset(name, ResetTo.latest(), {topic: []})
    assert plan.refusal is not None
    assert "app-7" in plan.refusal
    assert "127.0.0.1" in plan.refusal
    with pytest.raises(KafkaError, match="app-7") as refused:
        await admin.execute(plan)
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    assert await admin.offsets(name) == {}


async def test_a_member_that_joined_after_the_plan_keeps_its_offsets(
    admin: GroupAdmin, member: Maker, new_topic: NewTopic, group: Name
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    plan = await admin.plan_reset(name, ResetTo.latest(), {topic: []})
    await member(topic, group=name)
    await stable(admin, name, 1)
    with pytest.raises(KafkaError, match="members have joined meanwhile") as refused:
        await admin.execute(plan)
    assert refused.value.code is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("numbers", [[], [0, 7]])
async def test_what_does_not_exist_cannot_be_reset(
    admin: GroupAdmin, new_topic: NewTopic, topic: Name, group: Name, numbers: list[int]
) -> None:
    name = new_topic("orders", partitions=2) if numbers else topic("missing")
    with pytest.raises(KafkaError, match="check the name of the topic") as refused:
        await admin.plan_reset(group("billing"), ResetTo.latest(), {name: numbers})
    assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_nobody_there_is_said_soon() -> None:
    with pytest.raises(BrokerConnectionError):
        async with GroupAdmin("127.0.0.1:1", timeout_ms=60_000):
            raise AssertionError("nobody listens on port 1")


@pytest.mark.parametrize("numbers", [None, 0, "0"])
async def test_topics_that_are_no_mapping_to_numbers_are_told_what_is(
    admin: GroupAdmin, new_topic: NewTopic, group: Name, numbers: Any
) -> None:
    topic, name = new_topic("orders", partitions=1), group("billing")
    words = (
        re.escape(f"topics={{{topic!r}: {numbers!r}}} is not allowed: ") + ".*" + re.escape("or [] for all")
    )
    with pytest.raises(ConfigError, match=words):
        await admin.plan_reset(name, ResetTo.earliest(), {topic: numbers})
    with pytest.raises(ConfigError, match=words):
        await admin.reset_offsets(name, ResetTo.earliest(), {topic: numbers})
    with pytest.raises(ConfigError, match=words):
        await admin.delete_offsets(name, {topic: numbers})
