"""Java's consumers, many in one JVM; each looks like a :class:`~tests.clients.members.Member`."""

from __future__ import annotations

import subprocess
import threading
import uuid
from pathlib import Path

from tests.clients.drivers import CALL_TIMEOUT_S, Choice
from tests.clients.java import java_command

SERVER = Path(__file__).with_name("JavaMembers.java")

ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
NAMES = {
    "instance": "group.instance.id",
    "session": "session.timeout.ms",
    "heartbeat": "heartbeat.interval.ms",
}


class JavaMember:
    """A consumer in the JVM; what it holds is what it said last."""

    name = "java"

    def __init__(self, jvm: JavaMembers) -> None:
        self._jvm = jvm
        self.key = uuid.uuid4().hex
        self.held: frozenset[int] = frozenset()
        self.closed = threading.Event()

    def __enter__(self) -> JavaMember:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{self.name} {sorted(self.held)}"

    def close(self) -> None:
        """Leave the group; a second call does nothing."""
        if not self.closed.is_set():
            self._jvm.order("close", self.key)
            assert self.closed.wait(CALL_TIMEOUT_S), f"the java member did not close in {CALL_TIMEOUT_S:g} s"


class JavaMembers:
    """The JVM. Skips the test that asks for it where there is no Java, or none that compiles."""

    def __init__(self) -> None:
        self._jvm = subprocess.Popen(
            [*java_command(), "-Xmx256m", str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._members: dict[str, JavaMember] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._jvm.stdout is not None
        for line in self._jvm.stdout:
            key, numbers, *closed = line.rstrip("\n").split("\t")
            member = self._members[key]
            member.held = frozenset(int(number) for number in numbers.split(",") if number)
            if closed:
                member.closed.set()

    def order(self, *words: str) -> None:
        assert self._jvm.stdin is not None
        assert self._jvm.poll() is None, "the JVM of the java members has ended"
        self._jvm.stdin.write("\t".join(words) + "\n")
        self._jvm.stdin.flush()

    def join(
        self, bootstrap: str, group: str, topic: str, choice: Choice, *, protocol: str = "classic"
    ) -> JavaMember:
        """A new member of the group; one of the consumer protocol takes its session from the broker."""
        member = JavaMember(self)
        self._members[member.key] = member
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "topic": topic,
            "auto.offset.reset": "earliest",
            "group.protocol": protocol,
            **choice.settings(**NAMES),
        }
        if protocol == "classic":
            settings["partition.assignment.strategy"] = ASSIGNORS[choice.assignor or "range"]
        self.order("open", member.key, *(f"{name}={value}" for name, value in settings.items()))
        return member

    def close(self) -> None:
        self._jvm.communicate(timeout=20)
