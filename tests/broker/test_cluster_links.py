"""Links between brokers that are slow, go one way or flap, and brokers that are killed meanwhile: nothing
that was acknowledged is lost, nothing is there twice, and the replicas agree afterwards.

Covers: broker/replicas/fetcher.py, broker/partitions/leadership.py.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as ClientError

from kohort.client.connection import Connection
from kohort.client.metadata import Address
from tests.broker.clusters import Nodes, cluster, in_sync
from tests.broker.replicas.test_replicas import replica, values

PARTITIONS = 3


class Link:
    """What one broker sends another one, and what comes back, through a socket between."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self._open = {"there": asyncio.Event(), "back": asyncio.Event()}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.heal()

    def heal(self) -> None:
        self.delay_s = 0.0
        for way in self._open.values():
            way.set()

    def block(self, *ways: str) -> None:
        """Let nothing through these ways: ``there``, ``back``."""
        for way in ways:
            self._open[way].clear()

    async def through(self, target: int) -> int:
        """A port behind which another one is."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
            except OSError:
                writer.close()
                return
            for way, source, sink in (("there", reader, far_writer), ("back", far_reader, writer)):
                task = asyncio.create_task(self._pump(way, source, sink))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        self._server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _pump(self, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                await asyncio.sleep(self.delay_s)
                await self._open[way].wait()
                writer.write(data)
                await writer.drain()
        writer.close()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Links:
    """The links of a cluster, by who asks whom."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.all = {(a, b): Link() for a in (1, 2, 3) for b in (1, 2, 3) if a != b}
        self._ports: dict[tuple[int, int], int] = {}

    async def lay(self, number: int) -> None:
        """Have a broker that was started use its links."""
        part = self._nodes.brokers[number].cluster
        assert part is not None

        async def connect(node_id: int) -> Connection:
            pair = number, node_id
            if pair not in self._ports:
                self._ports[pair] = await self.all[pair].through(self._nodes.brokers[node_id].port)
            return await Connection.open(
                Address("127.0.0.1", self._ports[pair]), client_id=f"broker-{number}", timeout_ms=1_000
            )

        part.connect = part.control._connect = connect  # type: ignore[method-assign]

    def heal(self) -> None:
        for each in self.all.values():
            each.heal()


@asynccontextmanager
async def linked(data: Path) -> AsyncIterator[tuple[Nodes, Links]]:
    async with cluster(data=data, replica_lag_time_max_ms=700, replica_fetch_wait_max_ms=50) as nodes:
        links = Links(nodes)
        for number in nodes.brokers:
            await links.lay(number)
        try:
            yield nodes, links
        finally:
            links.heal()
            for each in links.all.values():
                await each.close()


class Senders:
    """An idempotent producer a partition, which sends one value after the other."""

    def __init__(self, nodes: Nodes) -> None:
        self._bootstrap = nodes.bootstrap()
        self.acknowledged: list[set[bytes]] = [set() for _ in range(PARTITIONS)]
        self._enough = False
        self._tasks = [asyncio.create_task(self._send(each)) for each in range(PARTITIONS)]

    async def _send(self, partition: int) -> None:
        number = 0
        async with AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            enable_idempotence=True,
            retry_backoff_ms=20,
            request_timeout_ms=20_000,
            metadata_max_age_ms=500,
        ) as sender:
            while not self._enough:
                value = b"%d-%d" % (partition, number)
                number += 1
                with suppress(ClientError):
                    await sender.send_and_wait("orders", value, partition=partition)
                    self.acknowledged[partition].add(value)

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    async def stop(self) -> None:
        self._enough = True
        await asyncio.gather(*self._tasks)


async def strike(nodes: Nodes, links: Links, rng: random.Random) -> None:
    leader = nodes.state("orders", rng.randrange(PARTITIONS)).leader
    other = rng.choice([each for each in (1, 2, 3) if each != leader])
    of_leader = [link for pair, link in links.all.items() if leader in pair]
    match rng.randrange(6):
        case 0:  # all of them are slow
            for link in links.all.values():
                link.delay_s = 0.05
        case 1:  # a follower's requests arrive, and it is not answered
            links.all[other, leader].block("back")
        case 2:  # a follower's requests do not arrive
            links.all[other, leader].block("there")
        case 3:  # nobody reaches the leader, which reaches others
            for pair, link in links.all.items():
                if pair[1] == leader:
                    link.block("there", "back")
        case 4:  # the links of the leader flap
            for _ in range(4):
                for link in of_leader:
                    link.block(rng.choice(["there", "back"]))
                await asyncio.sleep(0.1)
                links.heal()
                await asyncio.sleep(0.05)
        case _:  # its links go one way while it is killed
            if leader in nodes.brokers:
                links.all[leader, other].block("back")
                await nodes.kill(leader)
                await nodes.start(leader)
                await links.lay(leader)
    # longer and shorter than a follower may lag
    await asyncio.sleep(rng.choice([0.1, 0.5, 1.2]))
    links.heal()


async def run(data: Path, seed: int, strikes: int) -> None:
    rng = random.Random(seed)
    async with linked(data) as (nodes, links):
        await nodes.create("orders", PARTITIONS, {"min_insync_replicas": 2})
        senders = Senders(nodes)
        for _ in range(strikes):
            await strike(nodes, links, rng)
            enough = senders.count + 20
            await nodes.until(lambda enough=enough: senders.count >= enough)  # type: ignore[misc]
        await senders.stop()
        await in_sync(nodes)
        for partition, acknowledged in enumerate(senders.acknowledged):
            logs = [replica(nodes, each, index=partition) for each in nodes.brokers]
            await nodes.until(lambda logs=logs: len({each.log_end_offset for each in logs}) == 1)  # type: ignore[misc]
            first, *others = map(values, logs)
            assert all(each == first for each in others)
            found = Counter(first)
            assert acknowledged <= found.keys(), "nothing acknowledged is lost"
            assert set(found.values()) == {1}, "nothing is there twice"


@pytest.mark.slow(10)
def test_bad_links_lose_nothing_and_double_nothing(tmp_path: Path, soaks: bool) -> None:
    for seed in range(40 if soaks else 1):
        asyncio.run(asyncio.wait_for(run(tmp_path / str(seed), seed, 5), 120))
        shutil.rmtree(tmp_path / str(seed))
