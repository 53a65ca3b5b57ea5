"""The lag of groups on any cluster: records, ages, rates, members, and what cannot be known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kohort.admin import GroupAdmin, LagTracker
from kohort.admin.access.acls import AclRule, add_acls
from kohort.admin.groups import lag
from kohort.admin.groups.lag import _GROUPS_AT_ONCE
from kohort.client import Cluster, CommittedOffset, ResponseTooLargeError
from kohort.lag import GroupLag
from kohort.lag.unread import BEYOND_END, NO_OFFSET
from kohort.producer import Producer
from kohort.protocol import ApiKey, ErrorCode, TopicPartition
from tests.admin.conftest import stable
from tests.broker.wire import Wire
from tests.consumer.members import Maker
from tests.secured import PASSWORD, Secured

pytestmark = pytest.mark.kafka

HOUR_MS = 3_600_000
Names = Callable[[str], str]
NewTopic = Callable[..., str]


class Writer:
    """Writes records of given ages."""

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.began_ms = round(time.time() * 1_000)

    async def write(self, topic: str, *ages_ms: int, partition: int = 0, value: bytes = b"v") -> None:
        """Write records of these ages, all in one batch if it has room for them."""
        sent = [
            await self.producer.send(topic, value, partition=partition, timestamp_ms=self.began_ms - age_ms)
            for age_ms in ages_ms
        ]
        await self.producer.flush()
        await asyncio.gather(*sent)

    def is_about(self, age_ms: int | None, expected_ms: int) -> bool:
        return age_ms is not None and expected_ms <= age_ms < expected_ms + 600_000


@pytest.fixture
async def writer(bootstrap: str) -> AsyncIterator[Writer]:
    async with Producer(bootstrap=bootstrap, linger_ms=50) as producer:
        yield Writer(producer)


async def commit(admin: GroupAdmin, group: str, topic: str, *offsets: int) -> None:
    committed = {TopicPartition(topic, n): CommittedOffset(at) for n, at in enumerate(offsets)}
    await admin.cluster.commit(group, committed)


async def lag_of(admin: GroupAdmin, group: str) -> GroupLag:
    [found] = await admin.lag([group])
    return found


async def test_records_and_the_age_of_the_oldest(
    admin: GroupAdmin, writer: Writer, group: Names, new_topic: NewTopic
) -> None:
    topic, names = new_topic("t"), [group("g"), group("h")]
    await writer.write(topic, 5 * HOUR_MS, 3 * HOUR_MS, 4 * HOUR_MS, HOUR_MS)
    await writer.write(topic, 2 * HOUR_MS, partition=1)
    # both within one batch
    await commit(admin, names[0], topic, 1, 1, 0)
    await commit(admin, names[1], topic, 2)
    found, other = await admin.lag(names)
    assert (found.group, found.state, found.group_type, found.error) == (names[0], "Empty", "classic", None)
    rows = [(row.partition, row.committed_offset, row.end_offset, row.records) for row in found.partitions]
    assert rows == [(0, 1, 4, 3), (1, 1, 1, 0), (2, 0, 0, 0)]
    assert [row.age_ms for row in found.partitions[1:]] == [0, 0]
    assert (found.records, found.member_count) == (3, 0)
    assert writer.is_about(found.age_ms, 3 * HOUR_MS)
    assert other.records == 2
    assert writer.is_about(other.age_ms, 4 * HOUR_MS)


async def test_a_large_batch_is_read_whole(
    admin: GroupAdmin, writer: Writer, group: Names, new_topic: NewTopic
) -> None:
    topic, name = new_topic("t"), group("g")
    for partition in range(3):
        await writer.write(topic, *([9 * HOUR_MS] * 99), HOUR_MS, partition=partition, value=bytes(2_000))
    await commit(admin, name, topic, 99, 99, 0)
    found = await lag_of(admin, name)
    assert [row.records for row in found.partitions] == [1, 1, 100]
    assert writer.is_about(found.partitions[0].age_ms, HOUR_MS)
    assert writer.is_about(found.partitions[1].age_ms, HOUR_MS)
    assert writer.is_about(found.partitions[2].age_ms, 9 * HOUR_MS)


async def test_records_that_were_deleted_unread_do_not_count(
    admin: GroupAdmin, writer: Writer, group: Names, new_topic: NewTopic, wire: Wire
) -> None:
    topic, name = new_topic("t", partitions=2), group("g")
    await writer.write(topic, 3 * HOUR_MS)
    await writer.write(topic, 2 * HOUR_MS, HOUR_MS)
    await writer.write(topic, 2 * HOUR_MS, partition=1)
    await commit(admin, name, topic, 0, 0)
    rows = [{"partition_index": 0, "offset": 1}, {"partition_index": 1, "offset": 1}]
    wire.call(ApiKey.DELETE_RECORDS, 2, topics=[{"name": topic, "partitions": rows}], timeout_ms=20_000)
    first, second = (await lag_of(admin, name)).partitions
    assert (first.records, first.deleted) == (2, 1)
    assert writer.is_about(first.age_ms, 2 * HOUR_MS)
    assert (second.records, second.deleted, second.age_ms) == (0, 1, 0)


async def test_markers_of_transactions_are_no_lag_and_open_ones_are(
    admin: GroupAdmin, bootstrap: str, writer: Writer, group: Names, new_topic: NewTopic
) -> None:
    topic, name = new_topic("t", partitions=1), group("g")
    async with Producer(bootstrap=bootstrap, transactional_id=group("x")) as producer:
        async with producer.transaction():
            await producer.send(topic, b"v", partition=0)
        await commit(admin, name, topic, 1)
        [row] = (await lag_of(admin, name)).partitions
        assert (row.end_offset, row.records, row.age_ms) == (2, 0, 0)
        producer.begin_transaction()
        await producer.send_and_wait(topic, b"v", timestamp_ms=writer.began_ms - HOUR_MS, partition=0)
        [row] = (await lag_of(admin, name)).partitions
        assert (row.end_offset, row.records) == (3, 2)
        assert writer.is_about(row.age_ms, HOUR_MS)
        await producer.abort_transaction()


async def test_topics_that_are_gone_and_offsets_beyond_the_end_are_told(
    admin: GroupAdmin, writer: Writer, group: Names, new_topic: NewTopic
) -> None:
    there, name = new_topic("t", partitions=1), group("g")
    await writer.write(there, HOUR_MS)
    await commit(admin, name, there, 7)
    found = await lag_of(admin, name)
    [row] = found.partitions
    assert (row.records, row.age_ms, row.note) == (None, None, BEYOND_END)
    assert (found.records, found.age_ms) == (None, None)
    await admin.cluster.delete_topics([there])
    [after] = await admin.lag([name])
    # offsets go with the topic, in a moment or at once; meanwhile there is no end
    assert all(row.end_offset is None and row.note for row in after.partitions)
    assert after.records is None


async def test_what_members_have_is_told_whether_they_have_committed_or_not(
    admin: GroupAdmin, group: Names, new_topic: NewTopic, member: Maker
) -> None:
    topic, name = new_topic("t", partitions=2), group("g")
    await commit(admin, name, topic, 0)
    await member(topic, group=name, group_instance_id="one")
    await stable(admin, name, 1)
    found = await lag_of(admin, name)
    assert (found.state, found.member_count) == ("Stable", 1)
    assert [row.members for row in found.partitions] == [("one",), ("one",)]
    assert [(row.records, row.note) for row in found.partitions] == [(0, ""), (None, NO_OFFSET)]


async def test_consumer_groups_are_known_too(
    admin: GroupAdmin, group: Names, new_topic: NewTopic, member: Maker
) -> None:
    topic, name = new_topic("t", partitions=1), group("g")
    settings = {"session_timeout_ms": 45_000, "heartbeat_interval_ms": 3_000}
    await member(topic, group=name, group_instance_id="one", group_protocol="consumer", **settings)
    await stable(admin, name, 1)
    found = await lag_of(admin, name)
    assert (found.group_type, found.member_count) == ("consumer", 1)
    assert [row.members for row in found.partitions] == [("one",)]


async def test_share_groups_lag_by_what_is_not_done(
    admin: GroupAdmin, queue: str, jobs: str, groups: Any
) -> None:
    del groups
    found = await lag_of(admin, queue)
    assert (found.group_type, found.records, found.member_count) == ("share", 30, 0)
    assert [(row.topic, row.committed_offset, row.records) for row in found.partitions] == [
        (jobs, 0, 20),
        (jobs, 0, 10),
    ]
    # the records are of November 2023
    assert (found.age_ms or 0) > 365 * 24 * HOUR_MS


async def test_a_group_that_does_not_exist_keeps_no_other_from_being_shown(
    admin: GroupAdmin, group: Names, new_topic: NewTopic
) -> None:
    topic, name = new_topic("t"), group("g")
    await commit(admin, name, topic, 0)
    nobody, found = await admin.lag(["no-such-group", name])
    assert nobody.error is not None
    assert "does not exist" in nobody.error
    assert (nobody.partitions, nobody.records) == ((), None)
    assert found.error is None


async def test_rates_and_what_stands_still_come_from_two_looks(
    admin: GroupAdmin, writer: Writer, group: Names, new_topic: NewTopic
) -> None:
    topic, name = new_topic("t", partitions=2), group("g")
    await writer.write(topic, *[HOUR_MS] * 10)
    await writer.write(topic, HOUR_MS, partition=1)
    await commit(admin, name, topic, 0, 0)
    tracker = LagTracker()
    [first] = tracker.track(await admin.lag([name]))
    assert (first.work_rate, first.catch_up_ms) == (None, None)
    await commit(admin, name, topic, 5)
    [found] = tracker.track(await admin.lag([name]))
    took_s = (found.timestamp_ms - first.timestamp_ms) / 1_000
    assert found.work_rate == pytest.approx(5 / took_s)
    assert found.arrival_rate == 0
    assert [row.partition for row in found.standing(1)] == [1]
    assert found.catch_up_ms is None


async def test_requests_do_not_grow_with_each_group(
    admin: GroupAdmin, writer: Writer, group: Names, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, names = new_topic("t", partitions=4), [group("g") for _ in range(2 * _GROUPS_AT_ONCE)]
    for partition in range(4):
        await writer.write(topic, *[HOUR_MS] * 10, partition=partition)
    for number, name in enumerate(names):
        await commit(admin, name, topic, *[number % 10] * 4)
    asked: list[int] = []
    request = Cluster.request

    async def counted(self: Cluster, node: int | None, api_key: int, *body: Any, **options: Any) -> Any:
        asked.append(api_key)
        return await request(self, node, api_key, *body, **options)

    monkeypatch.setattr(Cluster, "request", counted)
    found = await admin.lag(names)
    assert {group.records for group in found} == {4 * left for left in range(1, 11)}
    assert all(writer.is_about(group.age_ms, HOUR_MS) for group in found)
    # to one broker: all batches of a partition come with the first fetch
    once = (ApiKey.LIST_GROUPS, ApiKey.LIST_OFFSETS, ApiKey.FETCH)
    assert sorted(asked) == sorted([*once, *([ApiKey.METADATA, ApiKey.OFFSET_FETCH] * 2)])


@pytest.mark.parametrize("old", [True, False])
async def test_brokers_that_take_one_group_at_a_time_and_coordinators_that_move_are_asked_again(
    admin: GroupAdmin, group: Names, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    topic, names = new_topic("t", partitions=1), [group("g") for _ in range(3)]
    for name in names:
        await commit(admin, name, topic, 0)
    if old:
        monkeypatch.setattr(lag, "_MANY_GROUPS", 1_000)
    request = Cluster.request

    async def moved(self: Cluster, node: int | None, api_key: int, *body: Any, **options: Any) -> Any:
        answer = await request(self, node, api_key, *body, **options)
        if api_key == ApiKey.OFFSET_FETCH:
            refused = [
                row._replace(topics=[], error_code=int(ErrorCode.NOT_COORDINATOR)) for row in answer.groups
            ]
            return answer._replace(groups=refused)
        return answer

    monkeypatch.setattr(Cluster, "request", moved)
    found = await admin.lag(names)
    assert [(each.error, each.records) for each in found] == [(None, 0)] * 3


async def test_groups_whose_offsets_are_too_many_for_one_response_are_asked_one_by_one(
    admin: GroupAdmin, group: Names, queue: str, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, names = new_topic("t", partitions=1), [group("g") for _ in range(3)]
    for name in names:
        await commit(admin, name, topic, 0)
    request = Cluster.request

    async def small(self: Cluster, node: int | None, api_key: int, *body: Any, **options: Any) -> Any:
        if api_key in (ApiKey.OFFSET_FETCH, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS):
            raise ResponseTooLargeError("here", "too large", 2, 1)
        return await request(self, node, api_key, *body, **options)

    monkeypatch.setattr(Cluster, "request", small)
    found = await admin.lag([*names, queue])
    assert [(each.error, each.records) for each in found] == [(None, 0), (None, 0), (None, 0), (None, 30)]


async def test_who_may_only_describe_sees_records_and_no_ages(secured: Secured) -> None:
    name = "described"
    async with (
        Cluster(secured.plain) as cluster,
        Producer(bootstrap=secured.plain) as producer,
    ):
        await cluster.create_topics({"readable": 1, "describable": 1, "hidden": 1})
        for topic in ("readable", "describable", "hidden"):
            await producer.send_and_wait(topic, b"v")
            await cluster.commit(name, {TopicPartition(topic, 0): CommittedOffset(0)})
        rules = [
            AclRule("User:alice", "Allow", "Describe", "group", name),
            AclRule("User:alice", "Allow", "Read", "topic", "readable"),
            AclRule("User:alice", "Allow", "Describe", "topic", "describable"),
        ]
        await add_acls(cluster, rules)
    async with GroupAdmin(
        secured.sasl,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username="alice",
        sasl_plain_password=PASSWORD,
    ) as admin:
        async with asyncio.timeout(20):
            # a moment passes until all of a broker obeys new rules
            while len((found := await lag_of(admin, name)).partitions) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    rows = {row.topic: row for row in found.partitions}
    # brokers leave out what may not even be described
    assert rows.keys() == {"readable", "describable"}
    assert [rows["readable"].records, rows["describable"].records] == [1, 1]
    assert rows["readable"].age_ms is not None
    assert rows["describable"].age_ms is None
    assert "TOPIC_AUTHORIZATION_FAILED" in rows["describable"].note
