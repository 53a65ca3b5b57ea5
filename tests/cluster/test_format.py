"""Builds of several ages on the same metadata: entries say who wrote them, newer formats are refused.

Covers: cluster/_format.py, broker/metadata/cluster_node.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from kohort import __version__
from kohort.broker import Broker
from kohort.broker.metadata import controller_client
from kohort.client import Cluster
from kohort.client.zookeeper import ZooKeeperSettings
from kohort.cluster import (
    Create,
    NewerFormatError,
    Put,
    SessionState,
    StoreEntry,
    ZooKeeperStore,
    open_zookeeper,
)
from kohort.cluster._format import FORMAT
from kohort.protocol import build_batch
from tests.cluster.servers import ZooKeeper, until

NEWER = {"format": FORMAT + 1, "version": "99.1"}
#: What a build answers that does not know it.
REFUSED = rf"/kept .* needs format {FORMAT + 1}, and was written by kohort 99.1; this build is .* nothing was"


class ByHand:
    """The entries of a cluster, past the store."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client

    async def write(self, path: str, value: Any) -> None:
        data = json.dumps(value).encode()
        await asyncio.to_thread(self._client.ensure_path, path)
        await asyncio.to_thread(self._client.set, path, data)

    async def read(self, path: str) -> Any:
        return json.loads((await asyncio.to_thread(self._client.get, path))[0])


@pytest.fixture
async def place(zookeeper: ZooKeeper) -> AsyncIterator[tuple[str, ByHand]]:
    """Where nothing is yet, and a way to it."""
    connect = zookeeper.connect()
    hosts, _, chroot = connect.partition("/")
    root = KazooClient(hosts)
    await asyncio.to_thread(root.start)
    await asyncio.to_thread(root.ensure_path, f"/{chroot}")
    root.chroot = f"/{chroot}"
    try:
        yield connect, ByHand(root)
    finally:
        await asyncio.to_thread(root.stop)
        await asyncio.to_thread(root.close)


async def opened(connect: str) -> ZooKeeperStore:
    return await open_zookeeper(ZooKeeperSettings(connect))


async def test_entries_say_who_wrote_them_and_readers_of_entries_see_nothing_of_it(
    place: tuple[str, ByHand],
) -> None:
    connect, by_hand = place
    store = await opened(connect)
    await store.commit(Create("/kept", {"a": 1}), Create("/number", 7))
    assert (store.get("/kept"), store.get("/number")) == (StoreEntry({"a": 1}), StoreEntry(7))
    stamp = {"format": FORMAT, "version": __version__}
    assert await by_hand.read("/kept") == {"a": 1, "kohort": stamp}
    assert await by_hand.read("/number") == 7
    await by_hand.write("/kept", {"a": 2})
    await until(lambda: store.get("/kept") == StoreEntry({"a": 2}, 1))
    # one of a newer build that older ones may read
    await by_hand.write("/kept", {"a": 3, "b": 4, "kohort": {"format": FORMAT, "version": "99.1"}})
    await until(lambda: store.get("/kept") == StoreEntry({"a": 3, "b": 4}, 2))
    await store.commit(Put("/kept", {"a": 5}, 2))
    assert (await by_hand.read("/kept"))["kohort"] == stamp
    store.close()


async def test_a_start_on_metadata_of_a_newer_format_is_refused_and_changes_nothing(
    place: tuple[str, ByHand],
) -> None:
    connect, by_hand = place
    value = {"a": 1, "kohort": NEWER}
    await by_hand.write("/kept", value)
    with pytest.raises(NewerFormatError, match=REFUSED):
        await opened(connect)
    assert await by_hand.read("/kept") == value


async def test_a_newer_format_that_appears_ends_the_session_and_is_not_shown(
    place: tuple[str, ByHand],
) -> None:
    connect, by_hand = place
    store = await opened(connect)
    await store.commit(Create("/kept", {"a": 1}))
    await by_hand.write("/kept", {"b": 1, "kohort": NEWER})
    await until(lambda: store.session is SessionState.LOST)
    assert isinstance(store.refusal, NewerFormatError)
    assert store.get("/kept") == StoreEntry({"a": 1})
    with pytest.raises(ConnectionError):
        await store.commit(Put("/kept", {"a": 2}))
    assert await by_hand.read("/kept") == {"b": 1, "kohort": NEWER}


async def test_a_broker_that_meets_a_newer_format_leads_nothing_and_ends_with_its_files_as_they_are(
    place: tuple[str, ByHand], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, by_hand = place
    broker = Broker(data=tmp_path, settings={"zookeeper_connect": connect, "node_id": 1})
    await broker.start()
    async with Cluster(broker.bootstrap) as client:
        await client.create_topics({"orders": 1}, replication_factor=1)
    assert (await by_hand.read("/brokers/ids/1"))["software"] == __version__
    assert broker.topics.image.brokers[1].version == __version__
    records = build_batch([(None, b"value", ())], timestamp_ms=0)
    broker.topics.logs.partition("orders", 0).append(bytes(records), now_ms=0)
    before = await by_hand.read("/brokers/topics/orders")
    failed = asyncio.ensure_future(broker.failure())
    await by_hand.write("/kohort/partitions/0", {"parts": [], "kohort": NEWER})
    with pytest.raises(NewerFormatError, match=r"/kohort/partitions/0 .* build that is as new as the others"):
        await asyncio.wait_for(failed, 30)
    assert not any(partition.is_led for partition in broker.topics.logs.partitions())
    # as where others could lead: that they do is not heard any more
    monkeypatch.setattr(controller_client, "leaders_to_move", lambda *_: 1)
    async with asyncio.timeout(20):
        await broker.stop()
    assert b"value" in next((tmp_path / "orders-0").glob("*.log")).read_bytes()
    assert await by_hand.read("/brokers/topics/orders") == before
    assert await by_hand.read("/kohort/partitions/0") == {"parts": [], "kohort": NEWER}
