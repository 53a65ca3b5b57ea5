"""Snippets of the service guide that have a name, run as they stand there, but for names and the address."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer

from tests.consumer.registry import FakeRegistry, framed

ROOT = Path(__file__).resolve().parent.parent.parent
SNIPPETS: dict[str, str] = dict(
    re.findall(r"```python\n# (\w+)\n(.*?)```", (ROOT / "docs" / "service.md").read_text(), flags=re.DOTALL)
)
#: Values of the topic's records, and lines that a snippet is to print.
BILLED = [f"billed b'{number}'" for number in range(6)]
EXPECTED: dict[str, tuple[list[str], list[str]]] = {
    "decode": (['{"id": 7}', "{", '{"id": 8}'], ["billed None 7", "billed None 8"]),
    "failed": (["1", "x", "3"], ["booked 1", "booked 3"]),
    "middleware": (["0", "1"], ["orders 0: 0.", "orders 1: 0."]),
    "pause": ([str(number) for number in range(6)], BILLED),
    "registry": ([], ["billed id=5"]),
    "retry_topics": (list("abcde"), [f"billed orders 0 {n} b'{c}'" for n, c in enumerate("abcde")]),
    "services": (["0"], ["billed b'0'", "shipped b'0'"]),
}

pytestmark = pytest.mark.kafka


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    fake = FakeRegistry()
    yield fake
    fake.close()


def test_the_guide_has_its_snippets() -> None:
    assert SNIPPETS.keys() == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_snippet_of_the_guide_runs(
    name: str,
    bootstrap: str,
    new_topic: Callable[..., str],
    group: Callable[[str], str],
    fake: FakeRegistry,
    tmp_path: Path,
) -> None:
    values, lines = EXPECTED[name]
    if name == "registry":
        pytest.importorskip("fastavro", reason="the extra 'avro' is not installed")
        order = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
        # zigzag: 10 is 5
        values = [framed(fake.add(json.dumps(order)), b"\x0a").decode()]
    topic = new_topic("orders", partitions=1)
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for value in values:
            producer.send(topic, value.encode())
    code = SNIPPETS[name].replace("localhost:9092", bootstrap).replace('"orders', f'"{topic}')
    code = code.replace("http://localhost:8081", fake.url)
    path = tmp_path / f"{name}.py"
    path.write_text(re.sub(r'group="(\w+)"', lambda found: f'group="{group(found[1])}"', code))
    process = subprocess.Popen(
        [sys.executable, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        missing = [line.replace("orders", topic) for line in lines]
        while missing and (said := process.stdout.readline()):
            missing = [line for line in missing if line not in said]
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    finally:
        watchdog.cancel()
        process.kill()
    assert missing == [], errors
    assert process.returncode == 0, errors
