"""What docs/operating-a-cluster.md tells to do, on brokers in processes of their own, while clients work.

Covers: admin/cluster/health.py, admin/cluster/reassignment.py.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from kohort import __version__
from kohort.cli import main
from kohort.log import strays_of
from kohort.testing import running_broker
from tests.broker.test_cluster_killed import SETTINGS, brokers, traffic
from tests.broker_process import BrokerProcess
from tests.cluster import servers

#: A later build: its entries have fields that this one does not know.
LATER = """
import kohort
kohort.__version__ = "99.1"
from kohort.cluster import _zookeeper_store as store

add_stamp, remove_stamp = store.add_stamp, store.remove_stamp

def stamp(value):
    return add_stamp({**value, "later": {"field": [1]}} if isinstance(value, dict) else value)

def unstamp(path, stored):
    if isinstance(stored, dict):
        stored.pop("later", None)
    return remove_stamp(path, stored)

store.add_stamp, store.remove_stamp = stamp, unstamp
from kohort.cli import main
raise SystemExit(main())
"""


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[servers.ZooKeeper]:
    with servers.zookeeper() as running:
        yield running


class Operator:
    """Somebody who works on a running cluster with commands."""

    def __init__(self, running: dict[int, BrokerProcess], connect: str, folder: Path) -> None:
        self.running = running
        self._connect = connect
        self._folder = folder
        self.later = folder / "later.py"
        self.later.write_text(LATER)

    async def does(self, *words: str) -> int:
        """The exit code of a command of ``kohort cluster``."""
        bootstrap = ",".join(each.bootstrap for each in self.running.values())
        return await asyncio.to_thread(main, ["cluster", *words, "--bootstrap", bootstrap])

    async def is_whole(self, *words: str) -> None:
        assert await self.does("status", "--wait", "--timeout", "60", *words) == 0

    async def restart(self, node_id: int, program: tuple[str, ...]) -> None:
        broker = self.running[node_id]
        assert await asyncio.to_thread(broker.stop) == 0, broker.log
        broker.program = program
        await asyncio.to_thread(broker.start)
        await self.is_whole("--brokers", "1,2,3")

    async def controller(self) -> int:
        return int((await self._entry("/controller"))["brokerid"])

    async def builds(self) -> dict[int, str]:
        return {n: (await self._entry(f"/brokers/ids/{n}"))["software"] for n in self.running}

    async def _entry(self, path: str) -> Any:
        client = KazooClient(self._connect)
        await asyncio.to_thread(client.start)
        try:
            return json.loads((await asyncio.to_thread(client.get, path))[0])
        finally:
            await asyncio.to_thread(client.stop)
            await asyncio.to_thread(client.close)

    async def add(self, node_id: int) -> None:
        folder = self._folder / str(node_id)
        folder.mkdir()
        settings = {**SETTINGS, "zookeeper.connect": self._connect, "node.id": str(node_id)}
        self.running[node_id] = BrokerProcess(folder, data=folder / "data", settings=settings)
        await asyncio.to_thread(self.running[node_id].start)


@pytest.mark.slow(15)
def test_all_brokers_are_upgraded_one_by_one_and_one_goes_back_while_clients_work(
    tmp_path: Path, zookeeper: servers.ZooKeeper
) -> None:
    connect = zookeeper.connect()

    async def run(running: dict[int, BrokerProcess]) -> None:
        operator = Operator(running, connect, tmp_path)
        now, later = running[1].program, (str(operator.later),)
        async with traffic(running) as (known, made):
            await operator.is_whole()
            generation = made.reader._coordinator.generation
            controller = await operator.controller()
            first, second = (node_id for node_id in running if node_id != controller)
            # the controller last
            for node_id in (first, second, controller):
                await operator.restart(node_id, later)
                await made.goes_on()
                # whichever build is controller, and whichever leads
                await known.create_topics({f"made-after-{node_id}": 3}, replication_factor=3)
            assert set((await operator.builds()).values()) == {"99.1"}
            # an older build beside newer ones, that reads what they have written
            await operator.restart(first, now)
            await made.goes_on()
            assert (await operator.builds())[first] == __version__
            await known.create_topics({"made-by-both": 3}, replication_factor=3)
            await operator.is_whole()
            assert await operator.does("elect") == 0
            await operator.is_whole("--preferred")
            assert made.reader._coordinator.generation == generation
            await made.check()

    with brokers(tmp_path, connect) as running:
        asyncio.run(run(running))


@pytest.mark.slow(6)
def test_a_copy_of_zookeepers_data_is_restored_and_what_is_newer_is_read_from_strays(tmp_path: Path) -> None:
    settings = {**SETTINGS, "offsets.topic.replication.factor": "1", "min.insync.replicas": "1"}
    with servers.zookeeper() as own:
        data, copy = own.folder / "1" / "data" / "version-2", tmp_path / "copy"
        settings |= {"zookeeper.connect": own.connect(), "node.id": "1"}
        broker = BrokerProcess(tmp_path, data=tmp_path / "data", settings=settings)

        def kohort(*words: str) -> int:
            return main([*words, "--bootstrap", broker.bootstrap])

        def written(topic: str, value: str) -> None:
            lines = tmp_path / "lines"
            lines.write_text(f"{value}\n")
            assert kohort("topics", "create", topic, "--replication-factor", "1") == 0
            assert kohort("produce", topic, "--file", str(lines)) == 0

        try:
            broker.start()
            written("before", "old")
            shutil.copytree(data, copy)  # the server runs meanwhile
            written("after", "new")
            assert broker.stop() == 0
            own.kill()
            shutil.rmtree(data)
            shutil.copytree(copy, data)
            own.again()
            broker.start()
            assert kohort("cluster", "status", "--wait", "--timeout", "60") == 0
            (stray,) = strays_of(str(tmp_path / "data"))
            assert (stray.topic, stray.partition) == ("after", 0)
            rescue = tmp_path / "rescue"
            shutil.copytree(tmp_path / "data" / stray.folder, rescue / "after-0")
            with running_broker(data=rescue) as alone:
                (found,) = alone.read("after")
            assert found.value == b"new"
            written("after", found.value.decode())
            assert main(["log", "strays", str(tmp_path / "data"), "--remove", stray.folder]) == 0
            assert strays_of(str(tmp_path / "data")) == []
        finally:
            if broker.alive:
                broker.kill()


@pytest.mark.slow(15)
def test_a_machine_is_replaced_and_a_broker_removed_while_clients_work(
    tmp_path: Path, zookeeper: servers.ZooKeeper
) -> None:
    connect = zookeeper.connect()

    async def run(running: dict[int, BrokerProcess]) -> None:
        operator = Operator(running, connect, tmp_path)
        async with traffic(running) as (_, made):
            await operator.is_whole()
            # another machine under the same id, that has nothing
            running[2].kill()
            shutil.rmtree(tmp_path / "2" / "data")
            await asyncio.to_thread(running[2].start)
            await operator.is_whole()
            await made.goes_on()
            # each broker has a replica of everything: a fourth one takes the place of the third
            assert await operator.does("reassign", "--from", "3") == 2
            await operator.add(4)
            await operator.is_whole("--brokers", "1,2,3,4")
            assert await operator.does("reassign", "--from", "3", "--execute") == 0
            async with asyncio.timeout(60):
                while await operator.does("reassign", "--from", "3", "--verify"):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            assert await asyncio.to_thread(running.pop(3).stop) == 0
            await operator.is_whole("--brokers", "1,2,4")
            await made.goes_on()
            # one that is dead already: nothing has a replica there in the end
            running.pop(1).kill()
            assert (
                await operator.does("reassign", "--from", "1", "--replication-factor", "2", "--execute") == 0
            )
            async with asyncio.timeout(60):
                while await operator.does("reassign", "--from", "1", "--verify"):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            await operator.is_whole("--brokers", "2,4")
            await made.goes_on()
            await made.check()

    with brokers(tmp_path, connect) as running:
        asyncio.run(run(running))
