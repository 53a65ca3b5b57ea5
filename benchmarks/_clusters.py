"""Three brokers of a cluster as processes: kohort's on a ZooKeeper, Apache Kafka's on their quorum."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from kohort import __version__

from ._brokers import ENVIRONMENT, ROOT, SCRIPT, SETTINGS, first_answer, free_port, kept
from ._link import Link

NODES = (1, 2, 3)
ZOOKEEPER = ROOT / "scripts" / "zookeeper.py"
END_S = 60.0

#: What all brokers are told besides.
MORE_SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "10",
    "offsets.topic.replication.factor": "3",
    # leaders move when the benchmark says so
    "auto.leader.rebalance.enable": "false",
}


@dataclass(slots=True)
class Brokers:
    """Brokers by node id; ``begin`` starts the process of one on the data that it has."""

    name: str
    version: str
    ports: dict[int, int]
    begin: Callable[[int], int]
    pids: dict[int, int] = field(default_factory=dict)
    #: The data folder of a broker.
    folder: Callable[[int], Path] = lambda _: Path()
    #: Where brokers serve that are not on 127.0.0.1.
    hosts: Mapping[int, str] = field(default_factory=dict)
    #: Where their ZooKeeper serves, and the link over which they reach it.
    metadata_port: int = 0
    link: Link | None = None

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{self.hosts.get(each, '127.0.0.1')}:{port}" for each, port in self.ports.items())

    def start(self, *numbers: int) -> None:
        for number in numbers:
            self.pids[number] = self.begin(number)
        for number in numbers:
            first_answer(self.ports[number], lambda number=number: not running(self.pids[number]))  # type: ignore[misc]

    def send(self, number: int, what: signal.Signals) -> None:
        os.kill(self.pids[number], what)

    def cpu_s(self) -> float:
        """Seconds of processors that the processes have used."""
        ticks = 0
        for pid in self.pids.values():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        for pid in self.pids.values():
            if running(pid):
                os.kill(pid, signal.SIGKILL)
        give_up = time.monotonic() + END_S
        while any(map(running, self.pids.values())) and time.monotonic() < give_up:
            time.sleep(0.01)


def running(pid: int) -> bool:
    """Whether a process is there and not just waiting to be looked at."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def kohort(
    session_ms: int,
    *,
    linked: bool = False,
    nodes: Sequence[int] = NODES,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Brokers]:
    """``kohort broker`` three times, or for each of ``nodes``, on one ZooKeeper server whose ticks are
    ``zoo_sample.cfg``'s; over a link that can be cut, or straight.
    """
    folder, zookeeper = kept(), free_port()
    script = [sys.executable, str(ZOOKEEPER)]
    ticks = () if session_ms else ("--set", "tickTime=2000", "--set", "minSessionTimeout=-1")
    subprocess.run([*script, "start", str(zookeeper), *ticks], check=True, capture_output=True)
    ports = {number: free_port() for number in nodes}
    settings = {**SETTINGS, **MORE_SETTINGS, **more}
    if session_ms:
        settings["zookeeper.session.timeout.ms"] = str(session_ms)
    processes: list[subprocess.Popen[bytes]] = []
    link = Link(zookeeper) if linked else None

    def begin(number: int) -> int:
        command = [sys.executable, "-m", "kohort", "broker", "--port", str(ports[number])]
        command += ["--data", str(folder / f"data-{number}"), "--node-id", str(number)]
        command += ["--zookeeper", f"127.0.0.1:{zookeeper if link is None else link.port}"]
        command += [f"--set={key}={value}" for key, value in settings.items()]
        with (folder / f"{number}.log").open("ab") as log:
            processes.append(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=ENVIRONMENT)
            )
        return processes[-1].pid

    brokers = Brokers(
        "kohort",
        f"kohort {__version__}",
        ports,
        begin,
        folder=lambda number: folder / f"data-{number}",
        metadata_port=zookeeper,
        link=link,
    )
    try:
        with link or nullcontext():
            brokers.start(*nodes)
            yield brokers
    finally:
        brokers.end()
        for process in processes:
            process.wait()
        subprocess.run([*script, "stop", str(zookeeper)], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def apache_kafka(session_ms: int) -> Iterator[Brokers]:
    """Apache Kafka three times by the project's script, each broker with a vote in their quorum."""
    ports = {number: free_port() for number in NODES}
    settings = {
        **SETTINGS,
        **MORE_SETTINGS,
        "controller.quorum.voters": ",".join(f"{each}@127.0.0.1:{ports[each] + 1}" for each in NODES),
    }
    if session_ms:
        settings["broker.session.timeout.ms"] = str(session_ms)
        settings["broker.heartbeat.interval.ms"] = str(min(session_ms // 3, 2_000))
    environment = {**os.environ, "KAFKA_CLUSTER_ID": "A" + secrets.token_urlsafe(16)[:21]}
    said: dict[int, str] = {}
    scripts: list[subprocess.Popen[str]] = []

    def script(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(SCRIPT), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )

    def pid_of(number: int, process: subprocess.Popen[str]) -> int:
        said[number], _ = process.communicate()
        found = re.search(r"(Apache Kafka \S+) ready .*\(process (\d+)\)", said[number])
        if found is None:
            raise RuntimeError(f"broker {number} did not start: {said[number].strip()}")
        brokers.version = found[1]
        return int(found[2])

    brokers = Brokers(
        "Apache Kafka", "", ports, lambda number: pid_of(number, script("again", str(ports[number])))
    )
    try:
        for number in NODES:
            told = [f"{key}={value}" for key, value in {**settings, "node.id": str(number)}.items()]
            scripts.append(script("start", str(ports[number]), *told))
        # each of them serves when most of them are there
        brokers.pids = {number: pid_of(number, each) for number, each in zip(NODES, scripts, strict=True)}
        yield brokers
    finally:
        for each in scripts:
            each.wait()
        for port in ports.values():
            subprocess.run([SCRIPT, "stop", str(port)], check=False, capture_output=True)


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    start: Callable[[int], AbstractContextManager[Brokers]]


KOHORT = Contender("kohort", kohort)
APACHE_KAFKA = Contender("Apache Kafka", apache_kafka)
