"""The faults of a cluster: brokers by what they do, links, disks, clocks, sessions and ZooKeeper itself."""

# ruff: noqa: ARG002 - faults share one interface

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence

from kohort.protocol import ApiKey
from kohort.protocol.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from kohort.protocol.messages.elect_leaders import TopicPartitions
from tests.broker.wire import Wire
from tests.torture.cluster_fault import MISSED_S, ClusterFault, OfBroker
from tests.torture.cluster_machine import COORDINATORS, NODES, ClusterMachine, Node
from tests.torture.episode import PARTITIONS, TOPIC
from tests.torture.metadata_faults import (
    EntriesRemoved,
    EntriesRemovedMeanwhile,
    EntriesSetBack,
    OlderCopy,
    ZooKeeperGone,
    ZooKeeperServer,
)
from tests.torture.nemesis import Fault


class Kill(OfBroker):
    """SIGKILL, and started again before or after it is missed."""

    has_process = True

    def __init__(self, role: str) -> None:
        super().__init__(role)
        self.name = f"SIGKILL of {role}"

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        node.kill()

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        node.start()


class KillMany(ClusterFault):
    """SIGKILL for two brokers or for all, which are started one after the other."""

    has_process = True
    longest_s = 1.5 * MISSED_S

    def __init__(self, count: int) -> None:
        self.name = "SIGKILL of all brokers at once" if count == len(NODES) else f"SIGKILL of {count} brokers"
        self._count = count
        self._hit: list[Node] = []
        self._pauses: list[float] = []

    def begin(self, machine: ClusterMachine, rng: random.Random) -> None:
        free = [node for node in machine.nodes.values() if not node.busy]
        self._hit = rng.sample(free, min(self._count, len(free)))
        self._pauses = [rng.choice((0.0, rng.uniform(0, MISSED_S))) for _ in self._hit]
        for node in self._hit:
            node.busy = True
            node.kill()

    def end(self, machine: ClusterMachine) -> None:
        for node, pause_s in zip(self._hit, self._pauses, strict=True):
            time.sleep(pause_s)
            node.start()
            node.busy = False


class Pause(OfBroker):
    """SIGSTOP, shorter or longer than sessions last, and SIGCONT."""

    name = "SIGSTOP"
    has_process = True

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        if node.broker.alive:
            node.broker.send(signal.SIGSTOP)

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        if node.broker.alive:
            node.broker.send(signal.SIGCONT)


class Stop(OfBroker):
    """SIGTERM: others lead first. If it hangs, it is killed."""

    name = "SIGTERM"
    has_process = True

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        serves = node.is_ready
        code = node.broker.stop()
        if code and serves:
            text = f"broker {node.node_id} ended by SIGTERM with {code}\n{node.broker.log[-1_500:]}"
            machine.ended.append(text)
        node.tap.broker_died()

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        node.start()


class Wipe(OfBroker):
    """SIGKILL, and everything on the disk is gone; only where all other replicas are in sync."""

    name = "disk wiped"
    has_process = alone = True

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        if not machine.become_whole():
            self.node, node.busy = None, False
            return
        node.kill()
        # it may have become the only one in sync just before, which is seen a moment later
        time.sleep(0.5)
        image = machine.watch.image
        if not any(state.isr == (node.node_id,) for topic in image.topics() for state in topic.partitions):
            node.wipe()

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        node.start()


class FullDisk(OfBroker):
    """No room for anything."""

    name = "disk full"

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        node.may_end = True
        if node.broker.alive:
            node.disk.fill(node.process_id)

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        node.disk.clear(node.process_id)
        machine.tend()
        node.may_end = False


class FullDisks(ClusterFault):
    """One broker's disk or several are full for as long as people take to notice, and then emptied: nothing
    ends, and everything is served again without a restart.
    """

    name = "disks full for longer, then emptied"
    alone = True
    shortest_s, longest_s = 10.0, 30.0

    def begin(self, machine: ClusterMachine, rng: random.Random) -> None:
        self._full = rng.sample(list(machine.nodes.values()), rng.randint(1, len(NODES)))
        for node in self._full:
            if node.broker.alive:
                node.disk.fill(node.process_id)

    def end(self, machine: ClusterMachine) -> None:
        for node in self._full:
            node.disk.clear(node.process_id)
        if not machine.become_whole():
            machine.ended.append(f"not served again though there is room: {machine.states()}")


class FailingDisk(OfBroker):
    """Each fsync of the log is an error; the broker is killed and started again afterwards."""

    name = "fsync fails"
    has_process = True

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        node.control.fail_disk(True)

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        node.kill()
        node.control.fail_disk(False)
        node.start()


class SlowDisk(OfBroker):
    """Each write takes 1-100 ms longer."""

    name = "disk slow"

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        node.control.slow_disk(rng.choice((1, 10, 100)))

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        node.control.slow_disk(0)


class ClockJump(OfBroker):
    """The wall clock jumps by up to an hour, and back."""

    name = "clock jump"

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        node.control.set_clock(rng.choice((-3000, -60, 60, 3600)))

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        node.control.set_clock(0)


class Expire(OfBroker):
    """Its session with ZooKeeper ends while it runs on."""

    name = "ZooKeeper session expired"
    shortest_s, longest_s = 0.0, 1.0

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        machine.expire(node)

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        pass


class WithoutZooKeeper(OfBroker):
    """It does not reach ZooKeeper, and everybody else."""

    name = "cut off from ZooKeeper"

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        node.zookeeper.hold(True)

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        node.zookeeper.hold(False)
        node.zookeeper.cut()


class SlowZooKeeper(OfBroker):
    """What it asks ZooKeeper, and what it is told, takes up to 1 s longer."""

    name = "ZooKeeper slow"

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        node.zookeeper.delay_s = rng.uniform(0.1, 1.0)

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        node.zookeeper.delay_s = 0.0


class FromClients(OfBroker):
    """Clients do not reach it: connections are cut, or nothing passes, or slowly."""

    name = "cut off from clients"

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        match rng.randrange(3):
            case 0:
                node.clients.cut()
            case 1:
                node.clients.hold(True)
            case _:
                node.clients.delay_s = rng.uniform(0.05, 0.4)

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        node.clients.delay_s = 0.0
        node.clients.hold(False)
        node.clients.cut()


class Links(ClusterFault):
    """Links between brokers, each one way, that lose everything."""

    longest_s = 1.5 * MISSED_S

    def __init__(self, name: str, draw: Callable[[random.Random], Iterable[tuple[int, int]]]) -> None:
        self.name = name
        self._draw = draw
        self._lost: list[tuple[int, int]] = []

    def __str__(self) -> str:
        return f"{self.name} {self._lost}"

    def begin(self, machine: ClusterMachine, rng: random.Random) -> None:
        self._lost = list(self._draw(rng))
        for link in self._lost:
            machine.network.cut(*link)

    def end(self, machine: ClusterMachine) -> None:
        for link in self._lost:
            machine.network.join(*link)


class FlappingLinks(Links):
    """They come and go all the time."""

    def begin(self, machine: ClusterMachine, rng: random.Random) -> None:
        for _ in range(8):
            super().begin(machine, rng)
            time.sleep(rng.uniform(0.05, 0.3))
            super().end(machine)
            time.sleep(rng.uniform(0.05, 0.2))


class SlowLinks(OfBroker):
    """What it sends goes through a narrow line."""

    name = "slow links"

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        machine.network.slow_down(node.node_id)

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        machine.network.speed_up(node.node_id)


class LossyLinks(ClusterFault):
    """Packets that some brokers send are lost at random, to whomever: brokers, ZooKeeper, clients."""

    name = "links lose packets"
    longest_s = 3 * MISSED_S

    def __str__(self) -> str:
        return f"{self.name} {[(node, f'{100 * self._share:.0f} %') for node in self._losing]}"

    def begin(self, machine: ClusterMachine, rng: random.Random) -> None:
        self._losing = rng.sample(NODES, rng.randint(1, len(NODES)))
        self._share = rng.choice((0.01, 0.05, 0.2, 0.5))
        for node in self._losing:
            machine.network.lose(node, self._share)

    def end(self, machine: ClusterMachine) -> None:
        for node in self._losing:
            machine.network.lose(node, 0)


class Isolate(OfBroker):
    """It reaches nobody, and nobody reaches it."""

    name = "cut off from everybody"

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        for link in links_of(node.node_id):
            machine.network.cut(*link)
        node.zookeeper.hold(True)
        node.clients.hold(True)

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        for link in links_of(node.node_id):
            machine.network.join(*link)
        for proxy in (node.zookeeper, node.clients):
            proxy.hold(False)
            proxy.cut()


class CutOffThen(OfBroker):
    """A leader reaches no other broker, goes on, and then is killed or loses its session: what it alone has
    may not have been acknowledged.
    """

    has_process = True

    def __init__(self, *, killed: bool) -> None:
        super().__init__("a leader")
        self.name = f"a leader cut off, then {'SIGKILL' if killed else 'its session expired'}"
        self._killed = killed

    def harm(self, machine: ClusterMachine, node: Node, rng: random.Random) -> None:
        for link in links_of(node.node_id):
            machine.network.cut(*link)
        time.sleep(rng.uniform(0.3, 2.0))
        if self._killed:
            node.kill()
        else:
            machine.expire(node)

    def heal(self, machine: ClusterMachine, node: Node) -> None:
        for link in links_of(node.node_id):
            machine.network.join(*link)
        node.start()


class Ask(ClusterFault):
    """An operator asks for something that moves leaders. Whether it is done is no matter."""

    shortest_s, longest_s = 0.0, 1.0

    def begin(self, machine: ClusterMachine, rng: random.Random) -> None:
        with (
            contextlib.suppress(OSError, EOFError),
            Wire(rng.choice(machine.bootstrap.split(",")), timeout_s=5.0) as wire,
        ):
            self.ask(wire, rng)

    def end(self, machine: ClusterMachine) -> None:
        pass

    @abstractmethod
    def ask(self, wire: Wire, rng: random.Random) -> None: ...


class Elect(Ask):
    """The first replica of each partition is to lead."""

    name = "preferred leaders elected"

    def ask(self, wire: Wire, rng: random.Random) -> None:
        wire.call(ApiKey.ELECT_LEADERS, 2, election_type=0, topic_partitions=None, timeout_ms=3_000)


TOPICS = (
    (TOPIC, PARTITIONS),
    ("target", 3),
    ("__consumer_offsets", COORDINATORS),
    ("__transaction_state", COORDINATORS),
)


class Reassign(Ask):
    """Some partitions get their replicas in another order, and others lead them."""

    name = "replicas reassigned"

    def ask(self, wire: Wire, rng: random.Random) -> None:
        topic, partitions = rng.choice(TOPICS)
        numbers = rng.sample(range(partitions), rng.randint(1, partitions))
        wanted = [ReassignablePartition(number, rng.sample(NODES, len(NODES))) for number in numbers]
        fields = {"timeout_ms": 3_000, "topics": [ReassignableTopic(topic, wanted)]}
        wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, **fields)
        chosen = [TopicPartitions(topic, numbers)]
        wire.call(ApiKey.ELECT_LEADERS, 2, election_type=0, topic_partitions=chosen, timeout_ms=3_000)


class Leave(ClusterFault):
    """Some partitions are taken from a broker, and given back to it: it copies them again."""

    name = "replicas removed and added"
    alone = True
    shortest_s, longest_s = 0.0, 2.0

    def begin(self, machine: ClusterMachine, rng: random.Random) -> None:
        self._rng = rng
        self._topic, partitions = rng.choice(TOPICS)
        self._numbers = rng.sample(range(partitions), rng.randint(1, partitions))
        gone = rng.choice(NODES)
        self._assign(machine, [each for each in NODES if each != gone] if machine.become_whole() else NODES)

    def end(self, machine: ClusterMachine) -> None:
        deadline = time.monotonic() + 60
        while not self._is_given(machine):
            assert time.monotonic() < deadline, "replicas cannot be given back"
            self._assign(machine, NODES)
            time.sleep(0.5)

    def _is_given(self, machine: ClusterMachine) -> bool:
        found = machine.watch.image.topic(self._topic)
        assert found is not None
        return all(len(found.partitions[number].replicas) == len(NODES) for number in self._numbers)

    def _assign(self, machine: ClusterMachine, replicas: Sequence[int]) -> None:
        draw = self._rng.sample
        wanted = [ReassignablePartition(each, draw(replicas, len(replicas))) for each in self._numbers]
        fields = {"timeout_ms": 3_000, "topics": [ReassignableTopic(self._topic, wanted)]}
        with (
            contextlib.suppress(OSError, EOFError),
            Wire(self._rng.choice(machine.bootstrap.split(",")), timeout_s=5.0) as wire,
        ):
            wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, **fields)


def links_of(node_id: int) -> list[tuple[int, int]]:
    """All links of a broker with the others, both ways."""
    return [link for link in itertools.permutations(NODES, 2) if node_id in link]


def _one(rng: random.Random) -> list[tuple[int, int]]:
    first, second = rng.sample(NODES, 2)
    return [(first, second)]


def _both(rng: random.Random) -> list[tuple[int, int]]:
    first, second = rng.sample(NODES, 2)
    return [(first, second), (second, first)]


def _node(rng: random.Random) -> list[tuple[int, int]]:
    return links_of(rng.choice(NODES))


def _deaf(rng: random.Random) -> list[tuple[int, int]]:
    """Nobody hears one broker, which hears everybody; or the other way round."""
    node_id, way = rng.choice(NODES), rng.randrange(2)
    return [link for link in links_of(node_id) if link[way] == node_id]


FAULTS: Sequence[ClusterFault] = (
    Kill("a leader"),
    Kill("a coordinator"),
    Kill("the controller"),
    Kill("a broker"),
    KillMany(2),
    KillMany(3),
    Pause(),
    Pause("a coordinator"),
    Stop(),
    Stop("the controller"),
    Wipe(),
    FullDisk(),
    FullDisks(),
    FailingDisk(),
    SlowDisk(),
    ClockJump(),
    Expire(),
    Expire("the controller"),
    WithoutZooKeeper(),
    SlowZooKeeper(),
    FromClients(),
    Links("link cut one way", _one),
    Links("link cut", _both),
    Links("cut off from brokers", _node),
    Links("brokers cut off one way", _deaf),
    FlappingLinks("links flap", _node),
    SlowLinks(),
    LossyLinks(),
    Isolate(),
    CutOffThen(killed=True),
    CutOffThen(killed=False),
    ZooKeeperGone(8.0),
    ZooKeeperServer(),
    EntriesRemoved(),
    EntriesSetBack(),
    EntriesRemovedMeanwhile(),
    OlderCopy(),
    Elect(),
    Reassign(),
    Leave(),
)
#: Once a run: it takes as long as all others of ten turns.
LONG: ClusterFault = ZooKeeperGone(60.0)


def may_overlap(first: Fault[ClusterMachine], second: Fault[ClusterMachine]) -> bool:
    """A broker is not started while ZooKeeper is away, and two faults do not share a line or a control."""
    assert isinstance(first, ClusterFault)
    assert isinstance(second, ClusterFault)
    if first.alone or second.alone or type(first) is type(second):
        return False
    kinds = {type(first), type(second)}
    if first.is_of_metadata or second.is_of_metadata:
        return not (first.has_process or second.has_process or kinds & {ZooKeeperGone})
    if ZooKeeperGone in kinds and ZooKeeperServer in kinds:
        return False
    # what one of them ends, the other would end too
    links = kinds & {Isolate, Links, FlappingLinks, CutOffThen}
    lines = kinds & {Isolate, WithoutZooKeeper, FromClients}
    if len(links) > 1 or len(lines) > 1:
        return False
    processes = first.has_process or second.has_process
    return not (processes and kinds & {FullDisk, KillMany})
