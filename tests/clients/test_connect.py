"""Kafka Connect: workers make a group of protocol type ``connect``, of which no coordinator reads a byte.

Run by ``make test-connect``, on kohort and on an Apache Kafka.
"""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.clients.java import java_command
from tests.clients.members import Group
from tests.ports import free_port
from tests.waiting import wait_until

pytestmark = [pytest.mark.clients, pytest.mark.kafka]

WORKER = "org.apache.kafka.connect.cli.ConnectDistributed"
FILE_CONNECTOR = "org.apache.kafka.connect.file.FileStream"
PATIENCE_S = 60.0


class Worker:
    """One worker process and its REST interface."""

    def __init__(self, bootstrap: str, group: str, folder: Path) -> None:
        self.port = free_port()
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "listeners": f"http://127.0.0.1:{self.port}",
            "offset.flush.interval.ms": "500",
            "session.timeout.ms": "3000",
            "heartbeat.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "1000",
        }
        for kind in ("offset", "config", "status"):
            settings[f"{kind}.storage.topic"] = f"{group}-{kind}"
            settings[f"{kind}.storage.replication.factor"] = "1"
            if kind != "config":
                settings[f"{kind}.storage.partitions"] = "2"
        config = folder / f"worker-{self.port}.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        with config.with_suffix(".log").open("wb") as log:
            self.process = subprocess.Popen(
                [*java_command("connect-classpath"), "-Xmx256m", WORKER, str(config)],
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """GET, or PUT where there is a body; None while the worker cannot answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method="GET" if body is None else "PUT",
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)


@pytest.fixture
def start_worker(
    request: pytest.FixtureRequest, bootstrap: str, group: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[[], tuple[Worker, str]]]:
    """A worker that serves, and the name of the group that all workers of the test are in."""
    if not request.config.getoption("--connect"):
        pytest.skip("two workers of Kafka Connect are started with --connect only (make test-connect)")
    group_id = group("connect")
    with ExitStack() as stack:

        def start() -> tuple[Worker, str]:
            worker = Worker(bootstrap, group_id, tmp_path)
            stack.callback(worker.end)
            return worker, group_id

        yield start


@pytest.mark.timeout(300)
def test_connectors_move_to_the_worker_that_is_left(
    start_worker: Callable[[], tuple[Worker, str]],
    bootstrap: str,
    new_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    lines = [f"line-{number:03d}" for number in range(100)]
    source.write_text("".join(f"{line}\n" for line in lines[:50]))
    sink.touch()
    topic = new_topic("connect", partitions=1)
    (first, group_id), (second, _) = start_worker(), start_worker()
    group = Group(bootstrap, group_id)
    wait_until(lambda: None not in (first.call("/connectors"), second.call("/connectors")), "both serve")
    wait_until(lambda: (group.state(), len(group.members())) == ("Stable", 2), "both are in the group")
    assert group.protocol_type() == "connect"

    common = {"tasks.max": "1"}
    reading = {"connector.class": f"{FILE_CONNECTOR}SourceConnector", "file": str(source), "topic": topic}
    writing = {"connector.class": f"{FILE_CONNECTOR}SinkConnector", "file": str(sink), "topics": topic}
    wait_until(
        lambda: first.call("/connectors/read/config", common | reading) is not None, "the source is made"
    )
    wait_until(
        lambda: second.call("/connectors/write/config", common | writing) is not None, "the sink is made"
    )
    wait_until(lambda: set(sink.read_text().split()) == set(lines[:50]), "the first lines have come through")

    first.process.kill()
    with source.open("a") as more:
        more.writelines(f"{line}\n" for line in lines[50:])
    wait_until(lambda: set(sink.read_text().split()) == set(lines), "the worker that is left does the rest")
    assert len(group.members()) == 1

    second.process.terminate()
    assert second.process.wait(30) == 143  # ended by SIGTERM, as a JVM says it
    assert group.state() == "Empty"
