"""Three brokers in processes of their own, on a real ZooKeeper: killed by SIGKILL, all of them in the end.

Covers: broker/_cluster.py, broker/_replicas.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from kohort.client.cluster import Cluster
from kohort.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.broker_process import QUICK_SETTINGS, BrokerProcess
from tests.cluster import servers

SETTINGS = {
    **QUICK_SETTINGS,
    "zookeeper.session.timeout.ms": "2000",
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
def brokers(folder: Path, connect: str) -> Iterator[dict[int, BrokerProcess]]:
    made: dict[int, BrokerProcess] = {}
    try:
        for node_id in (1, 2, 3):
            own = folder / str(node_id)
            own.mkdir()
            settings = {**SETTINGS, "zookeeper.connect": connect, "node.id": str(node_id)}
            made[node_id] = BrokerProcess(own, data=own / "data", settings=settings)
            made[node_id].start()
        yield made
    finally:
        for each in made.values():
            if each.alive:
                each.kill()


@contextlib.asynccontextmanager
async def client(running: dict[int, BrokerProcess]) -> AsyncIterator[Cluster]:
    async with Cluster(",".join(each.bootstrap for each in running.values())) as made:
        yield made


async def leaders(known: Cluster, topic: str) -> dict[int, int]:
    found = (await known.metadata([topic])).topics[topic].partitions
    return {number: each.leader for number, each in found.items()}


@pytest.mark.slow(60)
def test_nothing_acknowledged_is_lost_when_processes_are_killed(
    tmp_path: Path, zookeeper: servers.ZooKeeper
) -> None:
    async def run(running: dict[int, BrokerProcess]) -> None:
        bootstrap = ",".join(each.bootstrap for each in running.values())
        async with client(running) as known:
            wanted = CreatableTopic(
                "orders", PARTITIONS, 3, configs=[CreatableTopicConfig("min.insync.replicas", "2")]
            )
            answer = await known.request(None, 19, CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
            assert [each.error_code for each in answer.topics] == [0]
            sender = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                enable_idempotence=True,
                retry_backoff_ms=50,
                request_timeout_ms=10_000,
                metadata_max_age_ms=1_000,
            )
            reader = AIOKafkaConsumer(
                "orders",
                bootstrap_servers=bootstrap,
                group_id="g",
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                retry_backoff_ms=50,
                session_timeout_ms=10_000,
                heartbeat_interval_ms=500,
                request_timeout_ms=11_000,
                metadata_max_age_ms=1_000,
            )
            acknowledged: list[bytes] = []
            got: list[bytes] = []
            done = asyncio.Event()

            async def send(partition: int) -> None:
                number = 0
                while not done.is_set():
                    value = b"%d-%d" % (partition, number)
                    await sender.send_and_wait("orders", value, partition=partition)
                    acknowledged.append(value)
                    number += 1
                    await asyncio.sleep(0.002)

            async def read() -> None:
                while not done.is_set() or len(got) < len(acknowledged):
                    for records in (await reader.getmany(timeout_ms=200)).values():
                        got.extend(record.value for record in records)
                    await reader.commit()

            async def more(count: int) -> None:
                enough = len(acknowledged) + count, len(got) + count
                await servers.until(lambda: len(acknowledged) >= enough[0] and len(got) >= enough[1])

            async with sender, reader:
                tasks = [asyncio.create_task(send(each)) for each in range(PARTITIONS)]
                tasks.append(asyncio.create_task(read()))
                await more(100)
                generation = reader._coordinator.generation
                for _ in range(3):
                    node_id = (await leaders(known, "orders"))[0]
                    running[node_id].kill()
                    begun = time.monotonic()
                    await more(100)
                    print(f"broker {node_id} killed: goes on after {time.monotonic() - begun:.1f} s")
                    await asyncio.to_thread(running[node_id].start)
                    await more(100)
                assert reader._coordinator.generation == generation
                for each in running.values():
                    each.kill()
                await asyncio.gather(*(asyncio.to_thread(each.start) for each in running.values()))
                await more(100)
                done.set()
                await asyncio.gather(*tasks)
                committed = sum(
                    [await reader.committed(TopicPartition("orders", n)) or 0 for n in range(PARTITIONS)]
                )
            assert committed == len(got)
            assert sorted(got) == sorted(acknowledged)

    with brokers(tmp_path, zookeeper.connect()) as running:
        asyncio.run(run(running))
