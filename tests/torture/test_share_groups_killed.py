"""A share group on three brokers in processes of their own, on a real ZooKeeper. Its leaders and coordinators
are killed, stand still, stop and move: what was answered as done never comes back, and nothing is lost.

Covers: broker/share/led_partition.py, broker/coordinators/share_state.py.
Covers: broker/coordinators/share_groups.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kohort.client.cluster import Cluster
from kohort.offsets_topic import partition_for
from kohort.protocol import ApiKey, KohortError, SharePartitionKey
from kohort.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kohort.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.test_cluster_killed import brokers
from tests.broker_process import BrokerProcess
from tests.cluster import servers
from tests.reliability_report import table, write_section
from tests.torture.share_traffic import (
    PACE_S,
    QUEUE,
    SHARE_SETTINGS,
    SOAKED_PACE_S,
    TOPIC,
    ShareTraffic,
)

STATES, GROUPS = "__share_group_state", "__consumer_offsets"
_AWAY_S = 10.0
_TOPICS = {"leader": TOPIC, "share coordinator": STATES, "group coordinator": GROUPS}


class Faults:
    """Brokers by what they do for the group, and what happens to them."""

    def __init__(self, running: dict[int, BrokerProcess], cluster: Cluster, traffic: ShareTraffic) -> None:
        self._running, self._cluster, self.traffic = running, cluster, traffic

    async def find(self, part: str) -> int:
        """The broker that has this part for the first partition."""
        name = _TOPICS[part]
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(KohortError):
                    found = (await self._cluster.metadata({name, TOPIC})).topics[name]
                    leader = found.partitions[self._index(part, len(found.partitions))].leader
                    if leader in self._running:
                        return leader
                await asyncio.sleep(0.1)

    def _index(self, part: str, count: int) -> int:
        if part == "leader":
            return 0
        topic = self._cluster.topic(TOPIC)
        assert topic is not None
        assert topic.topic_id is not None
        key = QUEUE if part == "group coordinator" else str(SharePartitionKey(QUEUE, topic.topic_id, 0))
        return partition_for(key, count)

    async def kill(self, part: str) -> None:
        broker = self._running[await self.find(part)]
        broker.kill()
        await self.goes_on(f"{part} killed")
        await asyncio.to_thread(broker.start)
        await self.whole()

    async def stand_still(self, part: str) -> None:
        """It stands still for longer than its session lasts, and does not know of that when it goes on."""
        broker = self._running[await self.find(part)]
        broker.send(signal.SIGSTOP)
        await self.goes_on(f"{part} stands still")
        broker.send(signal.SIGCONT)
        await self.goes_on(f"{part} goes on")
        await self.whole()

    async def stop(self, part: str) -> None:
        """It gives its leaderships away, and leads again what it is preferred for when it is back."""
        broker = self._running[await self.find(part)]
        await asyncio.to_thread(broker.stop)
        await self.goes_on(f"{part} stopped")
        await asyncio.to_thread(broker.start)
        await self.whole()
        await self.elect()

    async def elect(self) -> None:
        wanted = [
            TopicPartitions(name, list(range(len(found.partitions))))
            for name in _TOPICS.values()
            if (found := (await self._cluster.metadata([name])).topics.get(name)) is not None
        ]
        with contextlib.suppress(KohortError):
            await self._cluster.request(None, ApiKey.ELECT_LEADERS, ElectLeadersRequest(0, wanted, 10_000))
        await self.goes_on("leaders elected")

    async def kill_all(self) -> None:
        for each in self._running.values():
            each.kill()
        await asyncio.gather(*(asyncio.to_thread(each.start) for each in self._running.values()))
        await self.goes_on("all killed")
        await self.whole()

    async def lose_store(self, zookeeper: servers.ZooKeeper) -> None:
        """The metadata store is away for longer than sessions last; nobody leads anything else meanwhile."""
        zookeeper.kill()
        await asyncio.sleep(_AWAY_S)
        await self.goes_on("the metadata store is away")
        await asyncio.to_thread(zookeeper.again)
        await self.goes_on("the metadata store is back")
        await self.whole()

    async def replace_member(self) -> None:
        await self.traffic.replace_member()

    def summary(self) -> str:
        return self.traffic.summary()

    async def goes_on(self, what: str) -> None:
        print(f"{what}: goes on after {await self.traffic.goes_on():.1f} s")

    async def whole(self) -> None:
        """Wait until all replicas are in sync: the next fault may take any broker."""
        async with asyncio.timeout(90):
            while not await self._is_whole():  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.1)

    async def _is_whole(self) -> bool:
        wanted = MetadataRequest([MetadataRequestTopic(name=name) for name in _TOPICS.values()], False)
        with contextlib.suppress(KohortError):
            answer = await self._cluster.request(None, ApiKey.METADATA, wanted)
            return all(
                topic.partitions and all(len(each.isr_nodes) == 3 for each in topic.partitions)
                for topic in answer.topics
            )
        return False


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[servers.ZooKeeper]:
    with servers.zookeeper() as running:
        yield running


@contextlib.asynccontextmanager
async def faults(
    running: dict[int, BrokerProcess], *, pace_s: float = PACE_S, **members: int
) -> AsyncIterator[Faults]:
    """Traffic on a cluster, which goes on."""
    bootstrap = ",".join(each.bootstrap for each in running.values())
    async with Cluster(bootstrap) as cluster:
        async with asyncio.timeout(60):
            while len((await cluster.metadata([])).nodes) < len(running):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.1)
        async with ShareTraffic(bootstrap, pace_s=pace_s, **members) as traffic:
            await traffic.goes_on()
            yield Faults(running, cluster, traffic)
            await traffic.check()
            print(traffic.summary())


@pytest.mark.slow(60)
def test_what_is_done_never_comes_back_and_nothing_is_lost_when_brokers_end_or_stand_still(
    tmp_path: Path, zookeeper: servers.ZooKeeper
) -> None:
    async def run(running: dict[int, BrokerProcess]) -> None:
        async with faults(running, wire=3, confluent=1) as happen:
            await happen.whole()
            await happen.kill("leader")
            await happen.kill("share coordinator")
            await happen.stand_still("leader")
            await happen.stop("group coordinator")

    with brokers(tmp_path, zookeeper.connect(), SHARE_SETTINGS) as running:
        asyncio.run(run(running))


@pytest.mark.slow(600)
@pytest.mark.timeout(14_400)
def test_through_long_churn_nothing_comes_back_and_nothing_is_lost(
    tmp_path: Path, soaks: bool, pytestconfig: pytest.Config
) -> None:
    """Brokers in each part killed, stopped, standing still, all of them killed, the metadata store away, and
    members that are killed, for as long as ``--soak`` says.
    """
    if not soaks:
        pytest.skip("runs for minutes: --soak")
    until = time.monotonic() + float(pytestconfig.getoption("--soak"))
    rng = random.Random(38)
    caused: Counter[str] = Counter()

    async def run(running: dict[int, BrokerProcess], zookeeper: servers.ZooKeeper) -> str:
        async with faults(running, pace_s=SOAKED_PACE_S, wire=4, confluent=2) as happen:
            await happen.whole()
            while time.monotonic() < until:
                kind = rng.choice(("kill", "kill", "stand_still", "stop", "kill_all", "lose_store"))
                part = rng.choice(sorted(_TOPICS))
                match kind:
                    case "kill_all":
                        await happen.kill_all()
                    case "lose_store":
                        await happen.lose_store(zookeeper)
                    case _:
                        await getattr(happen, kind)(part)
                        kind = f"{kind} of the {part}"
                caused[kind.replace("_", " ")] += 1
                await happen.replace_member()
        return happen.summary()

    with servers.zookeeper() as zookeeper, brokers(tmp_path, zookeeper.connect(), SHARE_SETTINGS) as running:
        told = asyncio.run(run(running, zookeeper))
    report = pytestconfig.getoption("--report")
    if report is not None:
        text = f"{_INTRO}\n\n{table(('what', 'times'), [*sorted(caused.items())])}\n\nIn the end: {told}."
        write_section(Path(report), "share groups, killed", text)


_INTRO = """## Share groups on a cluster of real processes

Three brokers, a ZooKeeper, and a share group of six members, two of them confluent-kafka's, which accept,
release and reject records or keep them until their locks end. After each fault a member was killed. Nothing
whose acknowledgement was answered came back, no delivery count went back, and in the end nothing was left:
`tests/torture/test_share_groups_killed.py`."""
