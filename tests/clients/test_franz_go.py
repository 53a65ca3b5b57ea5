"""franz-go's transactions. The program is built once; without Go, or its modules, the tests are skipped."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.drivers import DRIVERS
from tests.clients.test_transactions import COMMITTED, read_with_confluent, send_with_confluent

pytestmark = [pytest.mark.clients, pytest.mark.kafka, pytest.mark.slow(10)]

SOURCE = Path(__file__).with_name("franz")
BUILD_TIMEOUT_S = 240.0
RUN_TIMEOUT_S = 90.0

Franz = Callable[..., list[bytes]]


@pytest.fixture(scope="module")
def franz(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Franz:
    """``franz("read", topic, "6")``: the lines that the program printed."""
    if shutil.which("go") is None:
        pytest.skip("franz-go's programs need Go 1.24 or newer on PATH")
    program = tmp_path_factory.mktemp("franz") / "franz"
    try:
        built = subprocess.run(
            ["go", "build", "-o", program, "."],
            cwd=SOURCE,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"franz-go was not built within {BUILD_TIMEOUT_S:g} s: is the Go module proxy reached?")
    if built.returncode:
        pytest.skip(f"franz-go cannot be built: {built.stderr.strip().splitlines()[-1]}")

    def run(*arguments: str) -> list[bytes]:
        done = subprocess.run(
            [program, bootstrap, *arguments], capture_output=True, timeout=RUN_TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout.splitlines()

    return run


def test_it_commits_and_aborts_and_reads_what_others_committed(
    franz: Franz, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic("txn", partitions=1)
    franz("send", f"txn-{topic}", topic)
    assert read_with_confluent(bootstrap, topic) == COMMITTED
    send_with_confluent(bootstrap, f"txn-{topic}", topic)
    assert franz("read", topic, str(2 * len(COMMITTED))) == 2 * COMMITTED


def test_a_newer_producer_of_its_id_fences_it(
    franz: Franz, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic("txn", partitions=1)
    franz("fence", f"txn-{topic}", topic)
    assert read_with_confluent(bootstrap, topic) == [b"kept"]


def test_it_consumes_transforms_and_produces(
    franz: Franz, bootstrap: str, new_topic: Callable[..., str], group: Callable[[str], str]
) -> None:
    source, target = new_topic("source", partitions=1), new_topic("target", partitions=1)
    values = [b"%d" % number for number in range(10)]
    DRIVERS["confluent-kafka"].produce(bootstrap, source, values)
    franz("transform", f"txn-{target}", source, target, group("franz"), "10")
    assert read_with_confluent(bootstrap, target) == [b"twice " + value for value in values]
