"""Java's transactional producer and Kafka Streams with ``exactly_once_v2``, in processes of their own."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import confluent_kafka
import pytest

from tests.clients.drivers import DRIVERS
from tests.clients.java import java_command
from tests.clients.test_transactions import COMMITTED, read_with_confluent, send_with_confluent

pytestmark = [pytest.mark.clients, pytest.mark.kafka, pytest.mark.slow(20)]

PROGRAM = Path(__file__).with_name("Transactions.java")
WORD_COUNT = Path(__file__).with_name("WordCount.java")
RUN_TIMEOUT_S = 120.0

LINES = [b"%s" % b" ".join((b"alfa", b"word-%d" % (number % 7), b"omega")) for number in range(300)]
WORDS = [word for line in LINES for word in line.split()]


def java(bootstrap: str, *arguments: str) -> list[str]:
    """Run the program; the lines that it printed."""
    done = subprocess.run(
        [*java_command(), "-Xmx256m", str(PROGRAM), bootstrap, *arguments],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    if "jdk.compiler" in done.stderr:
        pytest.skip("Java programs are run from their source by a JDK, and this Java has no compiler")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_java_commits_and_aborts_and_reads_what_others_committed(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic("txn")
    java(bootstrap, "send", f"txn-{topic}", topic)
    assert read_with_confluent(bootstrap, topic) == COMMITTED
    send_with_confluent(bootstrap, f"txn-{topic}", topic)
    read = java(bootstrap, "read", topic, str(2 * len(COMMITTED)))
    assert [line.encode() for line in read] == 2 * COMMITTED


def test_java_is_fenced_by_a_newer_producer_of_its_id(bootstrap: str, new_topic: Callable[..., str]) -> None:
    topic = new_topic("txn")
    java(bootstrap, "fence", f"txn-{topic}", topic)
    assert read_with_confluent(bootstrap, topic) == [b"kept"]


def test_java_commits_nothing_of_a_transaction_whose_time_is_over(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic("txn")
    java(bootstrap, "expire", f"txn-{topic}", topic)
    assert read_with_confluent(bootstrap, topic) == [b"kept"]


def test_java_consumes_transforms_and_produces(
    bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    source, target, name = new_topic("source", partitions=1), new_topic("target"), group("java")
    values = [b"%d" % number for number in range(10)]
    DRIVERS["confluent-kafka"].produce(bootstrap, source, values)
    java(bootstrap, "transform", f"txn-{target}", source, target, name, "10")
    assert read_with_confluent(bootstrap, target) == [b"twice " + value for value in values]


@contextmanager
def word_count(
    bootstrap: str, application: str, source: str, target: str, folder: Path
) -> Iterator[list[str]]:
    """A running WordCount, killed at the end of the block; the states that it has gone through."""
    command = [*java_command("streams-classpath"), "-Xmx256m", str(WORD_COUNT)]
    with (folder / "errors").open("ab") as errors:
        process = subprocess.Popen(
            [*command, bootstrap, application, source, target, str(folder)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    states: list[str] = []
    assert process.stdout is not None
    reader = threading.Thread(target=lambda: states.extend(map(str.strip, process.stdout or ())), daemon=True)
    reader.start()
    try:
        yield states
        assert process.poll() is None, (folder / "errors").read_text()
    finally:
        process.kill()
        process.wait()
        reader.join()


def counts_of(bootstrap: str, target: str, enough: int) -> dict[str, list[int]]:
    """By word, the counts that readers of committed records are given, until there are enough."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"read-{target}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(target, number, 0) for number in range(3)])
    found: dict[str, list[int]] = defaultdict(list)
    deadline = time.monotonic() + RUN_TIMEOUT_S
    try:
        while sum(map(len, found.values())) < enough:
            assert time.monotonic() < deadline, found
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found[message.key().decode()].append(int(message.value()))
    finally:
        consumer.close()
    return found


def test_streams_counts_each_word_once_though_it_is_killed(
    bootstrap: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    """Each count comes out once: a record that is processed twice, or lost, would show."""
    source, target = new_topic("lines"), new_topic("counts")
    application = f"count-{target}"
    half = len(WORDS) // 2
    with ExitStack() as stack:
        for number, lines in enumerate((LINES[:150], LINES[150:])):
            DRIVERS["confluent-kafka"].produce(bootstrap, source, lines)
            stack.enter_context(word_count(bootstrap, application, source, target, tmp_path))
            enough = (2 * number + 1) * half // 2
            counts_of(bootstrap, target, enough)
            stack.close()  # killed in the middle of it
        stack.enter_context(word_count(bootstrap, application, source, target, tmp_path))
        found = counts_of(bootstrap, target, len(WORDS))
    assert found == {word.decode(): list(range(1, WORDS.count(word) + 1)) for word in set(WORDS)}
