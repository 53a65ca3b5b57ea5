"""Three brokers, each on a network node and a disk of its own, and a ZooKeeper: what can be broken.

Clients reach each broker through a proxy, and each broker reaches ZooKeeper through one. Brokers reach each
other over a network of namespaces.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException
from kazoo.handlers.threading import KazooTimeoutError

from kohort.client.zookeeper import ZooKeeperSettings
from kohort.cluster import ClusterImage, ClusterView, open_zookeeper
from kohort.offsets_topic import partition_for
from tests.broker_process import QUICK_SETTINGS, READY, BrokerProcess
from tests.cluster.servers import ZooKeeper, zookeeper
from tests.torture.broken_machine import Control
from tests.torture.disk import SIZE_MIB, DataDisk, data_disk
from tests.torture.entries import CONFIGS, STATES, TOPICS, read_entries
from tests.torture.history import History
from tests.torture.network import Network, network
from tests.torture.proxy import Proxy
from tests.torture.tap import Tap

NODES = (1, 2, 3)
ZOOKEEPERS = 3
SESSION_MS = 4_000
COORDINATORS = 3
CLIENTS_PORT, BROKERS_PORT = 9092, 9094
SETTINGS = {
    **QUICK_SETTINGS,
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "replica.lag.time.max.ms": "3000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": str(COORDINATORS),
    "transaction.state.log.num.partitions": str(COORDINATORS),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "leader.imbalance.check.interval.seconds": "5",
    "log.segment.bytes": "262144",
    "log.flush.interval.ms": "1000",
    "inter.broker.listener.name": "BROKERS",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
}
WHOLE_S = 120.0
#: A partition's folder, also that of a stray.
_PARTITION = re.compile(r"(.+-\d+)(?:\.[0-9a-f]+-stray)?")


class SessionTap:
    """Knows the ZooKeeper session of whoever connects: the first answer on a connection names it."""

    def __init__(self) -> None:
        self.session: tuple[int, bytes] | None = None

    def connection(self) -> SessionConnection:
        return SessionConnection(self)


class SessionConnection:
    def __init__(self, tap: SessionTap) -> None:
        self._tap = tap
        self._answer = b""

    def asked(self, data: bytes) -> None:
        pass

    def answered(self, data: bytes) -> None:
        if len(self._answer) < 40:
            # length, version, timeout, session id, length of the password, password
            self._answer = (self._answer + data)[:40]
            if len(self._answer) == 40 and any(self._answer[12:20]):
                self._tap.session = int.from_bytes(self._answer[12:20], signed=True), self._answer[24:40]


@dataclass(slots=True)
class Node:
    """A broker and what is around it. ``busy``: a fault has its process, and nobody else is to touch it.
    ``may_end``: its disk is full, or was a moment ago.
    """

    node_id: int
    broker: BrokerProcess
    clients: Proxy
    zookeeper: Proxy
    disk: DataDisk
    control: Control
    tap: Tap
    sessions: SessionTap
    busy: bool = False
    may_end: bool = False

    def kill(self) -> None:
        if self.broker.alive:
            self.broker.kill()
        self.tap.broker_died()

    def start(self) -> None:
        """Start it unless it runs; it serves later."""
        if not self.broker.alive:
            self.broker.launch()

    @property
    def is_ready(self) -> bool:
        """Whether it has served."""
        return self.broker.alive and READY in (self.broker.folder / "stdout").read_text(errors="replace")

    @property
    def process_id(self) -> int:
        assert self.broker.process is not None, "the broker was never started"
        return self.broker.process.pid

    def partitions(self) -> set[str]:
        """The partitions that have a folder, also those that are strays."""
        names = (path.name for path in self.disk.folder.iterdir() if path.is_dir())
        return {found[1] for name in names if (found := _PARTITION.fullmatch(name)) is not None}

    def wipe(self) -> None:
        """Remove everything from the disk."""
        for path in self.disk.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


@dataclass(slots=True)
class ClusterMachine:
    """What can be broken. ``ended`` tells of brokers that ended though nobody had told them to, ``removed``
    of files that are gone.
    """

    nodes: dict[int, Node]
    network: Network
    ensemble: ZooKeeper
    watch: Watch
    #: Where copies are kept.
    folder: Path
    ended: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    #: Entries of a moment when all replicas were in sync.
    older_entries: dict[str, bytes] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{node.clients.port}" for node in self.nodes.values())

    def tend(self) -> None:
        """Start brokers again that have ended by themselves, as a supervisor would."""
        for node in self.nodes.values():
            if not node.busy and not node.broker.alive:
                process = node.broker.process
                code = None if process is None else process.returncode
                # one that does not serve yet may find no ZooKeeper
                if READY in node.broker.log and not node.may_end:
                    text = f"broker {node.node_id} ended by itself with {code}\n{node.broker.log[-1_500:]}"
                    self.ended.append(text)
                node.tap.broker_died()
                node.start()

    def is_whole(self) -> bool:
        """Whether every broker is there, and every replica in sync."""
        image = self.watch.image
        # the image has a broker that was killed until it is missed
        there = len(image.brokers) == len(self.nodes) and all(node.is_ready for node in self.nodes.values())
        led = (state.leader in image.brokers for topic in image.topics() for state in topic.partitions)
        return there and not self.watch.unstored and all(led) and self.all_in_sync()

    def become_known(self, seconds: float = WHOLE_S) -> bool:
        """Wait until every broker serves and one of them is controller, at most so long; whether that is so:
        brokers know then what ZooKeeper has.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if all(node.is_ready for node in self.nodes.values()) and self.watch.image.controller_id in NODES:
                return not self.watch.unstored
            self.tend()
            time.sleep(0.05)
        return False

    def all_in_sync(self) -> bool:
        return all(
            len(state.isr) == len(state.replicas) == len(self.nodes) and not state.adding
            for topic in self.watch.image.topics()
            for state in topic.partitions
        )

    def states(self) -> str:
        """What is not whole, in words."""
        image = self.watch.image
        there = {node.node_id: node.is_ready for node in self.nodes.values()}
        states = {
            f"{topic.name}-{number}": state
            for topic in image.topics()
            for number, state in enumerate(topic.partitions)
            if state.leader not in image.brokers or len(state.isr) < len(self.nodes) or state.adding
        }
        return f"{image}, {list(image.brokers)}, ready {there}, not stored {self.watch.unstored}: {states}"

    def become_whole(self, seconds: float = WHOLE_S) -> bool:
        """Wait until it is, at most so long; whether it is."""
        end = time.monotonic() + seconds
        while not self.is_whole() and time.monotonic() < end:
            self.tend()
            time.sleep(0.05)
        return self.is_whole()

    # -- metadata --------------------------------------------------------------------------------------------

    @contextmanager
    def metadata(self) -> Iterator[KazooClient]:
        """A person's client of the cluster's entries in ZooKeeper."""
        client = KazooClient(f"{self.ensemble.hosts}/torture", timeout=SESSION_MS / 1_000)
        end = time.monotonic() + WHOLE_S
        while True:
            try:
                client.start(WHOLE_S)
                break
            except ConnectionLoss:
                # a server that has just come back may close its first connections
                client.stop()
                if time.monotonic() > end:
                    raise
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def keep_entries(self) -> None:
        """Keep the entries as they are, if all replicas are in sync."""
        if self.is_whole():
            with self.metadata() as client:
                self.older_entries = read_entries(client, TOPICS, STATES, CONFIGS)

    def copy_metadata(self) -> None:
        """Copy ZooKeeper's data, as its servers have them while they run."""
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._data(1), self._copy)

    def restore_metadata(self) -> None:
        """Put the copy in the place of ZooKeeper's data. No broker runs meanwhile."""
        self.watch.close()
        servers = range(1, self.ensemble.servers + 1)
        for server in servers:
            self.ensemble.kill(server)
        for server in servers:
            shutil.rmtree(self._data(server))
            shutil.copytree(self._copy, self._data(server))
        self.ensemble.all_again()
        self.watch = self.watch.again()

    @property
    def _copy(self) -> Path:
        return self.folder / "copy"

    def _data(self, server: int) -> Path:
        return self.ensemble.folder / str(server) / "data" / "version-2"

    def stop_all(self) -> None:
        """SIGKILL for all brokers, which no client reaches from before that on."""
        for node in self.nodes.values():
            node.busy = True
            node.clients.hold(True)
        for node in self.nodes.values():
            node.kill()

    def start_all(self) -> None:
        """Start all brokers; clients reach them again."""
        for node in self.nodes.values():
            node.start()
            node.clients.hold(False)
            node.clients.cut()
            node.busy = False

    def expire(self, node: Node) -> None:
        """End the session of a broker at ZooKeeper, which does not tell it first."""
        if node.sessions.session is None:
            return
        client = KazooClient(self.ensemble.hosts, timeout=SESSION_MS / 1_000, client_id=node.sessions.session)
        with contextlib.suppress(KazooException, KazooTimeoutError):
            client.start(5)
        client.stop()
        client.close()


class Watch:
    """The cluster as ZooKeeper has it, read in a thread of its own; who coordinates groups goes into the
    history. ``conflicts`` tells of leader epochs that two brokers had.
    """

    def __init__(self, connect: str, history: History) -> None:
        self.image = ClusterImage("", -1, {})
        self.conflicts: list[str] = []
        #: Topics that ZooKeeper lacks, or has in an older state.
        self.unstored: list[str] = []
        self._connect = connect
        self._terms_before = 0
        self._settings = ZooKeeperSettings(connect, connection_timeout_ms=30_000)
        self._history = history
        self._leaders: dict[tuple[str, int, int], int] = {}
        self._coordinators: dict[int, int] = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        work = self._run()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(work,), daemon=True)
        self._thread.start()
        assert self._ready.wait(60), "ZooKeeper cannot be watched"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._enough.set)
        self._thread.join()

    def again(self) -> Watch:
        """Another one in its place, which knows nothing of what this one saw of the cluster: ZooKeeper may
        have lost it.
        """
        made = Watch(self._connect, self._history)
        made.conflicts += self.conflicts
        made._terms_before = self.terms
        return made

    @property
    def terms(self) -> int:
        """How many terms of leaders there were."""
        return self._terms_before + len(self._leaders)

    def leader(self, topic: str, partition: int) -> int:
        """Node id; -1 where there is none."""
        found = self.image.topic(topic)
        return -1 if found is None else found.partitions[partition].leader

    async def _run(self) -> None:
        self._enough = asyncio.Event()
        store = await open_zookeeper(self._settings)
        changed = asyncio.Event()
        view = ClusterView(store, changed.set)
        self._take(view)
        self._ready.set()
        ending = asyncio.create_task(self._enough.wait())
        while not ending.done():
            change = asyncio.create_task(changed.wait())
            await asyncio.wait([ending, change], return_when=asyncio.FIRST_COMPLETED)
            changed.clear()
            self._take(view)
        change.cancel()
        store.close()

    def _take(self, view: ClusterView) -> None:
        before, self.image = self.image, view.image
        self.unstored = [topic.name for topic in view.unstored()]
        for topic in self.image.topics():
            if topic is before.topic(topic.name):
                continue
            for number, state in enumerate(topic.partitions):
                key = topic.name, number, state.leader_epoch
                leader = self._leaders.setdefault(key, state.leader)
                # it stays the leader of its epoch while it is away, and leads nothing
                if -1 not in (leader, state.leader) and leader != state.leader:
                    self.conflicts.append(f"{key}: {leader} and {state.leader}")
                if topic.name == "__consumer_offsets" and self._coordinators.get(number) != state.leader:
                    self._coordinators[number] = state.leader
                    self._turn(number, state.leader)

    def _turn(self, partition: int, leader: int) -> None:
        tick = self._history.tick()
        for name, group in list(self._history.groups.items()):
            if partition_for(name, COORDINATORS) == partition:
                group.tenures.append((tick, leader))


@contextmanager
def cluster_machine(
    folder: Path,
    seed: int,
    history: History,
    disk_mib: int = SIZE_MIB,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[ClusterMachine]:
    """A cluster that serves; ``more`` are settings beside those of this file. The groups of the history are
    to be known before.
    """
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network(NODES))
        ensemble = stack.enter_context(zookeeper(ZOOKEEPERS))
        rng = random.Random(seed)
        nodes: dict[int, Node] = {}
        watch = Watch(f"{ensemble.hosts}/torture", history)
        made = ClusterMachine(nodes, net, ensemble, watch, folder)
        stack.callback(lambda: made.watch.close())
        for node_id in NODES:
            place = (folder / str(node_id), node_id, disk_mib)
            nodes[node_id] = _node(stack, *place, net, ensemble, history, rng, more)
            nodes[node_id].start()
        deadline = time.monotonic() + WHOLE_S
        while len(watch.image.brokers) < len(nodes):
            assert time.monotonic() < deadline, "".join(node.broker.log for node in nodes.values())
            time.sleep(0.05)
        yield made


def _node(
    stack: contextlib.ExitStack,
    folder: Path,
    node_id: int,
    disk_mib: int,
    net: Network,
    ensemble: ZooKeeper,
    history: History,
    rng: random.Random,
    more: Mapping[str, str],
) -> Node:
    folder.mkdir(parents=True)
    address = net.address(node_id)
    tap, sessions, control = Tap(history, node_id), SessionTap(), Control(folder / "control")
    clients = Proxy(lambda: CLIENTS_PORT, tap=tap, seed=rng.randrange(1 << 30), target_host=address)
    stack.callback(clients.close)
    ports = [int(host.rpartition(":")[2]) for host in ensemble.hosts.split(",")]
    seen = random.Random(rng.randrange(1 << 30))
    to_zookeeper = Proxy(lambda: seen.choice(ports), tap=sessions, seed=rng.randrange(1 << 30), host=net.home)
    stack.callback(to_zookeeper.close)
    disk = stack.enter_context(data_disk(folder / "data", disk_mib))
    broker = BrokerProcess(
        folder,
        data=disk.folder,
        settings={
            **SETTINGS,
            **more,
            "node.id": str(node_id),
            "listeners": f"CLIENTS://{address}:{CLIENTS_PORT},BROKERS://{address}:{BROKERS_PORT}",
            "advertised.listeners": f"CLIENTS://127.0.0.1:{clients.port},BROKERS://{address}:{BROKERS_PORT}",
            "zookeeper.connect": f"{net.home}:{to_zookeeper.port}/torture",
        },
        program=(str(Path(__file__).with_name("broken_machine.py")), str(control.path)),
        prefix=net.inside(node_id),
    )
    made = Node(node_id, broker, clients, to_zookeeper, disk, control, tap, sessions)
    stack.callback(made.kill)
    return made
