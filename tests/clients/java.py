"""Apache Kafka's own command-line tools, many runs in one JVM.

The class path comes from ``scripts/apache-kafka``, which fetches the jars with Maven once. Where that cannot
be, the tests that need them are skipped with what it said.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "apache-kafka"
SERVER = Path(__file__).with_name("ToolServer.java")

TOPIC_COMMAND = "org.apache.kafka.tools.TopicCommand"
CONFIG_COMMAND = "kafka.admin.ConfigCommand"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
LOG_DIRS_COMMAND = "org.apache.kafka.tools.LogDirsCommand"
ELECTION_COMMAND = "org.apache.kafka.tools.LeaderElectionCommand"
REASSIGN_COMMAND = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
API_VERSIONS_COMMAND = "org.apache.kafka.tools.BrokerApiVersionsCommand"
QUORUM_COMMAND = "org.apache.kafka.tools.MetadataQuorumCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
SHARE_GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
SHARE_CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
VERIFIABLE_SHARE = "org.apache.kafka.tools.VerifiableShareConsumer"

FETCH_TIMEOUT_S = 90.0

#: A tool's life is short: compile little, take little memory.
OPTIONS = ["-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]


class Printed(NamedTuple):
    """How a run of a tool ended and what it printed."""

    code: int
    out: str
    errors: str


@cache
def java_command(jars: str = "classpath") -> tuple[str, ...]:
    """Java and its options, class path included. Skips the test that asks where that is not to be had.

    ``jars`` is the command of ``scripts/apache-kafka`` that prints the class path.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        pytest.skip("Apache Kafka's tools need Java 17 or newer in JAVA_HOME or on PATH")
    fetching = subprocess.Popen(
        [SCRIPT, jars],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        class_path, said = fetching.communicate(timeout=FETCH_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(fetching.pid, signal.SIGKILL)  # Maven too
        fetching.communicate()
        pytest.skip(f"no Apache Kafka jars after {FETCH_TIMEOUT_S:g} s: is Maven Central reached?")
    if fetching.returncode != 0:
        pytest.skip((said.strip().splitlines() or [f"scripts/apache-kafka {jars} failed"])[-1])
    return (java, *OPTIONS, "-cp", class_path.strip())


class ToolServer:
    """One JVM that runs tools, one after the other, against ``bootstrap``."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._jvm = subprocess.Popen(
            [*java_command(), "-Xmx512m", str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __enter__(self) -> ToolServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._jvm.communicate(timeout=20)

    def run(self, main_class: str, *arguments: str, bootstrap: str | None = None) -> Printed:
        """Run a tool, however it ends; against ``bootstrap``, where one is given."""
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        words = [main_class, "--bootstrap-server", bootstrap or self._bootstrap, *arguments]
        assert not any("\t" in word or "\n" in word for word in words)
        try:
            self._jvm.stdin.write("\t".join(words).encode() + b"\n")
            self._jvm.stdin.flush()
            answer = self._jvm.stdout.readline().split()
        except BrokenPipeError:
            answer = []
        if len(answer) != 3:
            self._jvm.kill()
            _, errors = self._jvm.communicate()
            if b"jdk.compiler" in errors:
                pytest.skip("Apache Kafka's tools are run by a JDK here, and this Java has no compiler")
            raise AssertionError(f"the JVM that runs the tools ended:\n{errors.decode(errors='replace')}")
        code, out, error = (int(number) for number in answer)
        return Printed(code, self._jvm.stdout.read(out).decode(), self._jvm.stdout.read(error).decode())

    def __call__(self, main_class: str, *arguments: str, bootstrap: str | None = None) -> str:
        """What the tool printed; AssertionError when it failed."""
        done = self.run(main_class, *arguments, bootstrap=bootstrap)
        said = done.out + done.errors
        assert done.code == 0, f"{main_class} {' '.join(arguments)} failed:\n{said}"
        # Some tools print the failure of one group or topic and still end with 0.
        assert not re.search(r"^Error|Exception", said, re.MULTILINE), said
        return done.out


def table(printed: str) -> list[dict[str, str]]:
    """The rows of the printed tables by their column headings."""
    rows: list[dict[str, str]] = []
    heading: list[str] = []
    for line in printed.splitlines():
        words = line.split()
        if words and words[0] == "GROUP":
            heading = words
        elif words and heading:
            rows.append(dict(zip(heading, words, strict=False)))
    return rows
