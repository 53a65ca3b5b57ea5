"""The demo on three brokers with ZooKeeper. In each stage the broker that matters most there is killed."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

from children import Child, ChildFailedError, Children
from data import PARTITIONS, SERVICES_GROUP, TOPIC
from etl import run_etl
from lags import show_lags
from report import run_report
from screen import Screen
from services import run_services
from store import Store

from kohort.client import BrokerConnectionError
from kohort.consumer import Cluster
from kohort.protocol import KafkaError, TopicPartition

ZOOKEEPER = Path(__file__).resolve().parents[2] / "scripts" / "zookeeper.py"
#: The cluster notices a killed broker after this time.
SESSION_MS = 4_000
#: Brokers are killed after these fractions of the flights.
LEADER_AT, COORDINATOR_AT = 0.3, 0.6
READY_S = 60.0

SETTINGS = {
    "group.initial.rebalance.delay.ms": "1500",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
    "zookeeper.session.timeout.ms": str(SESSION_MS),
}


class Brokers:
    """Three brokers, each a process with its own port."""

    def __init__(self, screen: Screen, children: Children, zookeeper: str, folder: Path) -> None:
        self._screen = screen
        self._children = children
        self._zookeeper = zookeeper
        self._folder = folder
        self._ports = {number: free_port() for number in (1, 2, 3)}
        self._running: dict[int, Child] = {}
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    async def start(self, number: int) -> None:
        words = [f"--set={name}={value}" for name, value in SETTINGS.items()]
        self._running[number] = await self._children.command(
            f"broker-{number}",
            *(sys.executable, "-m", "kohort", "broker", "--port", self._ports[number]),
            *(
                "--zookeeper",
                self._zookeeper,
                "--node-id",
                number,
                "--data",
                self._folder / f"broker-{number}",
            ),
            *words,
        )

    async def until(self, is_so: Callable[[Cluster], Awaitable[bool]]) -> None:
        """Wait until ``is_so`` returns True. Raises ChildFailedError if that takes too long."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            with contextlib.suppress(BrokerConnectionError, KafkaError):
                async with Cluster(self.bootstrap, default_api_timeout_ms=2_000) as cluster:
                    if await is_so(cluster):
                        return
            for child in self._running.values():
                child.check_alive()
            await asyncio.sleep(0.2)
        raise next(iter(self._running.values())).failure(
            f"and others have not become ready in {READY_S:.0f} s"
        )

    async def all_there(self) -> None:
        async def look(cluster: Cluster) -> bool:
            return len((await cluster.metadata([])).nodes) == len(self._ports)

        await self.until(look)

    async def kill(self, what: str, number: int) -> None:
        """Kill a broker, and start it again after the others have run without it for a while."""
        self._running.pop(number).kill()
        self._screen.line(f"broker {number}, {what}, killed with SIGKILL")
        await asyncio.sleep(2 * SESSION_MS / 1_000)
        await self.start(number)
        await self.all_there()
        self._screen.line(f"broker {number} is back")

    async def kill_leader(self) -> None:
        async with Cluster(self.bootstrap) as cluster:
            await cluster.metadata([TOPIC])
            leader = cluster.leader(TopicPartition(TOPIC, 0))
        assert leader is not None, "the topic is being written"
        await self.kill(f"which leads {TOPIC}-0", leader)

    async def kill_coordinator(self) -> None:
        async with Cluster(self.bootstrap) as cluster:
            number = (await cluster.coordinator(SERVICES_GROUP)).node_id
        await self.kill(f"which coordinates group {SERVICES_GROUP}", number)

    async def kill_controller(self) -> None:
        async with Cluster(self.bootstrap) as cluster:
            number = (await cluster.metadata([])).controller_id
        await self.kill("the controller", number)


async def run_cluster_stages(flights: int, folder: Path, logs: Path) -> bool:
    """Run all stages; return whether the figures are equal. Raises the errors of the stages."""
    began = time.monotonic()
    screen = Screen()
    database = folder / "delays.sqlite"
    screen.headline(
        f"1 of 4  Three brokers and a ZooKeeper, and {flights:,} flights replayed into topic {TOPIC}"
    )
    async with Children(logs) as children, running_zookeeper(logs) as zookeeper:
        brokers = Brokers(screen, children, f"{zookeeper}/demo", folder)
        await asyncio.gather(*(brokers.start(number) for number in (1, 2, 3)))
        await brokers.all_there()
        screen.line(f"brokers serve on {brokers.bootstrap}, ZooKeeper on {zookeeper}")
        async with Cluster(brokers.bootstrap) as cluster:
            await cluster.create_topics({TOPIC: PARTITIONS})
        await _replay(screen, children, brokers, flights)
        screen.headline("2 of 4  Three services of group delays keep every flight's delay in SQLite")
        store = Store(database)
        services = run_services(screen, children, brokers.bootstrap, database, flights)
        await _beside(services, lambda: store.count() >= flights * COORDINATOR_AT, brokers.kill_coordinator)
        store.close()
        screen.headline("3 of 4  A Spark job of group etl writes the flights into Parquet")
        etl = run_etl(screen, children, brokers.bootstrap, folder, flights)
        written = folder / "parquet"
        await _beside(etl, lambda: any(written.glob("batch=*")), brokers.kill_controller)
        await show_lags(screen, brokers.bootstrap)
    equal = await run_report(screen, database, folder / "parquet", flights)
    screen.line(f"done in {time.monotonic() - began:.0f} s")
    return equal


async def _replay(screen: Screen, children: Children, brokers: Brokers, flights: int) -> None:
    sent = 0

    async def replay() -> None:
        nonlocal sent
        child = await children.start("replay", "replay.py", brokers.bootstrap, flights, "--own")
        with screen.progress("flights replayed", flights) as update:
            async for event in child.events():
                sent = event["sent"]
                update(sent)
        await child.ended()

    await _beside(replay(), lambda: sent >= flights * LEADER_AT, brokers.kill_leader)


async def _beside(
    work: Awaitable[None], is_due: Callable[[], bool], strike: Callable[[], Awaitable[None]]
) -> None:
    """Run ``work`` and meanwhile, as soon as ``is_due`` returns True, ``strike``."""

    async def wait_and_strike() -> None:
        while not is_due():  # noqa: ASYNC110 - nothing signals a change of a count in a database
            await asyncio.sleep(0.05)
        await strike()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_awaited(work))
        tasks.create_task(wait_and_strike())


async def _awaited(work: Awaitable[None]) -> None:
    await work


@asynccontextmanager
async def running_zookeeper(logs: Path) -> AsyncIterator[str]:
    """Run a ZooKeeper server on a free port until the block ends; yields its address."""
    port = free_port()

    async def command(word: str) -> int:
        with (logs / "zookeeper.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, str(ZOOKEEPER), word, str(port), stdout=log, stderr=log
            )
            return await process.wait()

    try:
        if await command("start"):
            raise ChildFailedError((logs / "zookeeper.log").read_text(errors="replace").strip())
        yield f"127.0.0.1:{port}"
    finally:
        await command("stop")


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
