"""Three brokers in processes of their own, on a real ZooKeeper: killed by SIGKILL, all of them in the end.

Covers: broker/metadata/cluster_node.py, broker/replicas/replicas.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from kohort.client.cluster import Cluster
from kohort.protocol import ApiKey, KohortError
from kohort.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker_process import QUICK_SETTINGS, BrokerProcess
from tests.cluster import servers

SETTINGS = {
    **QUICK_SETTINGS,
    "zookeeper.session.timeout.ms": "2000",
    "zookeeper.connection.timeout.ms": "60000",
    "replica.lag.time.max.ms": "3000",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
}
PARTITIONS = 3


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[servers.ZooKeeper]:
    with servers.zookeeper() as running:
        yield running


@contextlib.contextmanager
def brokers(
    folder: Path, connect: str, more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[dict[int, BrokerProcess]]:
    """Three brokers, by node id; ``more`` are settings beside those of this file."""
    made: dict[int, BrokerProcess] = {}
    try:
        for node_id in (1, 2, 3):
            own = folder / str(node_id)
            own.mkdir()
            settings = {**SETTINGS, **more, "zookeeper.connect": connect, "node.id": str(node_id)}
            made[node_id] = BrokerProcess(own, data=own / "data", settings=settings)
            made[node_id].start()
        yield made
    finally:
        for each in made.values():
            if each.alive:
                each.kill()


class Traffic:
    """An idempotent producer of every partition of ``orders``, and a group that reads it, meanwhile."""

    def __init__(self, bootstrap: str) -> None:
        options = {"bootstrap_servers": bootstrap, "retry_backoff_ms": 50, "metadata_max_age_ms": 1_000}
        self._sender = AIOKafkaProducer(enable_idempotence=True, request_timeout_ms=10_000, **options)
        self.reader = AIOKafkaConsumer(
            "orders",
            group_id="g",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=10_000,
            heartbeat_interval_ms=500,
            request_timeout_ms=11_000,
            **options,
        )
        self._acknowledged: list[bytes] = []
        self._got: list[bytes] = []
        self._enough = asyncio.Event()
        self._done = asyncio.Event()

    async def __aenter__(self) -> Traffic:
        await self._sender.start()
        await self.reader.start()
        self._tasks = [asyncio.create_task(self._send(each)) for each in range(PARTITIONS)]
        self._tasks.append(asyncio.create_task(self._read()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await self._sender.stop()
        await self.reader.stop()

    async def goes_on(self, count: int = 100) -> float:
        """Wait until so many more are acknowledged, and so many more read; how long that took, in seconds."""
        begun = time.monotonic()
        enough = len(self._acknowledged) + count, len(self._got) + count
        await servers.until(lambda: len(self._acknowledged) >= enough[0] and len(self._got) >= enough[1])
        return time.monotonic() - begun

    async def check(self) -> None:
        """Stop; everything that was acknowledged was read once, and is committed."""
        self._enough.set()
        *senders, reader = self._tasks
        await asyncio.gather(*senders)
        # only now is nothing under way that the reader has to wait for
        self._done.set()
        await reader
        places = [TopicPartition("orders", number) for number in range(PARTITIONS)]
        assert sum([await self.reader.committed(each) or 0 for each in places]) == len(self._got)
        assert sorted(self._got) == sorted(self._acknowledged)

    async def _send(self, partition: int) -> None:
        number = 0
        while not self._enough.is_set():
            value = b"%d-%d" % (partition, number)
            await self._sender.send_and_wait("orders", value, partition=partition)
            self._acknowledged.append(value)
            number += 1
            await asyncio.sleep(0.01)

    async def _read(self) -> None:
        while not self._done.is_set() or len(self._got) < len(self._acknowledged):
            for records in (await self.reader.getmany(timeout_ms=200)).values():
                self._got.extend(record.value for record in records)
            await self.reader.commit()


@contextlib.asynccontextmanager
async def traffic(running: dict[int, BrokerProcess]) -> AsyncIterator[tuple[Cluster, Traffic]]:
    """Traffic on a new topic, which goes on."""
    bootstrap = ",".join(each.bootstrap for each in running.values())
    async with Cluster(bootstrap) as known:
        async with asyncio.timeout(60):
            while len((await known.metadata([])).nodes) < len(running):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.1)
        configs = [CreatableTopicConfig("min.insync.replicas", "2")]
        wanted = CreateTopicsRequest(
            topics=[CreatableTopic("orders", PARTITIONS, 3, configs=configs)], timeout_ms=10_000
        )
        answer = await known.request(None, ApiKey.CREATE_TOPICS, wanted)
        assert [each.error_code for each in answer.topics] == [0]
        async with Traffic(bootstrap) as made:
            await made.goes_on()
            yield known, made


async def leader(known: Cluster) -> int:
    """Node id of the leader of the first partition."""
    partitions = (await known.metadata(["orders"])).topics["orders"].partitions
    return partitions[0].leader


@pytest.mark.slow(20)
def test_nothing_acknowledged_is_lost_when_processes_are_killed(
    tmp_path: Path, zookeeper: servers.ZooKeeper
) -> None:
    async def run(running: dict[int, BrokerProcess]) -> None:
        async with traffic(running) as (known, made):
            generation = made.reader._coordinator.generation
            for _ in range(2):
                node_id = await leader(known)
                running[node_id].kill()
                print(f"broker {node_id} killed: goes on after {await made.goes_on():.1f} s")
                await asyncio.to_thread(running[node_id].start)
                await made.goes_on()
            assert made.reader._coordinator.generation == generation
            for each in running.values():
                each.kill()
            await asyncio.gather(*(asyncio.to_thread(each.start) for each in running.values()))
            await made.goes_on()
            await made.check()

    with brokers(tmp_path, zookeeper.connect()) as running:
        asyncio.run(run(running))


@pytest.mark.slow(10)
def test_nothing_acknowledged_is_lost_when_processes_are_paused_or_stopped(
    tmp_path: Path, zookeeper: servers.ZooKeeper
) -> None:
    async def run(running: dict[int, BrokerProcess]) -> None:
        async with traffic(running) as (known, made):
            node_id = await leader(known)
            process = running[node_id].process
            assert process is not None
            # longer than its session lasts: others lead, and it does not know when it wakes
            process.send_signal(signal.SIGSTOP)
            print(f"broker {node_id} paused: goes on after {await made.goes_on():.1f} s")
            process.send_signal(signal.SIGCONT)
            await made.goes_on()
            node_id = await leader(known)
            await asyncio.to_thread(running[node_id].stop)
            print(f"broker {node_id} stopped: goes on after {await made.goes_on():.1f} s")
            await asyncio.to_thread(running[node_id].start)
            await made.goes_on()
            await made.check()

    with brokers(tmp_path, zookeeper.connect()) as running:
        asyncio.run(run(running))


@pytest.mark.slow(10)
def test_records_are_taken_while_zookeeper_is_away(tmp_path: Path) -> None:
    async def run(running: dict[int, BrokerProcess], zookeeper: servers.ZooKeeper) -> None:
        async with traffic(running) as (known, made):
            zookeeper.kill()
            await made.goes_on(300)
            await asyncio.to_thread(zookeeper.again)
            node_id = await leader(known)
            await made.goes_on()
            running[node_id].kill()
            await made.goes_on()
            await made.check()

    with servers.zookeeper() as zookeeper, brokers(tmp_path, zookeeper.connect()) as running:
        asyncio.run(run(running, zookeeper))


def stored(folder: Path) -> dict[str, set[bytes]]:
    """What the replicas of each partition have in their files."""
    found: dict[str, set[bytes]] = {}
    for partition in range(PARTITIONS):
        name = f"orders-{partition}"
        replicas = [folder / str(node_id) / "data" / name for node_id in (1, 2, 3)]
        found[name] = {
            b"".join(each.read_bytes() for each in sorted(path.glob("*.log"))) for path in replicas
        }
    return found


@pytest.mark.slow(300)
def test_nothing_is_lost_or_doubled_whatever_befalls_the_cluster(tmp_path: Path, soaks: bool) -> None:
    """Kills, pauses, wiped disks, all brokers at once, and ZooKeeper away for a minute, in turn."""
    if not soaks:
        pytest.skip("runs for minutes: --soak")
    rng = random.Random(23)

    async def run(running: dict[int, BrokerProcess], zookeeper: servers.ZooKeeper) -> None:
        async with traffic(running) as (known, made):

            async def whole() -> None:
                async with asyncio.timeout(60):
                    while True:
                        wanted = MetadataRequest([MetadataRequestTopic(name="orders")], False)
                        with contextlib.suppress(KohortError):
                            answer = await known.request(None, ApiKey.METADATA, wanted)
                            if all(len(each.isr_nodes) == 3 for each in answer.topics[0].partitions):
                                return
                        await asyncio.sleep(0.1)

            for what in rng.sample(["kill", "pause", "wipe", "all", "zookeeper"] * 2, 10):
                await whole()
                node_id = await leader(known)
                if what == "zookeeper":
                    zookeeper.kill()
                    await asyncio.sleep(60)
                    await made.goes_on()
                    await asyncio.to_thread(zookeeper.again)
                elif what == "pause":
                    running[node_id].send(signal.SIGSTOP)
                    await made.goes_on()
                    running[node_id].send(signal.SIGCONT)
                elif what == "all":
                    for each in running.values():
                        each.kill()
                    await asyncio.gather(*(asyncio.to_thread(each.start) for each in running.values()))
                else:
                    running[node_id].kill()
                    if what == "wipe":
                        await made.goes_on()
                        shutil.rmtree(tmp_path / str(node_id) / "data")
                    await asyncio.to_thread(running[node_id].start)
                print(f"{what}: goes on after {await made.goes_on():.1f} s")
            await whole()
            await made.check()

    with servers.zookeeper() as zookeeper, brokers(tmp_path, zookeeper.connect()) as running:
        asyncio.run(run(running, zookeeper))
        for each in running.values():
            each.stop()
    assert {name: len(files) for name, files in stored(tmp_path).items()} == dict.fromkeys(
        stored(tmp_path), 1
    )
