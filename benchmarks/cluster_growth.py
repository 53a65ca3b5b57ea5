"""Three brokers and a ZooKeeper with more and more topics: what a start, a lost broker, a lost ZooKeeper and
a new broker cost.

``python -m benchmarks.cluster_growth [COUNT ...]``: a line of figures, in seconds, for each number of topics.

Each topic has one partition with three replicas. Brokers reach ZooKeeper over a link that the benchmark cuts.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

from kohort.client.cluster import Cluster
from kohort.protocol import ApiKey, ErrorCode, KafkaError, KohortError
from kohort.protocol.messages.api_versions import ApiVersionsRequest
from kohort.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)

from ._clusters import NODES, Brokers, kohort, running
from ._command import Begun, say
from ._link import Link
from ._rows import Figures
from .cluster import Silence, batch, client, controller_of, elect, produce

COUNTS = (100, 1_000, 10_000)
#: Topics of one CreateTopics.
AT_ONCE = 250
WAIT_S = 900.0
POLL_S = 0.05


def topic(number: int) -> str:
    return f"growth-{number}"


class Stored:
    """What ZooKeeper has of the partitions: asked there, as answers of brokers about all of them are work."""

    def __init__(self, port: int) -> None:
        from kazoo.client import KazooClient

        self._client = KazooClient(f"127.0.0.1:{port}")
        self._client.start(30)

    def close(self) -> None:
        self._client.stop()
        self._client.close()

    def _states(self) -> list[dict[str, Any]]:
        entries = self._client.get_children("/kohort/partitions")
        values = [json.loads(self._client.get(f"/kohort/partitions/{each}")[0]) for each in entries]
        return [
            state
            for value in values
            for partitions in value["topics"].values()
            for state in partitions.values()
        ]

    def all_led(self, without: int = -1) -> bool:
        return all(state["leader"] not in (-1, without) for state in self._states())

    def all_in_sync(self, replicas: int = len(NODES)) -> bool:
        return all(len(state["isr"]) == replicas for state in self._states())

    def brokers(self) -> int:
        return len(self._client.get_children("/brokers/ids"))


async def until(is_so: Callable[[], bool]) -> float:
    """The seconds that it took until it was so."""
    begun = time.monotonic()
    async with asyncio.timeout(WAIT_S):
        while not await asyncio.to_thread(is_so):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(POLL_S)
    return time.monotonic() - begun


async def create(cluster: Cluster, first: int, last: int) -> None:
    for start in range(first, last, AT_ONCE):
        wanted = [
            CreatableTopic(
                topic(number),
                -1,
                -1,
                [CreatableReplicaAssignment(0, [NODES[(number + each) % len(NODES)] for each in range(3)])],
            )
            for number in range(start, min(start + AT_ONCE, last))
        ]
        body = CreateTopicsRequest(wanted, timeout_ms=60_000)
        # a controller that moves may have created some, or all
        there: set[int] = {0}
        for _ in range(10):
            answer = await cluster.request(None, ApiKey.CREATE_TOPICS, body, timeout_ms=70_000)
            codes = {each.error_code for each in answer.topics}
            if codes <= there:
                break
            there.add(ErrorCode.TOPIC_ALREADY_EXISTS)
        else:
            raise KafkaError(max(codes), "topics could not be created")


async def probe(cluster: Cluster, node_id: int) -> None:
    await cluster.request(node_id, ApiKey.API_VERSIONS, ApiVersionsRequest())


async def silences(
    brokers: Brokers, leaders: list[int], asked: list[int], meanwhile: Callable[[], Awaitable[None]]
) -> tuple[float, float]:
    """The longest time without a success: of Produce to a topic of each leader, and of asking a broker."""
    clients = [client(brokers) for _ in range(len(leaders) + len(asked))]
    for each in clients:
        await each.__aenter__()
    try:
        producing = []
        for each, leader in zip(clients, leaders, strict=False):
            name = topic(leader - 1 + len(NODES) * 5)
            await each.metadata([name])
            producing.append(Silence(partial(produce, each, name, batch(100))))
        asking = [
            Silence(partial(probe, each, node))
            for each, node in zip(clients[len(leaders) :], asked, strict=True)
        ]
        await asyncio.gather(*(each.begin() for each in (*producing, *asking)))
        await meanwhile()
        produced = await asyncio.gather(*(each.end() for each in producing))
        answered = await asyncio.gather(*(each.end() for each in asking))
        return max(produced), max(answered)
    finally:
        for each in clients:
            with suppress(KohortError):
                await each.__aexit__(None, None, None)


async def grow(brokers: Brokers, link: Link, stored: Stored, first: int, count: int) -> Figures:
    """The figures of a number of topics, of which some are there.

    ``killed``, ``cut`` (ZooKeeper is away for 2 s), ``lost`` (for 60 s) and ``new_produce``: the longest time
    without a Produce; with ``_stall``: without an answer of a broker that runs. ``led``, ``..._whole``,
    ``back``, ``new``: until all partitions have leaders, or all replicas are in sync.
    """
    figures: Figures = {}

    def tell(**found: float) -> None:
        figures.update(found)
        say(f"{count:6,} topics  " + "  ".join(f"{key} {value:.2f}" for key, value in found.items()))

    begun = time.monotonic()
    async with client(brokers) as cluster:
        await create(cluster, first, count)
        tell(create=time.monotonic() - begun)
        await until(stored.all_in_sync)
        # what was killed for fewer topics leads again
        await elect(cluster)
        active = await controller_of(cluster)
    victim = next(each for each in NODES if each != active)
    others = [each for each in NODES if each != victim]

    await asyncio.sleep(3)

    async def killed() -> None:
        begun = time.monotonic()
        brokers.send(victim, signal.SIGKILL)
        while running(brokers.pids[victim]):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(POLL_S)
        await until(partial(stored.all_led, victim))
        tell(led=time.monotonic() - begun)

    silent, asked = await silences(brokers, [victim], others, killed)
    tell(killed=silent, killed_stall=asked)
    begun = time.monotonic()
    await asyncio.to_thread(brokers.start, victim)
    tell(back_serves=time.monotonic() - begun)
    await until(stored.all_in_sync)
    tell(back=time.monotonic() - begun)

    for name, seconds in (("cut", 2.0), ("lost", 60.0)):

        async def cut(name: str = name, seconds: float = seconds) -> None:
            link.cut()
            await asyncio.sleep(seconds)
            link.mend()
            begun = time.monotonic()
            await asyncio.sleep(1)
            await until(lambda: stored.brokers() == len(NODES) and stored.all_led())
            await until(stored.all_in_sync)
            tell(**{f"{name}_whole": time.monotonic() - begun})
            await asyncio.sleep(5)

        silent, asked = await silences(brokers, [1, 2, 3], [*NODES], cut)
        tell(**{name: silent, f"{name}_stall": asked})

    brokers.send(victim, signal.SIGTERM)
    while running(brokers.pids[victim]):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(POLL_S)
    await asyncio.to_thread(shutil.rmtree, brokers.folder(victim))

    async def joins() -> None:
        begun = time.monotonic()
        await asyncio.to_thread(brokers.start, victim)
        tell(new_serves=time.monotonic() - begun)
        await until(stored.all_in_sync)
        tell(new=time.monotonic() - begun)

    silent, asked = await silences(brokers, [others[0]], others, joins)
    tell(new_produce=silent, new_stall=asked)

    for each in NODES:
        brokers.send(each, signal.SIGTERM)
    while any(running(brokers.pids[each]) for each in NODES):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(POLL_S)
    begun = time.monotonic()
    await asyncio.to_thread(brokers.start, *NODES)
    await until(lambda: stored.brokers() == len(NODES) and stored.all_led())
    tell(start=time.monotonic() - begun)
    await until(stored.all_in_sync)
    tell(start_whole=time.monotonic() - begun)
    return figures


def main(argv: list[str] | None = None) -> int:
    counts = sorted(int(each) for each in (sys.argv[1:] if argv is None else argv)) or COUNTS
    begun = Begun()
    with kohort(0, linked=True) as brokers:
        assert brokers.link is not None
        stored = Stored(brokers.metadata_port)
        try:
            first = 0
            for count in counts:
                figures = asyncio.run(grow(brokers, brokers.link, stored, first, count))
                first = count
                print(count, json.dumps({k: round(v, 2) for k, v in figures.items()}), flush=True)
            for key, value in begun.facts().items():
                print(f"{key}: {value}")
        finally:
            stored.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
