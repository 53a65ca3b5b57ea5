"""ZooKeeper servers of the tests, where there is Java and its jars can be fetched."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from kohort.client.zookeeper import ZooKeeperSettings
from kohort.cluster import ZooKeeperStore, open_zookeeper
from tests.ports import free_ports
from tests.scripts import script

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "zookeeper.py"


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=120)


class ZooKeeper:
    """One server, or an ensemble, on ports of its own."""

    def __init__(self, servers: int, *settings: str) -> None:
        # clients, and the servers among themselves
        self.port = free_ports((0, 1, 2, 101, 102, 103, 201, 202, 203))
        lines = (word for setting in settings for word in ("--set", setting))
        started = _run("start", str(self.port), "--servers", str(servers), *lines)
        if "there is no Java" in started.stderr or "cannot be fetched" in started.stderr:
            pytest.skip(started.stderr.strip())
        assert started.returncode == 0, started.stderr
        self.servers = servers
        self.hosts = ",".join(f"127.0.0.1:{self.port + number}" for number in range(servers))

    @property
    def folder(self) -> Path:
        """Where the servers have their data and what they print."""
        return Path(script("zookeeper").run_of(self.port))

    def connect(self) -> str:
        """The address of a place where nothing is yet."""
        return f"{self.hosts}/{uuid.uuid4().hex}"

    def home(self, session_timeout_ms: int = 6_000) -> Callable[[], Awaitable[ZooKeeperStore]]:
        """What opens one store after the other in such a place."""
        settings = ZooKeeperSettings(self.connect(), session_timeout_ms)
        return lambda: open_zookeeper(settings)

    def kill(self, number: int = 1) -> None:
        assert _run("kill", str(self.port), str(number)).returncode == 0

    def again(self, number: int = 1) -> None:
        assert _run("again", str(self.port), str(number)).returncode == 0

    def stand_still(self, number: int = 1) -> None:
        """Stop a server's process, which keeps its connections, until ``go_on``."""
        self._signal(number, signal.SIGSTOP)

    def go_on(self, number: int = 1) -> None:
        self._signal(number, signal.SIGCONT)

    def _signal(self, number: int, sent: signal.Signals) -> None:
        pid = script("zookeeper").pid_of(self.folder / str(number))
        assert pid is not None, "the server has ended"
        os.kill(pid, sent)

    def all_again(self) -> None:
        """Start every server again that was killed; a lone one of several does not serve."""
        with ThreadPoolExecutor() as threads:
            for _ in threads.map(self.again, range(1, self.servers + 1)):
                pass

    def stop(self) -> None:
        _run("stop", str(self.port))


def require() -> None:
    """Skip the test where no server can be started."""
    tool = script("zookeeper")
    try:
        tool.java()
        tool.install()
    except SystemExit as missing:
        pytest.skip(str(missing))


@contextmanager
def zookeeper(servers: int = 1, *settings: str) -> Iterator[ZooKeeper]:
    running = ZooKeeper(servers, *settings)
    try:
        yield running
    finally:
        running.stop()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what comes from another session."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
