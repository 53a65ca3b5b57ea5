"""The consumer's guide and its example, run as they stand there, but for names and the address."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaProducer

ROOT = Path(__file__).resolve().parent.parent.parent
SNIPPETS: dict[str, str] = dict(
    re.findall(r"```python\n# (\w+)\n(.*?)```", (ROOT / "docs" / "consumer.md").read_text(), flags=re.DOTALL)
)

pytestmark = pytest.mark.kafka


@pytest.fixture
def orders(bootstrap: str, new_topic: Callable[..., str]) -> str:
    """A topic with the numbers 0 to 19."""
    topic = new_topic("orders", partitions=2)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(20):
            producer.send(topic, b"order %d" % number, partition=number % 2)
    return topic


@pytest.mark.parametrize("name", sorted(SNIPPETS))
def test_a_snippet_of_the_guide_runs(
    name: str, bootstrap: str, orders: str, group: Callable[[str], str], tmp_path: Path
) -> None:
    code = SNIPPETS[name].replace("localhost:9092", bootstrap).replace('"orders"', f'"{orders}"')
    path = tmp_path / f"{name}.py"
    path.write_text(re.sub(r'group="\w+"', f'group="{group("billing")}"', code))
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    if name == "events":
        assert "generation 1: 2 partitions" in done.stdout
    elif name == "arrow":
        assert done.stdout == "20 rows\n"
    elif name == "offsets":
        assert len(re.findall(r" 0 10 \(0, \d{13}\)", done.stdout)) == 2
    else:
        assert all(f"order {number}'" in done.stdout for number in range(20))


def test_the_guide_has_its_snippets() -> None:
    assert set(SNIPPETS) == {
        "arrow",
        "async",
        "auto_done",
        "blocking",
        "closing",
        "decode",
        "events",
        "offsets",
    }


def test_the_example_reads_everything_and_leaves_on_an_interrupt(
    bootstrap: str, orders: str, group: Callable[[str], str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with out.open("w") as file:
        command = [sys.executable, str(ROOT / "examples" / "consume.py"), bootstrap, orders, group("billing")]
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=tmp_path)
    deadline = time.monotonic() + 30
    while out.read_text().count(" @ ") < 20 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0, out.read_text()
    assert out.read_text().count(" @ ") == 20
    assert "generation 1: reads" in out.read_text()
    assert "gives up" in out.read_text()
