"""How long nothing is written with acks=all while one link is cut: between two of a partition's leader, its
followers, the controller and ZooKeeper, both ways or one.

``python -m tests.torture.measured_links [--compare] [--only ROW,...]`` (Linux, root; Java, Maven once)

Three brokers of kohort and a ZooKeeper, and with ``--compare`` three of Apache Kafka that have a vote each,
every one on a node of its own. Clients reach all of them all the time. A link stays cut for ``--hold-s``:
what is as long as that ended with the cut. Both sides miss a broker, and a follower, after ``--session-ms``.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import _table
from benchmarks._brokers import SCRIPT
from benchmarks._clusters import APACHE_KAFKA, KOHORT, MORE_SETTINGS, NODES, ZOOKEEPER, Brokers
from benchmarks._command import Begun, Command, effort_of, publish, say
from benchmarks._rows import Figures, Metric, Part
from benchmarks.cluster import Silence, batch, client, controller_of, elect, new_topic, produce, whole
from tests.broker_process import BrokerProcess
from tests.torture.network import Network, network, problem

#: ZooKeeper's node, beside the brokers'.
STORE = 4
PORT, STORE_PORT = 9092, 2181
#: Each broker of Apache Kafka has its own: the script names folders by them.
KAFKA_PORTS = {node: 19_000 + 10 * node for node in NODES}
#: Of each cut: what is sent where is lost.
WAYS = {"both": ((0, 1), (1, 0)), "there": ((0, 1),), "back": ((1, 0),)}


@dataclass(frozen=True, slots=True)
class Effort:
    """How long a broker, and a follower, may be silent, and for how long a link stays cut."""

    session_ms: int = 4_000
    hold_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Row(Part):
    """A cut link. ``has_store``: one to ZooKeeper, which Apache Kafka has none of."""

    run: Callable[[Brokers, Network, Effort], Figures]
    has_store: bool


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    start: Callable[[Network, Effort], AbstractContextManager[Brokers]]


def cut(
    ends: tuple[str, str],
    lost: Sequence[tuple[int, int]],
    together: bool,
    brokers: Brokers,
    net: Network,
    effort: Effort,
) -> Figures:
    """``together``: the partition's leader is the controller."""
    return asyncio.run(_cut(ends, lost, together, brokers, net, effort))


async def _cut(
    ends: tuple[str, str],
    lost: Sequence[tuple[int, int]],
    together: bool,
    brokers: Brokers,
    net: Network,
    effort: Effort,
) -> Figures:
    async with client(brokers) as cluster:
        await whole(cluster)
        controller = await controller_of(cluster)
        leader = next(each for each in NODES if (each == controller) == together)
        follower = next(each for each in NODES if each not in (leader, controller))
        places = {"leader": leader, "controller": controller, "follower": follower, "ZooKeeper": STORE}
        topic = await new_topic(cluster, [leader])
        writing = Silence(lambda: produce(cluster, topic, batch(100)))
        await writing.begin()
        links = [(places[ends[sender]], places[ends[receiver]]) for sender, receiver in lost]
        for link in links:
            net.cut(*link)
        try:
            await asyncio.sleep(effort.hold_s)
        finally:
            for link in links:
                net.join(*link)
        silent_s = await writing.end()
        await whole(cluster, (topic,))
        await elect(cluster)
        await cluster.delete_topics([topic])
    return {"silent": silent_s}


def _rows() -> Iterator[Row]:
    apart = ("leader", "controller"), ("leader", "follower"), ("controller", "follower")
    stores = ("leader", "ZooKeeper"), ("controller", "ZooKeeper"), ("follower", "ZooKeeper")
    for together, pairs in (
        (False, apart),
        (True, (("leader", "follower"),)),
        (False, stores),
        (True, stores[:1]),
    ):
        for one, other in pairs:
            for way, lost in WAYS.items():
                name = f"{one}{'-is-controller' if together else ''}-{other}-{way}".lower()
                arrow = {"both": "and", "there": "to", "back": "from"}[way]
                title = f"{one}{', also controller,' if together else ''} {arrow} {other}"
                has_store = other == "ZooKeeper"
                # one that knows nothing of its session is missed at the store's next tick
                metric = Metric("silent", title, "s", 8.0 if has_store else 1.0, own=has_store, digits=2)
                yield Row(name, (metric,), partial(cut, (one, other), lost, together), has_store)


ROWS = tuple(_rows())


@contextmanager
def kohort(net: Network, effort: Effort) -> Iterator[Brokers]:
    """Each broker by ``kohort broker`` on its node, and a ZooKeeper server on another."""
    script = [*net.inside(STORE), sys.executable, str(ZOOKEEPER)]
    ticks = ("--set", "tickTime=1000", "--set", "clientPortAddress=0.0.0.0")
    with ExitStack() as stack:
        stack.callback(subprocess.run, [*script, "stop", str(STORE_PORT)], check=False, capture_output=True)
        subprocess.run([*script, "start", str(STORE_PORT), *ticks], check=True, capture_output=True)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        processes = {}
        for node in NODES:
            address = f"PLAINTEXT://{net.address(node)}:{PORT}"
            settings = {
                **MORE_SETTINGS,
                "node.id": str(node),
                "listeners": address,
                "advertised.listeners": address,
                "zookeeper.connect": f"{net.address(STORE)}:{STORE_PORT}",
                "zookeeper.session.timeout.ms": str(effort.session_ms),
                "replica.lag.time.max.ms": str(effort.session_ms),
            }
            place = folder / str(node)
            place.mkdir()
            processes[node] = BrokerProcess(
                place, data=place / "data", settings=settings, prefix=net.inside(node)
            )
            processes[node].launch()
            stack.callback(processes[node].kill)
        for process in processes.values():
            process.await_port()
        yield Brokers(
            KOHORT.name,
            KOHORT.name,
            dict.fromkeys(NODES, PORT),
            int,
            hosts={node: net.address(node) for node in NODES},
        )


@contextmanager
def apache_kafka(net: Network, effort: Effort) -> Iterator[Brokers]:
    """Each broker by the project's script on its node."""
    voters = ",".join(f"{node}@{net.address(node)}:{KAFKA_PORTS[node] + 1}" for node in NODES)
    cluster_id = "A" + secrets.token_urlsafe(16)[:21]
    with ExitStack() as stack:
        starting = []
        for node, port in KAFKA_PORTS.items():
            settings = {
                **MORE_SETTINGS,
                "node.id": str(node),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://0.0.0.0:{port},CONTROLLER://0.0.0.0:{port + 1}",
                "advertised.listeners": f"PLAINTEXT://{net.address(node)}:{port}",
                "broker.session.timeout.ms": str(effort.session_ms),
                "broker.heartbeat.interval.ms": str(min(effort.session_ms // 3, 2_000)),
                "replica.lag.time.max.ms": str(effort.session_ms),
            }
            words = [*net.inside(node), "env", f"KAFKA_CLUSTER_ID={cluster_id}", str(SCRIPT)]
            stack.callback(subprocess.run, [*words, "stop", str(port)], check=False, capture_output=True)
            told = [f"{key}={value}" for key, value in settings.items()]
            starting.append(
                subprocess.Popen([*words, "start", str(port), *told], stdout=subprocess.PIPE, text=True)
            )
        said = [each.communicate()[0] for each in starting]
        found = [re.search(r"(Apache Kafka \S+) ready", text) for text in said]
        if not all(found) or found[0] is None:
            raise RuntimeError(f"Apache Kafka did not start: {said}")
        yield Brokers(
            APACHE_KAFKA.name,
            found[0][1],
            dict(KAFKA_PORTS),
            int,
            hosts={node: net.address(node) for node in NODES},
        )


def measure(
    contenders: Sequence[Contender], options: argparse.Namespace
) -> tuple[dict[str, dict[str, list[Figures]]], list[str]]:
    """Every row in each round; one cluster after the other."""
    effort = effort_of(options, Effort())
    rows = [row for row in ROWS if row.name in options.wanted]
    measured: dict[str, dict[str, list[Figures]]] = {
        each.name: {row.name: [] for row in rows} for each in contenders
    }
    versions = []
    for each in contenders:
        with network((*NODES, STORE)) as net, each.start(net, effort) as brokers:
            versions.append(brokers.version)
            for number in range(options.rounds):
                for row in rows:
                    if row.has_store and each.name == APACHE_KAFKA.name:
                        continue
                    figures = row.run(brokers, net, effort)
                    measured[each.name][row.name].append(figures)
                    silent = f"silent for {figures['silent']:.2f} s"
                    say(f"round {number + 1}  {row.name:42} {each.name:12} {silent}")
    return measured, versions


def main(argv: list[str] | None = None) -> int:
    command = Command(
        "cut_links",
        __doc__,
        [row.name for row in ROWS],
        compare="with three brokers of Apache Kafka; needs Java, Maven once",
        rounds=1,
    )
    command.prog = "python -m tests.torture.measured_links"
    command.takes(Effort())
    options = command.parse(argv)
    wrong = problem()
    if wrong is not None:
        command.error(wrong)
    begun = Begun()
    contenders = [Contender(KOHORT.name, kohort)]
    if options.compare:
        contenders.insert(0, Contender(APACHE_KAFKA.name, apache_kafka))
    measured, versions = measure(contenders, options)
    rows = [row for row in ROWS if row.name in options.wanted]
    told = (
        "3 replicas, min.insync.replicas 2; a broker and a follower are missed after "
        f"{options.session_ms / 1_000:g} s, a link stays cut for {options.hold_s:g} s"
    )
    facts = _table.environment(versions) | {"settings of both": told} | begun.facts()
    table = _table.table(measured, rows, KOHORT.name, [each.name for each in contenders[:-1]])
    publish(table, measured, facts, options, "cut-links")
    return 0


if __name__ == "__main__":
    sys.exit(main())
