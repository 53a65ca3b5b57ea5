"""Files of a cluster's broker go only by a deletion that somebody asked for, whatever the metadata say.

Covers: broker/metadata/topics.py, broker/partitions/local_logs.py, broker/metadata/newer_epochs.py.
Covers: broker/metadata/stray_coordinators.py, broker/metadata/cluster_node.py.
Covers: broker/metadata/producer_id_note.py.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as Assigned

from kohort.client import Cluster
from kohort.cluster import (
    CLUSTER_ID,
    DELETED_TOPICS,
    TOPICS,
    Delete,
    MetadataStore,
    Put,
    TopicDeletion,
    WrongClusterError,
)
from kohort.cluster.layout import states_path
from kohort.log import strays_of
from kohort.protocol import KafkaError, TopicPartition
from kohort.testing import running_broker
from kohort.testing.memory_store import MemoryHome
from tests.broker.clusters import Nodes, cluster, in_sync
from tests.broker.replicas.test_replicas import producer, replica, values

SOON = {"log_flush_offset_checkpoint_interval_ms": 50}
RECORDS = [b"one", b"two"]


async def filled(nodes: Nodes, topic: str = "orders", partitions: int = 1) -> None:
    await nodes.create(topic, partitions)
    async with producer(nodes) as sender:
        for value in RECORDS:
            await sender.send_and_wait(topic, value, partition=0)
    await in_sync(nodes, topic)


def copy_of(home: MemoryHome, without: str = "") -> MemoryHome:
    """The entries as they are now, in a home of their own, but for ephemeral ones and those below a path."""
    made = MemoryHome()
    made.tree.apply(
        {
            path: entry
            for path, entry in home.tree.entries().items()
            if not entry.ephemeral and not (without and path.startswith(without))
        }
    )
    return made


def folders(data: Path, node_id: int, topic: str = "orders") -> list[str]:
    return sorted(path.name for path in (data / str(node_id)).iterdir() if path.name.startswith(f"{topic}-"))


async def delete(nodes: Nodes, topic: str = "orders") -> None:
    for broker in nodes.brokers.values():
        if broker.cluster is not None and broker.cluster.control.is_active:
            found = broker.topics.get(topic)
            assert found is not None
            await broker.topics.delete([found])


def deletions(store: MetadataStore) -> list[TopicDeletion]:
    paths = [f"{DELETED_TOPICS}/{each}" for each in store.children(DELETED_TOPICS)]
    return [TopicDeletion.parse(entry.value) for path in paths if (entry := store.get(path)) is not None]


@pytest.mark.parametrize("below", [TOPICS, "/kohort/partitions", "/"])
def test_entries_that_are_removed_by_hand_come_back_and_no_record_goes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, below: str
) -> None:
    """With the chroot brokers and the controller lose their entries, too."""

    async def run() -> None:
        async with cluster(data=tmp_path, **SOON) as nodes:
            await filled(nodes)
            before = nodes.state("orders")
            store = nodes.stores[1]
            gone = [path for path in nodes.home.tree.entries() if path.startswith(below)]
            await store.commit(*map(Delete, gone))
            await nodes.until(lambda: all(store.get(path) is not None for path in gone))
            await in_sync(nodes)
            async with producer(nodes) as sender:
                await sender.send_and_wait("orders", b"after", partition=0)
            await asyncio.sleep(0.2)  # several passes that remove what is deleted
            await nodes.until(
                lambda: all(values(replica(nodes, node_id)) == [*RECORDS, b"after"] for node_id in (1, 2, 3))
            )
            assert below == "/" or nodes.state("orders").leader == before.leader
            assert store.get(CLUSTER_ID) is not None

    with caplog.at_level(logging.ERROR, "kohort.cluster"):
        asyncio.run(run())
    assert "that nobody has deleted" in caplog.text


def test_a_deletion_removes_the_files_of_every_broker_and_is_noted_until_all_are_done(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path) as nodes:
            await filled(nodes)
            await nodes.kill(3)
            await delete(nodes)
            store = nodes.stores[1]
            await nodes.until(lambda: deletions(store) == [TopicDeletion("orders", frozenset({3}))])
            assert [folders(tmp_path, node_id) for node_id in (1, 2, 3)] == [[], [], ["orders-0"]]
            await nodes.start(3)
            await nodes.until(lambda: deletions(store) == [TopicDeletion("orders", frozenset())])
            await nodes.until(lambda: folders(tmp_path, 3) == [])

    asyncio.run(run())


def test_with_metadata_of_an_older_copy_later_topics_stay_on_the_disks_and_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path, **SOON) as nodes:
            older = copy_of(nodes.home)
            await filled(nodes)
            newer = copy_of(nodes.home)
            await nodes.stop()
            nodes.home = older
            await asyncio.gather(*(nodes.start(node_id) for node_id in (1, 2, 3)))
            await asyncio.sleep(0.2)
            await nodes.stop()
            for node_id in (1, 2, 3):
                (stray,) = strays_of(str(tmp_path / str(node_id)))
                assert (stray.topic, stray.partition) == ("orders", 0)
            # the right metadata again: the topic is served as before
            nodes.home = newer
            await asyncio.gather(*(nodes.start(node_id) for node_id in (1, 2, 3)))
            await in_sync(nodes)
            assert values(replica(nodes, nodes.state("orders").leader)) == RECORDS
            assert [folders(tmp_path, node_id) for node_id in (1, 2, 3)] == [["orders-0"]] * 3

    with caplog.at_level(logging.ERROR, "kohort.broker"):
        asyncio.run(run())
    assert "orders-0" in caplog.text
    assert "are strays" in caplog.text


def test_with_metadata_from_before_the_first_group_no_group_begins_anew_until_somebody_removes_its_strays(
    tmp_path: Path,
) -> None:
    async def commit(nodes: Nodes) -> None:
        async with AIOKafkaConsumer(
            bootstrap_servers=nodes.bootstrap(), group_id="g", enable_auto_commit=False, retry_backoff_ms=20
        ) as reader:
            reader.assign([Assigned("orders", 0)])
            await reader.commit({Assigned("orders", 0): 1})

    async def run() -> None:
        async with cluster(data=tmp_path, **SOON) as nodes:
            await filled(nodes)
            older = copy_of(nodes.home)
            await commit(nodes)
            await nodes.stop()
            nodes.home = older
            for node_id in (1, 2, 3):
                await nodes.start(node_id)
            async with Cluster(nodes.bootstrap(), default_api_timeout_ms=500) as client:
                with pytest.raises(KafkaError, match="an older copy"):
                    await client.coordinator("g")
            for node_id in (1, 2, 3):
                assert nodes.brokers[node_id].topics.get("__consumer_offsets") is None
                for stray in strays_of(str(tmp_path / str(node_id))):
                    shutil.rmtree(tmp_path / str(node_id) / stray.folder)
            await commit(nodes)

    asyncio.run(run())


def test_a_broker_that_is_alone_reads_what_is_in_a_stray(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path, **SOON) as nodes:
            older = copy_of(nodes.home)
            await filled(nodes)
            await nodes.stop()
            nodes.home = older
            await nodes.start(1)
            await nodes.until(lambda: strays_of(str(tmp_path / "1")))

    asyncio.run(run())
    # as docs/operating-a-cluster.md tells
    (stray,) = strays_of(str(tmp_path / "1"))
    rescue = tmp_path / "rescue"
    shutil.copytree(tmp_path / "1" / stray.folder, rescue / f"{stray.topic}-{stray.partition}")
    with running_broker(data=rescue) as alone:
        assert [record.value for record in alone.read("orders")] == RECORDS


def test_another_topic_of_the_name_of_a_stray_leaves_its_files_under_another_name(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path, **SOON) as nodes:
            older = copy_of(nodes.home)
            await filled(nodes)
            await nodes.stop()
            nodes.home = older
            await asyncio.gather(*(nodes.start(node_id) for node_id in (1, 2, 3)))
            await nodes.until(lambda: nodes.any().topics.image.controller_id > 0)
            await nodes.until(lambda: len(nodes.any().topics.image.brokers) == 3)
            await nodes.create("orders")
            async with producer(nodes) as sender:
                await sender.send_and_wait("orders", b"of the new one", partition=0)
            await in_sync(nodes)
            for node_id in (1, 2, 3):
                assert values(replica(nodes, node_id)) == [b"of the new one"]
                new, stray = folders(tmp_path, node_id)
                assert new == "orders-0"
                assert stray.endswith("-stray")
                assert b"one" in next((tmp_path / str(node_id) / stray).glob("*.log")).read_bytes()

    asyncio.run(run())


async def reassign(nodes: Nodes, *replicas: int) -> None:
    """Give the topic's partition to these brokers alone, and wait until it is done."""
    for broker in nodes.brokers.values():
        if broker.cluster is not None and broker.cluster.control.is_active:
            await broker.cluster.control.reassign({TopicPartition("orders", 0): replicas})
    await nodes.until(lambda: set(nodes.state("orders").isr) == set(replicas))
    await nodes.until(lambda: not nodes.state("orders").removing)


def test_a_replica_that_was_given_to_others_while_its_broker_was_away_is_a_stray(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path, **SOON) as nodes:
            await filled(nodes)
            await nodes.kill(3)
            await reassign(nodes, 1, 2)
            await nodes.start(3)
            await nodes.until(lambda: strays_of(str(tmp_path / "3")))
            await reassign(nodes, 1, 2, 3)
            assert folders(tmp_path, 3) == ["orders-0"]
            assert values(replica(nodes, 3)) == RECORDS

    with caplog.at_level(logging.ERROR, "kohort.broker"):
        asyncio.run(run())
    assert "1 partitions in the data folder are strays" in caplog.text


def test_with_metadata_of_an_older_copy_a_replica_that_others_have_by_it_stays(tmp_path: Path) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path, **SOON) as nodes:
            await filled(nodes)
            await reassign(nodes, 1)
            older = copy_of(nodes.home)
            await reassign(nodes, 1, 2, 3)
            await nodes.kill(1)
            await nodes.until(lambda: nodes.state("orders").leader in (2, 3))
            async with producer(nodes) as sender:
                await sender.send_and_wait("orders", b"that the copy cannot know", partition=0)
            await nodes.start(1)
            await in_sync(nodes)
            await nodes.stop()
            nodes.home = older
            await asyncio.gather(*(nodes.start(node_id) for node_id in (1, 2, 3)))
            await asyncio.sleep(0.2)
            for node_id in (2, 3):
                (stray,) = strays_of(str(tmp_path / str(node_id)))
                log_file = next((tmp_path / str(node_id) / stray.folder).glob("*.log"))
                assert b"that the copy cannot know" in log_file.read_bytes()

    asyncio.run(run())


def test_with_metadata_of_an_older_copy_no_leader_epoch_and_no_producer_id_is_used_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With the id of a former producer, the first record of another one would pass for a repetition."""

    async def run() -> None:
        async with cluster(data=tmp_path, **SOON) as nodes:
            await filled(nodes)
            older = copy_of(nodes.home)
            for value in (b"three", b"four", b"five"):
                leader = nodes.state("orders").leader
                await nodes.kill(leader)
                gone = {leader, -1}
                await nodes.until(lambda: nodes.state("orders").leader not in gone)  # noqa: B023
                await nodes.start(leader)
                await in_sync(nodes)
                async with producer(nodes, enable_idempotence=True) as sender:
                    await sender.send_and_wait("orders", value, partition=0)
            used = nodes.state("orders").leader_epoch
            await in_sync(nodes)
            await nodes.stop()
            nodes.home = older
            await asyncio.gather(*(nodes.start(node_id) for node_id in (1, 2, 3)))
            await in_sync(nodes)
            assert nodes.state("orders").leader_epoch > used
            async with producer(nodes, enable_idempotence=True) as sender:
                await sender.send_and_wait("orders", b"after", partition=0)
            wanted = [*RECORDS, b"three", b"four", b"five", b"after"]
            await nodes.until(lambda: all(values(replica(nodes, each)) == wanted for each in (1, 2, 3)))
            # what is raised is reported no more
            await nodes.until(
                lambda: not any(each.newer_epochs for each in nodes.any().topics.image.brokers.values())
            )

    with caplog.at_level(logging.ERROR, "kohort.broker"):
        asyncio.run(run())
    assert "the metadata are older than the logs of 1 partitions" in caplog.text


def test_where_the_states_are_lost_no_replica_that_lacks_records_leads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They are removed while all brokers are away, and the one that comes back first was not in sync."""

    async def run() -> None:
        async with cluster(data=tmp_path, **SOON) as nodes:
            await filled(nodes)
            await nodes.kill(1)
            await nodes.until(lambda: nodes.state("orders").leader in (2, 3))
            async with producer(nodes) as sender:
                await sender.send_and_wait("orders", b"three", partition=0)
            used = nodes.state("orders").leader_epoch
            for node_id in (2, 3):
                await nodes.kill(node_id)
            await nodes.home.open().commit(Delete(states_path(0)))
            for node_id in (1, 2, 3):
                await nodes.start(node_id)
                await asyncio.sleep(0.1)
                assert nodes.state("orders").leader == -1
            await nodes.until(lambda: len(nodes.any().topics.image.brokers) == 3)
            controls = [each.cluster.control for each in nodes.brokers.values() if each.cluster is not None]
            control = next(each for each in controls if each.is_active)
            assert await control.elect(None, unclean=True) == {TopicPartition("orders", 0): None}
            await in_sync(nodes)
            assert nodes.state("orders").leader_epoch > used
            assert all(values(replica(nodes, each)) == [*RECORDS, b"three"] for each in (1, 2, 3))

    with caplog.at_level(logging.ERROR, "kohort.broker"):
        asyncio.run(run())
    assert "the metadata have lost the states of 1 partitions with records" in caplog.text


def test_a_broker_whose_metadata_become_another_clusters_leads_nothing_and_says_what_to_do(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with cluster(data=tmp_path, **SOON) as nodes:
            await filled(nodes)
            broker = nodes.brokers[1]
            failed = asyncio.ensure_future(broker.failure())
            await nodes.stores[1].commit(Put(CLUSTER_ID, {"version": "1", "id": "another"}))
            with pytest.raises(WrongClusterError, match="bring back the metadata store"):
                await asyncio.wait_for(failed, 10)
            assert not any(partition.is_led for partition in broker.topics.logs.partitions())
            assert folders(tmp_path, 1) == ["orders-0"]

    asyncio.run(run())
