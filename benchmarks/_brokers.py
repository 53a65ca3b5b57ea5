"""Brokers as processes of their own: started and timed, looked at from outside, stopped."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from kohort import __version__

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "scripts" / "apache-kafka"
START_TIMEOUT_S = 90.0
_API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 1, -1)

#: With byte code that is kept after a first start, as an installed package has it.
ENVIRONMENT: Mapping[str, str] = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}

#: What both brokers are told, so that neither waits or refuses where the other does not.
SETTINGS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.max.size": "10000",
    "group.min.session.timeout.ms": "500",
    "offsets.topic.num.partitions": "50",
    # a crowd of more than a thousand members comes from one address
    "max.connections.per.ip": "10000",
}


@dataclass(frozen=True, slots=True)
class Running:
    """A broker that serves. ``start_s`` is from the start of its process to its first answer; ``tls`` is its
    listener with TLS, if it has one: ``SSL://HOST:PORT``.
    """

    bootstrap: str
    pid: int | None = None
    start_s: float = 0.0
    version: str = ""
    tls: str = ""

    def resident_mib(self) -> float:
        """Memory of the process that is in RAM now."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    start: Callable[[], AbstractContextManager[Running]]
    #: A process of the benchmark's own: started anew, looked at, filled.
    own: bool = True


def cache_folder() -> Path:
    """Where the project's script keeps Apache Kafka's data: kohort's goes beside it, on the same disk."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "kohort"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def free_port() -> int:
    """A port that is free, as is the next one."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as first:
            port: int = first.getsockname()[1]
            if port < 65_000:
                try:
                    socket.create_server(("127.0.0.1", port + 1)).close()
                except OSError:
                    continue
                return port


def first_answer(port: int, ended: Callable[[], bool]) -> None:
    """Ask for the API versions until they are answered."""
    give_up = time.monotonic() + START_TIMEOUT_S
    while not ended() and time.monotonic() < give_up:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=START_TIMEOUT_S) as connection:
                connection.sendall(_API_VERSIONS_V0)
                if connection.recv(4):
                    return
        except ConnectionError:
            time.sleep(0.002)
    raise RuntimeError(f"no broker answered on port {port}: start it by hand to see why")


def tls_settings(port: int, folder: Path, others: str = "") -> tuple[dict[str, str], str]:
    """What either broker is told so that it listens with TLS besides, and where it does. The key and its
    certificate, which nobody signed, lie in the folder; ``others`` are further listeners, each after a comma.
    """
    tls_port, key = free_port(), folder / "key.pem"
    chain = folder / "chain.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-days",
        "2",
    ]
    subprocess.run([*command, "-keyout", key, "-out", chain], check=True, capture_output=True)
    keystore = folder / "keystore.pem"
    keystore.write_bytes(key.read_bytes() + chain.read_bytes())
    address = f"SSL://127.0.0.1:{tls_port}"
    told = f"PLAINTEXT://127.0.0.1:{port},{address}"
    return {
        "listeners": told + others,
        "advertised.listeners": told,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
    }, address


def kept() -> Path:
    return Path(tempfile.mkdtemp(prefix="benchmark-", dir=cache_folder()))


@contextmanager
def kohort(more: Mapping[str, str] = MappingProxyType({}), *, tls: bool = False) -> Iterator[Running]:
    """``kohort broker`` with the interpreter that runs the benchmark, on an empty data folder."""
    folder, port = kept(), free_port()
    settings, tls_address = tls_settings(port, folder) if tls else ({}, "")
    command = [sys.executable, "-m", "kohort", "broker", "--data", str(folder / "data")]
    if not tls:
        command += ["--port", str(port)]
    for key, value in {**SETTINGS, **settings, **more}.items():
        command += ["--set", f"{key}={value}"]
    begin = time.monotonic()
    with (folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=ENVIRONMENT)
    try:
        first_answer(port, lambda: process.poll() is not None)
        took_s = time.monotonic() - begin
        yield Running(f"127.0.0.1:{port}", process.pid, took_s, f"kohort {__version__}", tls_address)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def apache_kafka(more: Mapping[str, str] = MappingProxyType({}), *, tls: bool = False) -> Iterator[Running]:
    """Apache Kafka as the project's script starts it; formatting its folder, a JVM before, is not timed."""
    folder, port = kept(), free_port()
    controller = f",CONTROLLER://127.0.0.1:{port + 1}"
    settings, tls_address = tls_settings(port, folder, controller) if tls else ({}, "")
    command = [str(SCRIPT), "start", str(port)]
    command += [f"{key}={value}" for key, value in {**SETTINGS, **settings, **more}.items()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as script:
        try:
            first_answer(port, lambda: script.poll() not in (None, 0))
        finally:
            answered = time.clock_gettime(time.CLOCK_BOOTTIME)
            said, _ = script.communicate()
    try:
        found = re.search(r"(Apache Kafka \S+) ready .*\(process (\d+)\)", said)
        if found is None:
            raise RuntimeError(f"Apache Kafka did not start: {said.strip()}")
        pid = int(found[2])
        yield Running(f"127.0.0.1:{port}", pid, answered - _started(pid), found[1], tls_address)
    finally:
        subprocess.run([SCRIPT, "stop", str(port)], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _started(pid: int) -> float:
    """When a process was started, in seconds since the machine was, to a hundredth."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def java_classpath() -> str | None:
    """That of Apache Kafka's clients, fetched where it is not there yet; None where there is no JVM."""
    if shutil.which("java") is None:
        return None
    if given := os.environ.get("KAFKA_CLASSPATH"):
        return given
    done = subprocess.run([SCRIPT, "classpath"], capture_output=True, text=True, check=True)
    return done.stdout.split()[-1]


KOHORT = Contender("kohort", kohort)
APACHE_KAFKA = Contender("Apache Kafka", apache_kafka)
#: The same with a TLS listener besides.
KOHORT_TLS = Contender(KOHORT.name, partial(kohort, tls=True))
APACHE_KAFKA_TLS = Contender(APACHE_KAFKA.name, partial(apache_kafka, tls=True))


def given(bootstrap: str, name: str = "") -> Contender:
    """A broker that somebody else started and will stop."""

    @contextmanager
    def running() -> Iterator[Running]:
        yield Running(bootstrap)

    return Contender(name or bootstrap, running, own=False)


def choose_contenders(options: argparse.Namespace) -> list[Contender]:
    """kohort, beside an Apache Kafka with ``compare``; or the one broker at the address of ``bootstrap``."""
    if options.bootstrap:
        return [given(options.bootstrap)]
    return [APACHE_KAFKA, KOHORT] if options.compare else [KOHORT]
