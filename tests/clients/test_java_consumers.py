"""Apache Kafka's VerifiableConsumer in processes of its own: each assignor, static members, sudden ends."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.drivers import DRIVERS
from tests.clients.java import VERIFIABLE_CONSUMER, java_command
from tests.clients.members import Group, shared_out, wait_until

pytestmark = [pytest.mark.clients, pytest.mark.kafka, pytest.mark.slow(7)]

ASSIGNORS = ("Range", "RoundRobin", "Sticky", "CooperativeSticky")
PARTITIONS = 6
SESSION_MS = 3_000
LONG_SESSION_MS = 30_000  # longer than a JVM takes to start on a busy machine
HEARTBEAT_MS = 300
STOP_TIMEOUT_S = 20.0


class VerifiableConsumer:
    """One process; a thread reads the events that it prints."""

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        folder: Path,
        *arguments: str,
        session_ms: int = SESSION_MS,
    ) -> None:
        config = folder / "consumer.properties"
        config.write_text(f"heartbeat.interval.ms={HEARTBEAT_MS}\nmetadata.max.age.ms=1000\n")
        command = [*java_command(), "-Xmx128m", VERIFIABLE_CONSUMER, "--bootstrap-server", bootstrap]
        command += ["--group-id", group, "--topic", topic, "--session-timeout", str(session_ms)]
        command += ["--command-config", str(config), *arguments]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.events: list[str] = []
        self.held: frozenset[int] = frozenset()
        self.records = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> VerifiableConsumer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()

    def __repr__(self) -> str:
        return f"{sorted(self.held)} after {self.events}"

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            partitions = {entry["partition"] for entry in event.get("partitions", ())}
            if event["name"] == "partitions_assigned":
                self.held |= partitions
            elif event["name"] in ("partitions_revoked", "partitions_lost"):
                self.held -= partitions
            elif event["name"] == "records_consumed":
                self.records += event["count"]
                continue
            self.events.append(event["name"])

    def _end(self, number: signal.Signals) -> None:
        self._process.send_signal(number)
        self._process.wait(STOP_TIMEOUT_S)
        self._reader.join(STOP_TIMEOUT_S)

    def kill(self) -> None:
        """SIGKILL: no goodbye to anyone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: it closes its consumer."""
        self._end(signal.SIGTERM)
        assert self.events[-1] == "shutdown_complete"


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_killed_member_is_replaced_when_its_session_expires(
    assignor: str, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str], tmp_path: Path
) -> None:
    topic, group_id = new_topic("java", partitions=PARTITIONS), group("java")
    values = [b"value-%03d" % number for number in range(120)]
    DRIVERS["confluent-kafka"].produce(bootstrap, topic, values)
    choice = ("--assignment-strategy", f"org.apache.kafka.clients.consumer.{assignor}Assignor")
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(VerifiableConsumer(bootstrap, group_id, topic, tmp_path, *choice))
            for _ in range(2)
        )
        wait_until(lambda: shared_out([first, second], PARTITIONS), "they share them", [first, second])
        wait_until(lambda: first.records + second.records >= len(values), "all records", [first, second])

        killed = time.monotonic()
        second.kill()
        wait_until(lambda: shared_out([first], PARTITIONS), "the other takes over", [first])
        assert time.monotonic() - killed >= (SESSION_MS - HEARTBEAT_MS) / 1000 - 0.1
        first.stop()
    state = Group(bootstrap, group_id)
    assert (state.state(), state.members()) == ("Empty", {})


def test_a_static_member_that_comes_back_in_time_disturbs_nobody(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str], tmp_path: Path
) -> None:
    topic, group_id = new_topic("java", partitions=PARTITIONS), group("java")
    with ExitStack() as stack:

        def start(instance: str) -> VerifiableConsumer:
            static = ("--group-instance-id", instance)
            return stack.enter_context(
                VerifiableConsumer(bootstrap, group_id, topic, tmp_path, *static, session_ms=LONG_SESSION_MS)
            )

        first, second = start("one"), start("two")
        wait_until(lambda: shared_out([first, second], PARTITIONS), "they share them", [first, second])
        watch = Group(bootstrap, group_id)
        generation, members, held = watch.generation(), watch.members(), (first.held, second.held)
        seen = list(first.events)

        def come_back() -> VerifiableConsumer:
            back = start("two")
            wait_until(lambda: back.held == held[1], "it is back with what it had", [first, back])
            assert watch.generation() == generation
            return back

        second.stop()
        second = come_back()
        second.kill()
        come_back()
        assert (first.events, first.held) == (seen, held[0])
        assert watch.members().keys() == members.keys()
        assert watch.members() != members  # the one that came back got a new id
