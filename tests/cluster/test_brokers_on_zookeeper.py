"""Brokers of a cluster whose metadata are in a real ZooKeeper, started by their settings.

Covers: broker/broker.py, broker/metadata/cluster_node.py.
"""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from kohort.broker import Broker
from kohort.broker.metadata.controller_requests import first_configs
from kohort.broker.partitions.topic_names import TRANSACTIONS_TOPIC
from kohort.cli import main
from kohort.client import Cluster, Sasl
from kohort.protocol import KohortError, build_batch
from kohort.settings import SettingsError, read_settings_file
from tests.broker.security.certificates import Certificates
from tests.cluster.servers import ZooKeeper, until


def broker(connect: str, number: int, **settings: Any) -> Broker:
    usual = {
        "zookeeper_connect": connect,
        "zookeeper_session_timeout_ms": 25_000,
        "node_id": number,
        "default_replication_factor": 2,
        "broker_rack": f"rack-{number}",
    }
    return Broker(settings={**usual, **settings})


def led_by(one: Broker, topic: str) -> set[int]:
    found = one.topics.image.topic(topic)
    return set() if found is None else {state.leader for state in found.partitions}


async def test_brokers_find_each_other_lead_for_each_other_and_end_their_sessions(
    zookeeper: ZooKeeper,
) -> None:
    connect = zookeeper.connect()
    first, second = broker(connect, 1), broker(connect, 2)
    await asyncio.gather(first.start(), second.start())
    await until(lambda: all(len(each.topics.image.brokers) == 2 for each in (first, second)))
    assert first.cluster_id == second.cluster_id
    for each in (first, second):
        async with Cluster(each.bootstrap) as client:
            await client.create_topics({f"by-{each.port}": 4}, replication_factor=2)
    await until(lambda: led_by(first, f"by-{second.port}") == {1, 2})
    assert {one.rack for one in first.topics.image.brokers.values()} == {"rack-1", "rack-2"}
    await second.stop()
    await until(lambda: led_by(first, f"by-{second.port}") == {1})
    # its session was ended, and not left to its timeout
    await until(lambda: list(first.topics.image.brokers) == [1])
    await first.stop()


async def test_a_broker_that_was_killed_comes_back_before_its_session_would_have_ended(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    connect = zookeeper.connect()
    first = broker(connect, 1)
    killed = Broker(data=tmp_path, settings=broker(connect, 2).settings)
    await asyncio.gather(first.start(), killed.start())
    await until(lambda: len(first.topics.image.brokers) == 2)
    epoch = first.topics.image.brokers[2].epoch
    assert killed.cluster is not None
    store = killed.cluster.store
    await killed.kill()
    again = Broker(data=tmp_path, settings=killed.settings)
    # sessions last for 25 s
    async with asyncio.timeout(10):
        await again.start()
    # the other broker may see the registration of before for a while
    await until(lambda: 2 in (brokers := first.topics.image.brokers) and brokers[2].epoch > epoch)
    await asyncio.gather(first.stop(), again.stop())
    store.close()


async def test_settings_of_a_cluster_are_checked() -> None:
    with pytest.raises(SettingsError, match=r"zookeeper\.connect needs node\.id"):
        Broker(settings={"zookeeper.connect": "127.0.0.1:1"})
    with pytest.raises(
        SettingsError, match=r"default\.replication\.factor=3 is not allowed: this broker is alone"
    ):
        Broker(settings={"default.replication.factor": 3})
    in_a_cluster = Broker(settings={"zookeeper.connect": "127.0.0.1:1", "node.id": 1})
    assert in_a_cluster.settings.offsets_topic_replication_factor == 3
    chosen = {"zookeeper.connect": "127.0.0.1:1", "node.id": 1, "offsets.topic.replication.factor": 2}
    assert Broker(settings=chosen).settings.offsets_topic_replication_factor == 2
    assert Broker().settings.offsets_topic_replication_factor == 1


async def test_transactions_of_a_cluster_need_two_replicas_in_sync_where_there_are_as_many() -> None:
    def least(**settings: Any) -> Any:
        return first_configs(Broker(settings=settings).settings, TRANSACTIONS_TOPIC).get(
            "min_insync_replicas"
        )

    clustered = {"zookeeper_connect": "127.0.0.1:1", "node_id": 1}
    assert least(**clustered) == 2
    assert least(**clustered, transaction_state_log_min_isr=3) == 3
    assert least(**clustered, transaction_state_log_replication_factor=1) == 1
    assert least() == 1


async def test_a_broker_without_zookeeper_says_so_and_does_not_start() -> None:
    alone = broker("127.0.0.1:1", 1, zookeeper_connection_timeout_ms=200)
    with pytest.raises(KohortError, match=r"no answer from ZooKeeper at 127\.0\.0\.1:1 within 200 ms"):
        await alone.start()
    wrong = broker("127.0.0.1:1", 1, kohort_zookeeper_digest="secret")
    with pytest.raises(KohortError, match="USER:PASSWORD"):
        await wrong.start()


def test_users_of_a_cluster_are_in_zookeeper(
    zookeeper: ZooKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"zookeeper.connect={zookeeper.connect()}\nnode.id=1\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("gehe1m\n"))
    assert main(["users", "add", "alice", "--settings", str(file)]) == 0
    assert main(["users", "remove", "alice", "--settings", str(file), "--mechanism", "SCRAM-SHA-512"]) == 0
    capsys.readouterr()
    assert main(["users", "list", "--settings", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == ["alice\tSCRAM-SHA-256\t4096 iterations"]
    file.write_text("node.id=1\n")
    assert main(["users", "list", "--settings", str(file)]) == 2
    assert "has no zookeeper.connect: give --data" in capsys.readouterr().err


async def test_the_settings_of_the_page_about_clusters_make_one_that_is_secured(
    zookeeper: ZooKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for TLS to ZooKeeper, which this server does not speak."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "cluster.md").read_text()
    lines = page.partition("```properties\n")[2].partition("```")[0]
    certificates = Certificates(tmp_path)
    for before, after in (
        ("zk1:2181,zk2:2181,zk3:2181/kohort", zookeeper.connect()),
        ("/etc/kohort/kafka1.pem", certificates.server()),
        ("/etc/kohort/ca.pem", certificates.cafile),
        ('password="..."', 'password="gehe1m"'),
        ("0.0.0.0:9093", "127.0.0.1:0"),
        ("0.0.0.0:9094", "127.0.0.1:0"),
        ("advertised.listeners=", "# "),
        ("zookeeper.ssl.", "# "),
    ):
        assert before in lines
        lines = lines.replace(before, after)
    file = tmp_path / "server.properties"
    file.write_text(lines)
    monkeypatch.setattr("sys.stdin", io.StringIO("gehe1m\n"))
    assert await asyncio.to_thread(main, ["users", "add", "broker", "--settings", str(file)]) == 0
    first, second = (
        Broker(settings={**read_settings_file(file), "node.id": number, "default.replication.factor": 2})
        for number in (1, 2)
    )
    await asyncio.gather(first.start(), second.start())
    await until(lambda: all(len(each.topics.image.brokers) == 2 for each in (first, second)))
    login = Sasl("SCRAM-SHA-256", "broker", "gehe1m")
    for each in (first, second):
        # one of them is not the controller: it forwards this
        async with Cluster(each.bootstrap, ssl_context=certificates.trusting(), sasl=login) as client:
            await client.create_topics({f"by-{each.port}": 1}, replication_factor=2)
    for each in (second, first):
        await each.stop()


async def test_topics_that_are_removed_from_zookeeper_by_hand_come_back_with_their_files(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    connect = zookeeper.connect()
    hosts, _, chroot = connect.partition("/")
    one = Broker(
        data=tmp_path,
        settings={"zookeeper_connect": connect, "node_id": 1, "log_flush_offset_checkpoint_interval_ms": 50},
    )
    await one.start()
    async with Cluster(one.bootstrap) as client:
        await client.create_topics({"orders": 2}, replication_factor=1)
    await until(lambda: led_by(one, "orders") == {1})
    topic = one.topics.image.topic("orders")
    for number in range(2):
        records = build_batch([(None, b"value", ())], timestamp_ms=0)
        one.topics.logs.partition("orders", number).append(bytes(records), now_ms=0)
    by_hand = KazooClient(hosts)
    await asyncio.to_thread(by_hand.start)
    try:
        before = await asyncio.to_thread(by_hand.get, f"/{chroot}/brokers/topics/orders")
        # in one step: the controller writes the topic again as soon as it is gone
        removal = by_hand.transaction()
        removal.delete(f"/{chroot}/brokers/topics/orders")
        removal.delete(f"/{chroot}/brokers/topics")
        assert await asyncio.to_thread(removal.commit) == [True, True]

        async def is_back() -> bool:
            return bool(await asyncio.to_thread(by_hand.exists, f"/{chroot}/brokers/topics/orders"))

        while not await is_back():  # noqa: ASYNC110 - whoever looks from outside has no event
            await asyncio.sleep(0.02)
        after = await asyncio.to_thread(by_hand.get, f"/{chroot}/brokers/topics/orders")
        assert after[0] == before[0]
    finally:
        await asyncio.to_thread(by_hand.stop)
    found = one.topics.image.topic("orders")
    assert found is not None
    assert topic is not None
    assert found.id == topic.id
    assert sorted(path.name for path in tmp_path.glob("orders-*")) == ["orders-0", "orders-1"]
    await one.stop()
