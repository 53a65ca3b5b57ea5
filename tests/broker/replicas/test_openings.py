"""After a stop that was not clean a broker of a cluster reads its logs in threads, and serves what is ready.

Covers: broker/replicas/openings.py, broker/partitions/partition.py, broker/partitions/local_logs.py.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.broker.partitions.partition import Partition
from kohort.broker.replicas import openings as _openings
from kohort.log._files import OsFile
from kohort.protocol import KafkaError, build_batch
from tests.broker.clusters import Nodes, cluster, in_sync

PARTITIONS = 6
RECORD = bytes(100_000)


class Reads:
    """Bytes that are read of logs in a folder, by the name of the partition; ``held`` is one whose files are
    not read to the end before ``go_on``.
    """

    def __init__(self) -> None:
        self.folder = ""
        self.held = ""
        self.on_loop: Counter[str] = Counter()
        self.beside: Counter[str] = Counter()
        self.go_on = threading.Event()
        self._loop = threading.get_ident()

    def read(self, file: OsFile, size: int) -> None:
        path = Path(file.path)
        if path.suffix != ".log" or path.parent.parent.name != self.folder:
            return
        name = path.parent.name
        if threading.get_ident() == self._loop:
            self.on_loop[name] += size
            return
        self.beside[name] += size
        if name == self.held:
            assert self.go_on.wait(60)


@pytest.fixture
async def reads(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Reads]:
    seen, whole = Reads(), OsFile.read

    def counted(file: OsFile, position: int, size: int) -> bytes:
        data = whole(file, position, size)
        seen.read(file, len(data))
        return data

    monkeypatch.setattr(OsFile, "read", counted)
    yield seen
    seen.go_on.set()


def replica(nodes: Nodes, node_id: int, index: int) -> Partition:
    return nodes.brokers[node_id].topics.logs.partition("orders", index)


async def killed(nodes: Nodes) -> int:
    """Write to all partitions, kill a broker and return which one."""
    await nodes.create("orders", PARTITIONS)
    await in_sync(nodes)
    for index in range(PARTITIONS):
        leader = replica(nodes, nodes.state("orders", index).leader, index)
        leader.append(bytes(build_batch([(None, RECORD, ())], timestamp_ms=0)), now_ms=0)
    everywhere = [(n, index) for n in nodes.brokers for index in range(PARTITIONS)]
    await nodes.until(lambda: all(replica(nodes, n, index).high_watermark == 1 for n, index in everywhere))
    node_id = nodes.state("orders").leader
    await nodes.kill(node_id)
    await nodes.until(lambda: node_id not in nodes.any().topics.image.brokers)
    return node_id


def is_in_sync(nodes: Nodes, index: int) -> bool:
    return len(nodes.state("orders", index).isr) == 3


async def test_files_are_read_beside_the_loop_and_what_is_ready_does_not_wait_for_the_rest(
    tmp_path: Path, reads: Reads, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "kohort.broker")
    monkeypatch.setattr(_openings, "REPEAT_S", 0.0)
    async with cluster(data=tmp_path, auto_leader_rebalance_enable="false") as nodes:
        node_id = await killed(nodes)
        reads.folder, reads.held = str(node_id), "orders-0"
        await nodes.start(node_id)
        await nodes.until(lambda: all(is_in_sync(nodes, index) for index in range(1, PARTITIONS)))
        assert reads.beside["orders-0"]
        assert not is_in_sync(nodes, 0)
        with pytest.raises(KafkaError, match="is being read"):
            replica(nodes, node_id, 0).check_usable()
        replica(nodes, node_id, 0).apply_retention(0)
        reads.go_on.set()
        await in_sync(nodes)
        assert all(reads.beside[f"orders-{index}"] > len(RECORD) for index in range(PARTITIONS))
        assert not any(reads.on_loop[f"orders-{index}"] for index in range(PARTITIONS))
        assert "partitions are read after a stop that was not clean" in caplog.text


async def test_a_topic_that_is_deleted_meanwhile_keeps_its_folder_until_nobody_reads_there(
    tmp_path: Path, reads: Reads
) -> None:
    async with cluster(data=tmp_path) as nodes:
        node_id = await killed(nodes)
        reads.folder, reads.held = str(node_id), "orders-0"
        broker = await nodes.start(node_id)
        await nodes.until(lambda: reads.beside["orders-0"])
        controller = next(each for each in nodes.brokers.values() if each.cluster.control.is_active)  # type: ignore[union-attr]
        found = controller.topics.get("orders")
        assert found is not None
        await controller.topics.delete([found])
        await nodes.until(lambda: broker.topics.get("orders") is None)
        await nodes.until(lambda: not (tmp_path / str(node_id) / "orders-1").exists())
        assert (tmp_path / str(node_id) / "orders-0").exists()
        reads.go_on.set()
        await nodes.until(lambda: not (tmp_path / str(node_id) / "orders-0").exists())
        await nodes.until(lambda: not any(controller.topics.image.deletions.values()))


async def test_a_stop_before_all_are_read_is_not_clean(
    tmp_path: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_openings, "SIDE_BY_SIDE", 1)
    stops: list[_openings.Openings] = []
    stop = _openings.Openings.stop

    async def noted(openings: _openings.Openings) -> None:
        stops.append(openings)
        await stop(openings)

    monkeypatch.setattr(_openings.Openings, "stop", noted)
    async with cluster(data=tmp_path) as nodes:
        node_id = await killed(nodes)
        stops.clear()
        reads.folder, reads.held = str(node_id), "orders-0"
        broker = await nodes.start(node_id)
        await nodes.until(lambda: reads.beside["orders-0"])
        unread = replica(nodes, node_id, 1)
        stopping = asyncio.create_task(broker.stop())
        assert nodes.brokers.pop(node_id) is broker
        await nodes.until(lambda: stops)
        reads.go_on.set()
        await stopping
        assert unread.is_unread
        assert not (tmp_path / str(node_id) / ".kafka_cleanshutdown").exists()


async def test_what_comes_in_the_moment_in_which_the_last_reader_ends_is_read_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_openings, "SIDE_BY_SIDE", 1)
    loop, opened = asyncio.get_running_loop(), list[Any]()

    class Read:
        topic, index, gone = SimpleNamespace(name="orders"), 0, False

        async def open_in_thread(self) -> None: ...

    first: Any = Read()
    second: Any = Read()

    def then(partition: Any, _: Exception | None) -> None:
        opened.append(partition)
        if partition is first:
            # before anything that its reader's end calls
            loop.call_soon(openings.begin_opening, second)

    openings = _openings.Openings(then)
    openings.begin_opening(first)
    for _ in range(20):
        await asyncio.sleep(0)
    assert opened == [first, second]
