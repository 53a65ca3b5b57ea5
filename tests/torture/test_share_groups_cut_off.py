"""A share group on three real brokers, each in a network namespace, and a ZooKeeper: leaders are cut off from
their share coordinator and from ZooKeeper, a share coordinator ends with writes under way. What was answered
as done never comes back, nothing is lost, and the group goes on in bounded time.

Covers: broker/share/state_persister.py, client/share_state.py.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kohort.client.cluster import Cluster
from kohort.offsets_topic import partition_for
from kohort.protocol import SharePartitionKey
from tests.torture.cluster_machine import NODES, SESSION_MS, ClusterMachine, cluster_machine
from tests.torture.history import History
from tests.torture.network import problem
from tests.torture.share_traffic import PARTITIONS, QUEUE, SHARE_SETTINGS, TOPIC, ShareTraffic

pytestmark = [
    pytest.mark.slow(90),
    pytest.mark.timeout(600),
    pytest.mark.skipif(problem() is not None, reason=str(problem())),
]

_STATES = "__share_group_state"
#: For how long somebody is cut off: longer than sessions, and than a broker that copies may lag.
_CUT_S = 2 * SESSION_MS / 1_000
#: In which time a share partition goes on when the network is whole again, on a busy machine, too.
_AGAIN_S = 45.0


class Scene:
    """A cluster whose network can be cut, and the traffic on it."""

    def __init__(self, machine: ClusterMachine, cluster: Cluster, traffic: ShareTraffic) -> None:
        self.machine, self.traffic = machine, traffic
        self._cluster = cluster

    def leader(self, partition: int) -> int:
        return self.machine.watch.leader(TOPIC, partition)

    def coordinator(self, partition: int) -> int:
        """The broker that stores the state of a share partition."""
        topic, states = self._cluster.topic(TOPIC), self.machine.watch.image.topic(_STATES)
        assert topic is not None
        assert topic.topic_id is not None
        assert states is not None
        key = str(SharePartitionKey(QUEUE, topic.topic_id, partition))
        return states.partitions[partition_for(key, len(states.partitions))].leader

    @property
    def controller(self) -> int:
        return self.machine.watch.image.controller_id

    def reached_over(self, *link: int) -> list[int]:
        """The partitions whose leader and share coordinator are the two ends of a link."""
        return [
            each for each in range(PARTITIONS) if {self.leader(each), self.coordinator(each)} == set(link)
        ]

    def find_apart(self) -> tuple[int, int, int]:
        """A partition whose leader does not store its state itself, with both brokers; if there is one,
        neither of them is controller.
        """
        places = ((each, self.leader(each), self.coordinator(each)) for each in range(PARTITIONS))
        apart = [each for each in places if each[1] != each[2] and -1 not in each]
        if not apart:
            # all states of a topic's partitions may happen to be where the partitions are
            pytest.skip("every leader is the share coordinator of what it leads")
        return min(apart, key=lambda each: self.controller in each[1:])

    async def heal(self, *partitions: int) -> None:
        """Have a whole network again; the share partitions go on, and then all replicas are in sync."""
        for link in itertools.permutations(NODES, 2):
            self.machine.network.join(*link)
        took_s = max(await asyncio.gather(*map(self.traffic.partition_goes_on, partitions)))
        print(f"the share partitions {partitions} go on after {took_s:.1f} s")
        assert took_s < _AGAIN_S
        assert await asyncio.to_thread(self.machine.become_whole), self.machine.states()


@asynccontextmanager
async def scene(machine: ClusterMachine) -> AsyncIterator[Scene]:
    """Traffic that goes on; in the end all of it is accepted, and nothing was lost or came back."""
    async with Cluster(machine.bootstrap) as cluster, ShareTraffic(machine.bootstrap, confluent=1) as traffic:
        await cluster.metadata([TOPIC])
        await traffic.goes_on()
        assert await asyncio.to_thread(machine.become_whole), machine.states()
        yield Scene(machine, cluster, traffic)
        await traffic.check()
        print(traffic.summary())


def play(folder: Path, body: Callable[[Scene], Awaitable[None]]) -> None:
    async def run(machine: ClusterMachine) -> None:
        async with scene(machine) as made:
            await body(made)

    with cluster_machine(folder, 1, History(), more=SHARE_SETTINGS) as machine:
        assert machine.become_known()
        asyncio.run(run(machine))
        assert not machine.ended


def test_a_leader_that_is_cut_off_from_its_share_coordinator(tmp_path: Path) -> None:
    async def body(at: Scene) -> None:
        _, leader, coordinator = at.find_apart()
        # the other end of the link may lead a partition whose share coordinator is at this end
        standing, controller = at.reached_over(leader, coordinator), at.controller
        for link in ((leader, coordinator), (coordinator, leader)):
            at.machine.network.cut(*link)
        await asyncio.sleep(_CUT_S)
        if controller not in (leader, coordinator):
            # what cannot be stored is not done: the others go on. Who is cut off from the controller has
            # replicas that it cannot put out of sync, and holds up whatever it leads
            await at.traffic.goes_on(but=standing)
        await at.heal(*standing)

    play(tmp_path, body)


def test_a_leader_that_is_cut_off_from_zookeeper(tmp_path: Path) -> None:
    async def body(at: Scene) -> None:
        leader = at.leader(0)
        proxy = at.machine.nodes[leader].zookeeper
        proxy.hold(True)
        # its session ends, and another broker leads; meanwhile it may be asked, and must give nothing
        took_s = await at.traffic.partition_goes_on(0)
        async with asyncio.timeout(_AGAIN_S):
            while at.leader(0) in (leader, -1):  # noqa: ASYNC110 - whoever looks from outside has no event
                await asyncio.sleep(0.05)
        took_s += await at.traffic.partition_goes_on(0)
        assert took_s < _AGAIN_S
        proxy.hold(False)
        proxy.cut()
        await at.heal(0)

    play(tmp_path, body)


def test_a_share_coordinator_that_ends_while_writes_wait(tmp_path: Path) -> None:
    """What it has written nobody else has, and it can tell nobody; then it is killed."""

    async def body(at: Scene) -> None:
        partition, _, coordinator = at.find_apart()
        node = at.machine.nodes[coordinator]
        for other in NODES:
            if other != coordinator:
                at.machine.network.cut(coordinator, other)
        await asyncio.sleep(1)
        node.busy = True
        node.kill()
        took_s = await at.traffic.partition_goes_on(partition)
        assert took_s < _AGAIN_S
        node.start()
        node.busy = False
        await at.heal(partition)

    play(tmp_path, body)
