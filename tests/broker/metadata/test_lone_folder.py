"""The data folder of a broker that was alone brings its topics, groups, users and settings into a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import pytest

from kohort.broker import Broker
from kohort.broker.metadata import lone_folder as _lone_folder
from kohort.cli import main
from kohort.client import Cluster
from kohort.cluster import (
    Create,
    Delete,
    FolderStore,
    MetadataStore,
    TopicRecord,
    WrongClusterError,
    topic_path,
)
from kohort.consumer import AsyncGroupConsumer
from kohort.producer import Producer
from kohort.protocol import KohortError
from kohort.testing.memory_store import MemoryHome
from tests.broker.clusters import Nodes, in_sync

ALONE: dict[str, Any] = {
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "group.initial.rebalance.delay.ms": 0,
    "kohort.scram.users": "alice=gehe1m",
}


def of_cluster(home: MemoryHome, data: Path, node_id: int = 1, **settings: Any) -> Broker:
    async def open_store() -> MetadataStore:
        return home.open()

    return Broker(data=data, open_store=open_store, settings={**ALONE, "node.id": node_id, **settings})


async def used(data: Path) -> None:
    """Let a broker alone have a topic with records, a group that has read a half of them, and settings."""
    async with Broker(data=data, settings=ALONE) as alone:
        await alone.topics.create("orders", 2, {"retention.ms": "123456789"})
        live = alone._require_running().node.live
        await live.set(for_all=True, values=live.check({"log.cleaner.backoff.ms": "7000"}, for_all=True))
        producer = Producer(bootstrap=alone.bootstrap, transactional_id="t")
        async with producer, producer.transaction():
            for number in range(10):
                await producer.send("orders", b"%d" % number, partition=number % 2)
        assert len(await read(alone.bootstrap, 5)) == 5


async def controls(broker: Broker) -> None:
    """Wait until a broker is the controller."""
    nodes = Nodes(MemoryHome(), {})
    await nodes.until(lambda: broker.topics.image.controller_id == broker.settings.node_id)


async def read(bootstrap: str, count: int) -> list[bytes | None]:
    """Values of the next records of a group, which are committed."""
    got = []
    async with AsyncGroupConsumer(
        "orders", bootstrap=bootstrap, group="g", auto_offset_reset="earliest"
    ) as consumer:
        async for record in consumer:
            got.append(record.value)
            consumer.done(record)
            if len(got) == count:
                await consumer.commit()
                break
    return got


async def test_a_cluster_that_begins_with_it_has_its_topics_groups_users_and_settings(tmp_path: Path) -> None:
    await used(tmp_path)
    home = MemoryHome()
    async with of_cluster(home, tmp_path) as first:
        topic = first.topics.get("orders")
        assert topic is not None
        assert (len(topic.partitions), topic.configs) == (2, {"retention_ms": 123_456_789})
        assert first.settings is not first._require_running().node.settings
        assert first._require_running().node.settings.log_cleaner_backoff_ms == 7_000
        assert {user for user, _, _ in first._require_running().node.scram_users.all()} == {"alice"}
        # the other half: what was committed is known
        got = await read(first.bootstrap, 5)
        async with Cluster(first.bootstrap) as client:
            leaders = await client.metadata(["orders"])
        assert len(leaders.nodes) == 1
        producer = Producer(bootstrap=first.bootstrap, transactional_id="t")
        async with producer, producer.transaction():
            await producer.send("orders", b"more", partition=0)
        assert await read(first.bootstrap, 1) == [b"more"]
        assert len(set(got)) == 5
    # and again: nothing is brought twice, and what was deleted meanwhile stays away
    assert sorted(path.name for path in tmp_path.glob("kohort*.json*")) == [
        "kohort-scram-users.json.alone",
        "kohort-settings.json.alone",
        "kohort.json.alone",
    ]
    async with of_cluster(home, tmp_path) as first:
        nodes = Nodes(home, {})
        nodes.brokers[1] = first
        # it is registered before the controller lets it lead
        await nodes.until(lambda: nodes.state("orders").leader == 1)


async def test_its_topics_get_more_replicas_when_other_brokers_are_there(tmp_path: Path) -> None:
    await used(tmp_path / "1")
    home = MemoryHome()
    async with (
        of_cluster(home, tmp_path / "1") as first,
        of_cluster(home, tmp_path / "2", 2),
        of_cluster(home, tmp_path / "3", 3) as third,
    ):
        nodes = Nodes(home, {})
        nodes.brokers[3] = third
        await nodes.until(lambda: len(third.topics.image.brokers) == 3)
        to_all = ["--brokers", "1,2,3", "--replication-factor", "3", "--execute"]
        for topic in ("orders", "__consumer_offsets"):
            words = ["cluster", "reassign", topic, *to_all, "--bootstrap", first.bootstrap]
            assert await asyncio.to_thread(main, words) == 0
            await in_sync(nodes, topic)
        assert len(await read(third.bootstrap, 5)) == 5


async def test_a_start_that_was_cut_short_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await used(tmp_path)
    home = MemoryHome()
    with monkeypatch.context() as cut:
        cut.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError("cut short")))
        with pytest.raises(OSError, match="cut short"):
            await of_cluster(home, tmp_path).start()
    async with of_cluster(home, tmp_path) as first:
        assert first.topics.get("orders") is not None
        assert len(await read(first.bootstrap, 5)) == 5


async def test_a_topic_that_was_deleted_before_a_crash_stays_away_when_a_start_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await used(tmp_path)
    # what a broker that was killed leaves: the deletion is a step behind the file of the topics
    killed = FolderStore(tmp_path)
    killed.commit_now(Create(topic_path("gone"), TopicRecord(UUID(int=5), 1, {}).to_document()))
    killed.commit_now(Delete(topic_path("gone")))
    home, rename = MemoryHome(), Path.rename

    def cut_short(path: Path, to: Path) -> Path:
        if path.name == "kohort.json":
            raise OSError("cut short")
        return rename(path, to)

    with monkeypatch.context() as cut:
        cut.setattr(Path, "rename", cut_short)
        with pytest.raises(OSError, match="cut short"):
            await of_cluster(home, tmp_path).start()
    async with of_cluster(home, tmp_path) as first:
        assert first.topics.get("orders") is not None
        assert first.topics.get("gone") is None


async def test_nothing_is_brought_while_another_broker_is_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await used(tmp_path / "1")
    home = MemoryHome()
    with monkeypatch.context() as cut:
        cut.setattr(_lone_folder, "_write_to_store", AsyncMock(side_effect=OSError("cut short")))
        with pytest.raises(OSError, match="cut short"):
            await of_cluster(home, tmp_path / "1").start()
    before = sorted(path.name for path in (tmp_path / "1").iterdir())
    async with of_cluster(home, tmp_path / "2", 2) as other:
        await controls(other)
        with monkeypatch.context() as short:
            short.setattr(_lone_folder, "_CONTROLLER_S", 0.1)
            with pytest.raises(KohortError, match="stop them until this broker has started"):
                await of_cluster(home, tmp_path / "1").start()
        assert sorted(path.name for path in (tmp_path / "1").iterdir()) == before
        assert other.topics.get("orders") is None
        # until that one is gone
        first = of_cluster(home, tmp_path / "1")
        begun = asyncio.create_task(first.start())
        await asyncio.sleep(0)
    await begun
    assert first.topics.get("orders") is not None
    await first.stop()


async def test_a_folder_of_another_cluster_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    await used(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    home = MemoryHome()
    async with of_cluster(home, tmp_path / "other", 2):
        with pytest.raises(WrongClusterError, match="or an empty folder"):
            await of_cluster(home, tmp_path).start()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "other"])


async def test_without_the_metadata_of_its_cluster_a_folder_is_refused_and_nothing_is_removed(
    tmp_path: Path,
) -> None:
    async with of_cluster(MemoryHome(), tmp_path) as first:
        await controls(first)
        await first.topics.create("orders", 1, {})
        first.topics.logs.partition("orders", 0).flush()
    with pytest.raises(WrongClusterError, match=r"check the address and the chroot of zookeeper\.connect"):
        await of_cluster(MemoryHome(), tmp_path).start()


async def test_a_topic_that_the_cluster_has_already_is_refused(tmp_path: Path) -> None:
    await used(tmp_path)
    home = MemoryHome()
    async with of_cluster(home, tmp_path) as first:
        await controls(first)
        await first.topics.delete([topic for topic in first.topics.all() if topic.name == "orders"])
        await first.topics.create("orders", 1, {})
    for path in tmp_path.glob("*.alone"):
        path.rename(path.with_suffix(""))
    with pytest.raises(KohortError, match="has a topic orders, and the cluster has another one"):
        await of_cluster(home, tmp_path).start()
