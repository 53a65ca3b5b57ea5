"""The share coordinator in a broker of its own: its topic, restarts, deleted topics, the cut of its log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from kohort.broker import Broker
from kohort.broker.node import Node
from kohort.broker.partitions.topic_names import SHARE_STATE_TOPIC
from kohort.broker.share_state import share_state_client
from kohort.client import Cluster
from kohort.client.share_state import SharePlace, ShareStateClient, state_client
from kohort.protocol import ErrorCode
from kohort.protocol.messages import delete_share_group_state as delete
from kohort.protocol.messages import initialize_share_group_state as initialize
from kohort.protocol.messages import read_share_group_state as read
from kohort.protocol.messages import write_share_group_state as write

GROUP = "orders"
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


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


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
        before = await read_one(client, topic_id)
    async with Broker(data=tmp_path, settings=settings) as broker:
        assert node_of(broker).logs.partition(SHARE_STATE_TOPIC, 0).log_start_offset == 18
        assert await read_one(share_state_client(node_of(broker)), topic_id) == before
