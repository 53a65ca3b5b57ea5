"""What a broker knows of the lag of its groups, on its own logs and on those of other brokers.

Covers: broker/log_ends.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kohort.admin import GroupAdmin, ResetTo
from kohort.broker import Broker, lag_sampler
from kohort.broker.lag_sampler import LagSampler
from kohort.broker.metrics._families import FAMILIES
from kohort.client import Cluster, CommittedOffset
from kohort.coordinator.share_groups.offsets import AskedOffsets
from kohort.lag import GroupLag
from kohort.lag.unread import BEYOND_END
from kohort.log import PartitionLog
from kohort.producer import Producer
from kohort.protocol import TopicPartition
from kohort.recording import END_OF_TIME, read_group
from tests.broker.clusters import cluster
from tests.broker.metrics.test_broker_metrics import scraped
from tests.broker.partitions.test_cleaner import COMPACT, contents
from tests.broker.partitions.test_cleaner import SETTINGS as QUICK_CLEANER
from tests.broker.wire import Wire, batch, produce

HOUR_MS = 3_600_000


class World:
    """A broker, or some, with a client and a producer."""

    def __init__(self, broker: Broker, client: Cluster, producer: Producer) -> None:
        self.broker, self.client, self.producer = broker, client, producer
        self.sampler = broker._require_running().lag
        self.began_ms = round(time.time() * 1_000)

    async def write(self, topic: str, *ages_ms: int, partition: int = 0) -> None:
        """Write records of these ages, each in a batch of its own."""
        for age_ms in ages_ms:
            when = self.began_ms - age_ms
            await self.producer.send_and_wait(topic, b"v", partition=partition, timestamp_ms=when)

    async def commit(self, group: str, topic: str, *offsets: int) -> None:
        committed = {TopicPartition(topic, n): CommittedOffset(at) for n, at in enumerate(offsets)}
        await self.client.commit(group, committed)

    async def look(self, sampler: LagSampler | None = None) -> dict[str, GroupLag]:
        sampler = sampler or self.sampler
        await sampler.look()
        return {group.group: group for group in sampler.figures.groups}


def is_about(age_ms: int | None, expected_ms: int) -> bool:
    """Whether an age is as expected; the test has taken some time itself."""
    return age_ms is not None and expected_ms <= age_ms < expected_ms + 600_000


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with (
        Broker() as broker,
        Cluster(broker.bootstrap) as client,
        Producer(bootstrap=broker.bootstrap) as producer,
    ):
        yield World(broker, client, producer)


async def test_lag_in_records_and_as_the_age_of_the_oldest_unread_record(world: World) -> None:
    await world.client.create_topics({"t": 3})
    await world.write("t", 3 * HOUR_MS, 2 * HOUR_MS, HOUR_MS)
    await world.write("t", 5 * HOUR_MS, partition=1)
    await world.commit("g", "t", 1, 1, 0)
    [group] = await world.broker.look_at_lag()
    assert world.broker.metrics().lag.groups == [group]
    assert (group.group, group.group_type, group.state, group.member_count) == ("g", "classic", "Empty", 0)
    assert [
        (row.partition, row.committed_offset, row.end_offset, row.records) for row in group.partitions
    ] == [
        (0, 1, 3, 2),
        (1, 1, 1, 0),
        (2, 0, 0, 0),
    ]
    assert group.records == 2
    assert is_about(group.age_ms, 2 * HOUR_MS)
    assert [row.age_ms for row in group.partitions[1:]] == [0, 0]
    # it has stood still since the commit, not since the record was written
    assert group.partitions[0].standing_ms is not None
    assert group.partitions[0].standing_ms < HOUR_MS
    assert group.partitions[1].standing_ms is None


async def test_what_stays_is_not_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    read = PartitionLog.read

    def counted(self: PartitionLog, offset: int, *most: int, **options: Any) -> Any:
        reads.append(offset)
        return read(self, offset, *most, **options)

    await world.client.create_topics({"t": 1})
    await world.write("t", 2 * HOUR_MS, HOUR_MS)
    await world.commit("g", "t", 0)
    await world.commit("h", "t", 0)
    monkeypatch.setattr(PartitionLog, "read", counted)
    await world.look()
    assert reads == [0]
    await world.write("t", 0)
    assert (await world.look())["g"].records == 3
    assert reads == [0]
    await world.commit("g", "t", 1)
    assert is_about((await world.look())["g"].age_ms, HOUR_MS)
    assert reads == [0, 1]
    await world.commit("g", "t", 3)
    await world.look()
    assert reads == [0, 1]


async def test_deleted_records_do_not_count_and_are_told(world: World) -> None:
    await world.client.create_topics({"t": 1})
    await world.write("t", 3 * HOUR_MS, 2 * HOUR_MS, HOUR_MS)
    await world.commit("g", "t", 0)
    partition = world.broker._require_running().node.logs.partition("t", 0)
    partition.delete_records(2, now_ms=0)
    [row] = (await world.look())["g"].partitions
    assert (row.records, row.deleted) == (1, 2)
    assert is_about(row.age_ms, HOUR_MS)
    partition.delete_records(3, now_ms=0)
    [row] = (await world.look())["g"].partitions
    assert (row.records, row.deleted, row.age_ms) == (0, 3, 0)


async def test_what_compaction_has_left_is_the_oldest() -> None:
    async with (
        Broker(settings=QUICK_CLEANER) as broker,
        Cluster(broker.bootstrap) as client,
        GroupAdmin(broker.bootstrap) as admin,
    ):
        began_ms = round(time.time() * 1_000)
        await broker.topics.create("table", 1, COMPACT)
        for number in range(30):
            one = batch(key=b"k", timestamp_ms=began_ms - (30 - number) * HOUR_MS)
            broker.topics.logs.partition("table", 0).append(one, now_ms=began_ms, from_client=False)
        await client.commit("g", {TopicPartition("table", 0): CommittedOffset(0)})

        async def is_right() -> bool:
            """Whether both have the age of what is left, of which nothing goes while they look."""
            first = contents(broker, "table")[0][0]
            found = [*await broker.look_at_lag(), *await admin.lag()]
            ages = [group.partitions[0].age_ms for group in found]
            # offsets count, as nobody knows how many of them are left
            assert [group.records for group in found] == [30, 30]
            return first >= 20 and all(is_about(age_ms, (30 - first) * HOUR_MS) for age_ms in ages)

        # first it is as old as the first record, which is compacted away
        await is_right()
        async with asyncio.timeout(30):
            while not await is_right():
                pass


async def test_markers_of_transactions_are_no_lag(world: World) -> None:
    await world.client.create_topics({"t": 1})
    async with Producer(bootstrap=world.broker.bootstrap, transactional_id="x") as producer:
        async with producer.transaction():
            await producer.send("t", b"v", timestamp_ms=world.began_ms - HOUR_MS)
        # a client that commits the offset behind the record, not that behind the marker
        await world.commit("g", "t", 1)
        [row] = (await world.look())["g"].partitions
        assert (row.end_offset, row.records, row.age_ms, row.standing_ms) == (2, 0, 0, None)
        # records of an open transaction are unread, though nobody may read them yet
        producer.begin_transaction()
        await producer.send_and_wait("t", b"v", timestamp_ms=world.began_ms - HOUR_MS)
        [row] = (await world.look())["g"].partitions
        assert row.records == 2
        assert is_about(row.age_ms, HOUR_MS)
        await producer.abort_transaction()


async def test_topics_that_go_come_again_and_grow(world: World) -> None:
    await world.client.create_topics({"t": 1})
    await world.write("t", 2 * HOUR_MS, 2 * HOUR_MS)
    await world.commit("g", "t", 0)
    assert is_about((await world.look())["g"].age_ms, 2 * HOUR_MS)
    await world.client.delete_topics(["t"])
    assert await world.look() == {}
    await world.client.create_topics({"t": 2})
    await world.write("t", HOUR_MS)
    assert await world.look() == {}
    await world.commit("g", "t", 0, 5)
    first, second = (await world.look())["g"].partitions
    assert is_about(first.age_ms, HOUR_MS)
    assert first.age_ms is not None
    assert first.age_ms < 2 * HOUR_MS
    assert (second.records, second.age_ms, second.note) == (None, None, BEYOND_END)


async def test_rates_come_from_looks(world: World) -> None:
    await world.client.create_topics({"t": 1})
    await world.write("t", HOUR_MS, HOUR_MS)
    await world.commit("g", "t", 0)
    await world.look()
    await world.write("t", HOUR_MS)
    await world.commit("g", "t", 1)
    await asyncio.sleep(0.002)
    group = (await world.look())["g"]
    assert group.arrival_rate == group.work_rate != 0


def write_without_time(bootstrap: str, topic: str) -> None:
    with Wire(bootstrap) as wire:
        assert produce(wire, topic, batch(timestamp_ms=-1)).error_code == 0


async def test_a_groups_records_without_a_time_have_no_age(world: World) -> None:
    await world.client.create_topics({"t": 1})
    await asyncio.to_thread(write_without_time, world.broker.bootstrap, "t")
    await world.commit("g", "t", 0)
    [row] = (await world.look())["g"].partitions
    assert (row.records, row.age_ms) == (1, None)
    await world.write("t", -HOUR_MS // 2)
    await world.commit("g", "t", 1)
    # it is of the future
    [row] = (await world.look())["g"].partitions
    assert (row.records, row.age_ms) == (1, 0)


async def test_share_groups_lag_by_what_is_not_done(world: World) -> None:
    await world.client.create_topics({"t": 1})
    await world.write("t", 3 * HOUR_MS, 2 * HOUR_MS, HOUR_MS)
    async with GroupAdmin(world.broker.bootstrap) as admin:
        plan = await admin.plan_reset("s", ResetTo.offset(1), {"t": []}, share=True)
        await admin.execute(plan)
    group = (await world.look())["s"]
    assert (group.group_type, group.records) == ("share", 2)
    assert is_about(group.age_ms, 2 * HOUR_MS)


async def test_share_coordinators_that_do_not_answer_hold_up_no_other_group(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.client.create_topics({"t": 1})
    await world.write("t", HOUR_MS)
    await world.commit("g", "t", 0)
    async with GroupAdmin(world.broker.bootstrap) as admin:
        for name in ("s1", "s2"):
            plan = await admin.plan_reset(name, ResetTo.earliest(), {"t": []}, share=True)
            await admin.execute(plan)
    asked: list[str] = []

    async def never(_node: object, group: AskedOffsets) -> None:
        asked.append(group.group_id)
        await asyncio.Event().wait()

    monkeypatch.setattr(lag_sampler, "describe_offsets", never)
    monkeypatch.setattr(lag_sampler, "_ASK_MS", 20)
    assert (await world.look()).keys() == {"g"}
    assert len(asked) >= 1


async def test_prometheus_is_told_of_the_groups_that_are_furthest_behind() -> None:
    settings = {"kohort.lag.metrics.max": 2}
    async with (
        Broker(metrics_port=0, settings=settings) as broker,
        Cluster(broker.bootstrap) as client,
        Producer(bootstrap=broker.bootstrap) as producer,
    ):
        world = World(broker, client, producer)
        await client.create_topics({"t": 2})
        await world.write("t", 2 * HOUR_MS, HOUR_MS)
        for number, name in enumerate(["furthest", "behind", "up-to-date"]):
            await world.commit(name, "t", number, 0)
        await world.look()
        found = await scraped(broker)
        groups = [(("group", "furthest"),), (("group", "behind"),)]
        assert found["kohort_group_lag_records"] == {groups[0]: 2, groups[1]: 1}
        assert found["kohort_group_lag_seconds"][groups[0]] >= 7_200
        assert found["kohort_group_lag_standing_seconds"].keys() == set(groups)
        place = (("group", "furthest"), ("partition", "0"), ("topic", "t"))
        assert found["kohort_group_partition_lag_records"][place] == 2
        assert len(found["kohort_group_partition_lag_seconds"]) == 2
        assert found["kohort_group_lag_looked_timestamp_seconds"][()] >= world.began_ms / 1_000
        assert found["kohort_group_lag_looking_seconds_total"][()] > 0


async def test_without_a_use_or_an_interval_nobody_looks(world: World, tmp_path: Path) -> None:
    assert world.sampler._task is None
    settings = {"kohort.lag.interval.ms": 0}
    async with Broker(metrics_port=0, settings=settings, data=tmp_path) as broker:
        assert broker._require_running().lag._task is None
        assert broker.metrics().lag.looked_ms == 0


async def test_with_a_metrics_port_it_looks_again_and_again_whatever_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    looks: list[Sequence[GroupLag]] = []
    seen = asyncio.Event()

    def listen(groups: Sequence[GroupLag]) -> None:
        looks.append(groups)
        if len(looks) == 1:
            raise ZeroDivisionError("a bug")
        seen.set()

    async with Broker(metrics_port=0, settings={"kohort.lag.interval.ms": 1}) as broker:
        broker._require_running().lag.listeners.append(listen)
        async with asyncio.timeout(30):
            await seen.wait()
    assert [line.message for line in caplog.records if "lag of groups" in line.message] == [
        "the lag of groups could not be looked at"
    ]


async def test_a_sampler_that_records_looks_more_often_once_metrics_ask_for_it(world: World) -> None:
    sampler = world.sampler
    sampler.start(60_000_000)
    assert sampler._task is not None
    looked = asyncio.Event()
    sampler.listeners.append(lambda _groups: looked.set())
    sampler.start(1, at_once=True)
    async with asyncio.timeout(30):
        await looked.wait()


async def test_a_broker_with_a_folder_records_lag_over_time(tmp_path: Path) -> None:
    async with (
        Broker(data=tmp_path) as broker,
        Cluster(broker.bootstrap) as client,
        Producer(bootstrap=broker.bootstrap) as producer,
    ):
        world = World(broker, client, producer)
        assert world.sampler._task is not None
        await client.create_topics({"t": 1})
        await world.write("t", 2 * HOUR_MS, HOUR_MS)
        await world.commit("g", "t", 1)
        await world.look()
    found = read_group(tmp_path, "g", 0, END_OF_TIME)
    [sample] = found.samples
    assert (sample.records, sample.members) == (1, 0)
    assert is_about(sample.age_ms, HOUR_MS)


async def test_in_a_cluster_the_coordinator_knows_the_lag_on_every_leader() -> None:
    async with cluster(3, offsets_topic_replication_factor=1) as nodes:
        broker = nodes.any()
        assert broker.cluster is not None
        async with (
            Cluster(nodes.bootstrap()) as client,
            Producer(bootstrap=nodes.bootstrap()) as producer,
        ):
            # no replica but that of the leader
            await client.create_topics({"t": 3}, replication_factor=1)
            world = World(broker, client, producer)
            for partition in range(3):
                await world.write("t", 2 * HOUR_MS, HOUR_MS, partition=partition)
            await world.commit("g", "t", 0, 1, 2)
            found: list[GroupLag] = []
            for each in nodes.brokers.values():
                found += (await world.look(each._require_running().lag)).values()
            [group] = found
            assert [row.records for row in group.partitions] == [2, 1, 0]
            ages = [row.age_ms for row in group.partitions]
            assert is_about(ages[0], 2 * HOUR_MS)
            assert is_about(ages[1], HOUR_MS)
            assert ages[2] == 0


def test_each_family_of_lag_is_among_the_metrics() -> None:
    names = {family.name for family in FAMILIES if "lag" in family.name}
    assert len(names) == 7
