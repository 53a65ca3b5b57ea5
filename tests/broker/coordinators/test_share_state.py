"""The share coordinator in a broker of its own: its topic, restarts, deleted topics, the cut of its log."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kohort.broker import Broker
from kohort.broker.coordinators.share_state import prune_state, share_state_client
from kohort.broker.node import Node
from kohort.broker.partitions.topic_names import SHARE_STATE_TOPIC
from kohort.client import Cluster
from kohort.client.share_state import SharePlace, ShareStateClient, state_client
from kohort.offsets_topic import partition_for
from kohort.protocol import ErrorCode, SharePartitionKey
from kohort.protocol.messages import delete_share_group_state as delete
from kohort.protocol.messages import initialize_share_group_state as initialize
from kohort.protocol.messages import read_share_group_state as read
from kohort.protocol.messages import write_share_group_state as write
from kohort.share_state.shards import PruneLog
from tests.broker.clusters import Nodes, cluster, in_sync
from tests.waiting import until

GROUP = "orders"
#: The end of a partition of Apache Kafka's: the states of one share partition.
KAFKA_LOG = Path(__file__).resolve().parents[2] / "data" / "share-group-state" / f"{106:020d}.log"
ONE_PARTITION = {"share.coordinator.state.topic.num.partitions": 1}


def node_of(broker: Broker) -> Node:
    return broker._require_running().node


async def begin(client: ShareStateClient, topic_id: UUID, partitions: int = 1) -> None:
    rows = [initialize.PartitionData(each, 1, 0) for each in range(partitions)]
    told = await client.initialize_state(GROUP, {topic_id: rows})
    assert {row.error_code for row in told.values()} == {ErrorCode.NONE}


async def read_one(client: ShareStateClient, topic_id: UUID) -> read.PartitionResult:
    told = await client.read_state(GROUP, {topic_id: [read.PartitionData(0, 0)]})
    return told[SharePlace(topic_id, 0)]


async def write_one(client: ShareStateClient, topic_id: UUID, *batches: write.StateBatch) -> int:
    row = write.PartitionData(0, 1, 0, 0, -1, batches)
    told = await client.write_state(GROUP, {topic_id: [row]})
    return told[SharePlace(topic_id, 0)].error_code


async def make_topic(broker: Broker, name: str = "t", partitions: int = 1) -> UUID:
    async with Cluster(broker.bootstrap) as cluster:
        topic_id = (await cluster.create_topics({name: partitions}))[name]
    assert topic_id is not None
    return topic_id


async def test_one_broker_keeps_states_with_default_settings() -> None:
    async with Broker() as broker:
        topic_id = await make_topic(broker, partitions=30)
        assert node_of(broker).topics.get(SHARE_STATE_TOPIC) is None, "nobody has asked for it yet"
        await begin(share_state_client(node_of(broker)), topic_id, 30)
        topic = node_of(broker).topics.get(SHARE_STATE_TOPIC)
        assert topic is not None
        assert (len(topic.partitions), topic.partitions[0].replicas) == (50, (1,))
        config = node_of(broker).topics.config(topic.configs)
        assert (config.cleanup_policy, config.retention_ms, config.min_insync_replicas) == ("delete", -1, 1)
        assert topic.internal


async def test_a_broker_asks_itself_what_others_ask_it() -> None:
    async with Broker() as broker, Cluster(broker.bootstrap) as cluster:
        topic_id = await make_topic(broker)
        inside, outside = share_state_client(node_of(broker)), state_client(cluster)
        await begin(outside, topic_id)
        assert await write_one(inside, topic_id, write.StateBatch(0, 4, 2, 1)) == ErrorCode.NONE
        assert (await read_one(outside, topic_id)).state_batches == [(0, 4, 2, 1)]
        await outside.delete_state(GROUP, {topic_id: [delete.PartitionData(0)]})
        assert (await read_one(inside, topic_id)).error_code == ErrorCode.INVALID_REQUEST


async def test_the_next_run_has_the_states_at_once(tmp_path: Path) -> None:
    batch = write.StateBatch(3, 4, 2, 1)
    async with Broker(data=tmp_path) as broker:
        topic_id = await make_topic(broker)
        client = share_state_client(node_of(broker))
        await begin(client, topic_id)
        await write_one(client, topic_id, batch)
    async with Broker(data=tmp_path) as broker:
        (answer,) = (await read_one(share_state_client(node_of(broker)), topic_id)).state_batches
        assert tuple(answer) == batch


async def test_what_was_answered_outlives_a_kill(tmp_path: Path) -> None:
    batch = write.StateBatch(3, 4, 2, 1)
    broker = Broker(data=tmp_path)
    await broker.start()
    topic_id = await make_topic(broker)
    client = share_state_client(node_of(broker))
    await begin(client, topic_id)
    await write_one(client, topic_id, batch)
    await broker.kill()
    async with Broker(data=tmp_path) as again:
        (answer,) = (await read_one(share_state_client(node_of(again)), topic_id)).state_batches
        assert tuple(answer) == batch


async def test_state_goes_with_its_topic() -> None:
    async with Broker() as broker, Cluster(broker.bootstrap) as cluster:
        topic_id, other = await make_topic(broker), await make_topic(broker, "other")
        client = share_state_client(node_of(broker))
        await begin(client, topic_id)
        await begin(client, other)
        await cluster.delete_topics(["t"])
        assert (await read_one(client, topic_id)).error_code == ErrorCode.INVALID_REQUEST
        assert (await read_one(client, other)).error_code == ErrorCode.NONE


async def test_the_log_is_cut_and_the_cut_one_is_loaded(tmp_path: Path) -> None:
    settings = ONE_PARTITION | {
        "share.coordinator.state.topic.prune.interval.ms": 50,
        "share.coordinator.snapshot.update.records.per.snapshot": 5,
    }
    async with Broker(data=tmp_path, settings=settings) as broker:
        topic_id = await make_topic(broker)
        client = share_state_client(node_of(broker))
        await begin(client, topic_id)
        for offset in range(20):
            await write_one(client, topic_id, write.StateBatch(2 * offset, 2 * offset, 2, 1))
        partition = node_of(broker).logs.partition(SHARE_STATE_TOPIC, 0)
        await until(lambda: partition.log_start_offset == 18)
        found = broker.metrics()
        assert (found.share_writes.count, found.share_states_cut) == (20, {0: 18})
        assert 0 < found.share_writes.mean_ms <= found.share_writes.max_ms
        before = await read_one(client, topic_id)
    async with Broker(data=tmp_path, settings=settings) as broker:
        assert node_of(broker).logs.partition(SHARE_STATE_TOPIC, 0).log_start_offset == 18
        assert await read_one(share_state_client(node_of(broker)), topic_id) == before


def test_the_log_is_cut_when_all_replicas_have_the_snapshots_that_take_the_place_of_what_goes() -> None:
    partition = SimpleNamespace(high_watermark=7, log_start_offset=0, deleted=[])
    partition.delete_records = lambda before, *, now_ms: partition.deleted.append((before, now_ms))
    logs = SimpleNamespace(led=lambda _topic, index: partition if index == 1 else None)
    cut = PruneLog(before_offset=7, end_offset=8)
    assert not prune_state(logs, 0, cut, 5), "another broker leads it"  # type: ignore[arg-type]
    assert not prune_state(logs, 1, cut, 5)  # type: ignore[arg-type]
    assert partition.deleted == [], "the snapshot at 7 is not at all replicas, and what it replaces is needed"
    partition.high_watermark = 8
    assert prune_state(logs, 1, cut, 5)  # type: ignore[arg-type]
    assert partition.deleted == [(7, 5)]


@pytest.mark.parametrize("count", [2, 3])
async def test_a_cluster_has_as_many_replicas_as_brokers_and_each_finds_all_coordinators(count: int) -> None:
    async with cluster(count, share_coordinator_state_topic_num_partitions=5) as nodes:
        await nodes.create("t", 20)
        topic_id = topic_id_of(nodes)
        await begin(share_state_client(node_of(nodes.any())), topic_id, 20)
        await nodes.until(lambda: all(each.topics.get(SHARE_STATE_TOPIC) for each in nodes.brokers.values()))
        topic = nodes.any().topics.get(SHARE_STATE_TOPIC)
        assert topic is not None
        assert [len(state.replicas) for state in topic.partitions] == [count] * 5
        assert nodes.any().topics.config(topic.configs).min_insync_replicas == 2
        rows = [read.PartitionData(each, 0) for each in range(20)]
        for broker in nodes.brokers.values():
            told = await share_state_client(node_of(broker)).read_state(GROUP, {topic_id: rows})
            assert {(row.error_code, row.state_epoch) for row in told.values()} == {(ErrorCode.NONE, 1)}
        async with Cluster(nodes.bootstrap()) as client:
            told = await state_client(client).read_state(GROUP, {topic_id: rows})
            assert {(row.error_code, row.state_epoch) for row in told.values()} == {(ErrorCode.NONE, 1)}


async def test_what_was_answered_is_there_after_the_coordinator_was_killed() -> None:
    async with cluster(3, share_coordinator_state_topic_num_partitions=1) as nodes:
        await nodes.create("t")
        topic_id = topic_id_of(nodes)
        await begin(share_state_client(node_of(nodes.any())), topic_id)
        await in_sync(nodes, SHARE_STATE_TOPIC)
        leader = nodes.state(SHARE_STATE_TOPIC).leader
        other = next(each for node_id, each in nodes.brokers.items() if node_id != leader)
        client = share_state_client(node_of(other))
        answered: set[int] = set()

        async def write_on() -> None:
            for offset in range(0, 400, 2):
                if not await write_one(client, topic_id, write.StateBatch(offset, offset, 2, 1)):
                    answered.add(offset)
                await asyncio.sleep(0.005)

        writing = asyncio.create_task(write_on())
        await nodes.until(lambda: len(answered) > 20)
        await nodes.kill(leader)
        await writing
        assert nodes.state(SHARE_STATE_TOPIC).leader != leader
        told = await read_one(client, topic_id)
        kept = {batch.first_offset for batch in told.state_batches}
        assert answered <= kept
        assert len(answered) > 100, "it went on at the next coordinator"


async def test_a_leader_that_moves_takes_the_states_along() -> None:
    async with cluster(3, share_coordinator_state_topic_num_partitions=1) as nodes:
        await nodes.create("t")
        topic_id = topic_id_of(nodes)
        client = share_state_client(node_of(nodes.any()))
        await begin(client, topic_id)
        await client.read_state(GROUP, {topic_id: [read.PartitionData(0, 7)]})
        await in_sync(nodes, SHARE_STATE_TOPIC)
        leader = nodes.state(SHARE_STATE_TOPIC).leader
        await nodes.brokers.pop(leader).stop()
        client = share_state_client(node_of(nodes.any()))
        assert (await read_one(client, topic_id)).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert nodes.state(SHARE_STATE_TOPIC).leader != leader


async def test_state_goes_with_its_topic_at_whichever_broker_it_is() -> None:
    async with cluster(3, share_coordinator_state_topic_num_partitions=5) as nodes:
        await nodes.create("t", 20)
        topic_id = topic_id_of(nodes)
        client = share_state_client(node_of(nodes.any()))
        await begin(client, topic_id, 20)
        async with Cluster(nodes.bootstrap()) as admin:
            await admin.delete_topics(["t"])
        await nodes.until(lambda: not any(each.topics.get("t") for each in nodes.brokers.values()))
        rows = [read.PartitionData(each, 0) for each in range(20)]
        told = await client.read_state(GROUP, {topic_id: rows})
        assert {row.error_code for row in told.values()} == {ErrorCode.INVALID_REQUEST}


def topic_id_of(nodes: Nodes) -> UUID:
    found = nodes.any().topics.get("t")
    assert found is not None
    return found.id


async def test_states_that_apache_kafka_has_written_are_served(tmp_path: Path) -> None:
    """By 4.3.1: initialized four times, leaders 7 and 10, batches that no leader should have written."""
    for number in range(3):
        folder = tmp_path / f"{SHARE_STATE_TOPIC}-{number}"
        folder.mkdir()
        (folder / "partition.metadata").write_text("version: 0\ntopic_id: XKkJDVz8T9aA9Nl41sPR5A")
    shutil.copy(KAFKA_LOG, tmp_path / f"{SHARE_STATE_TOPIC}-2")
    topic_id = UUID("59d6a509-26d2-47f5-bb1b-c90fc0534c7a")
    async with Broker(data=tmp_path) as broker:
        client = share_state_client(node_of(broker))
        place = SharePlace(topic_id, 0)
        told = await client.read_state("hstate-g1", {topic_id: [read.PartitionData(0, 9)]})
        assert told[place].error_code == ErrorCode.FENCED_LEADER_EPOCH
        told = await client.read_state("hstate-g1", {topic_id: [read.PartitionData(0, 10)]})
        assert (told[place].state_epoch, told[place].start_offset) == (-1, 100)
        assert told[place].state_batches == ((100, 102, 4, 3), (103, 109, 0, 1), (112, 112, 4, 1))


@pytest.mark.parametrize("asks", ["initialize_state", "delete_state"])
async def test_other_brokers_are_asked_in_the_epoch_in_which_they_are_known_to_lead(asks: str) -> None:
    topic_id, sent = UUID(int=1), []

    class Others:
        """Brokers of which number 2 leads, each partition in another epoch."""

        def leader_of(self, _topic: str, _partition: int) -> int:
            return 2

        def leader_epoch_of(self, topic: str, partition: int) -> int:
            assert topic == SHARE_STATE_TOPIC
            return 70 + partition

        async def ask_leader(self, _place: object, body: Any, **_: float) -> Any:
            sent.append(body)
            rows = [initialize.PartitionResult(row.partition) for row in body.topics[0].partitions]
            return SimpleNamespace(results=[SimpleNamespace(topic_id=topic_id, partitions=rows)])

    topics = SimpleNamespace(get=lambda name: name, count_of=lambda _name: 50)
    settings = SimpleNamespace(share_coordinator_write_timeout_ms=5_000)
    node: Any = SimpleNamespace(node_id=1, cluster=Others(), topics=topics, settings=settings)
    row = initialize.PartitionData if asks == "initialize_state" else delete.PartitionData
    told = await getattr(share_state_client(node), asks)("g", {topic_id: [row(0), row(1)]})
    assert {each.error_code for each in told.values()} == {ErrorCode.NONE}
    (body,) = sent
    keys = [str(SharePartitionKey("g", topic_id, number)) for number in (0, 1)]
    epochs = [each.coordinator_epoch for each in body.topics[0].partitions]
    assert epochs == [70 + partition_for(key, 50) for key in keys]
    assert epochs[0] != epochs[1]
